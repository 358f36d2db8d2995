#include "backends/sim/native/cost.h"

#include "backends/sim/native/error.h"
#include "backends/sim/native/expect.h"
#include "backends/sim/native/local_memory.h"

namespace sim {
namespace {

enum : Axis { M, N, K, B };

Spec easy() {
  Spec spec;
  spec.matrix = {8, 8, 13, {0.125, 1, 1}};
  spec.vector = {7, {32, 64, 64, 32, 16, 64}};
  spec.special = {9, {16, 16}};
  spec.reduction = {11, {32}};
  return spec;
}

struct Tiles {
  LocalMemory memory{1 << 20, false, false};
  Tile tile(Dtype dtype, const Box& box) { return memory.add("t", dtype, box, 1).tile(); }
};

Command matmul(Tiles& tiles, Dtype dtype, const Box& to, const Box& a, const Box& b,
               const Box& box) {
  Command command;
  command.kind = Kind::matmul;
  command.unit = Unit::matrix;
  start_walk(command.walk, box);
  add_tile(command.walk, tiles.tile(Dtype::f32, to), tiles.memory);
  add_tile(command.walk, tiles.tile(dtype, a), tiles.memory);
  add_tile(command.walk, tiles.tile(dtype, b), tiles.memory);
  return command;
}

void axes_of_a_product_are_told_apart_by_who_has_them() {
  Tiles tiles;
  const Command command =
      matmul(tiles, Dtype::f16, {{B, 2}, {M, 9}, {N, 16}}, {{B, 2}, {M, 9}, {K, 5}},
             {{K, 5}, {N, 16}, {B, 2}}, {{B, 2}, {M, 9}, {N, 16}, {K, 5}});
  const Product product = product_of(command.walk);
  EXPECT(product.batch == 2 && product.m == 9 && product.n == 16 && product.k == 5);
  EXPECT(occupancy(command, easy()) == 2 * 2 * 2 * 5);
  EXPECT(startup(command, easy()) == 13);
  EXPECT(local_bytes(command) == 2 * 9 * 16 * 4 + (2 * 9 * 5 + 2 * 5 * 16) * 2);
}

void slow_dtypes_take_longer_and_unknown_ones_are_refused() {
  Tiles tiles;
  const Box square{{M, 8}, {K, 8}}, other{{K, 8}, {N, 8}}, to{{M, 8}, {N, 8}};
  const Box box{{M, 8}, {N, 8}, {K, 8}};
  EXPECT(occupancy(matmul(tiles, Dtype::f32, to, square, other, box), easy()) == 64);
  EXPECT(occupancy(matmul(tiles, Dtype::bf16, to, square, other, box), easy()) == 8);
  const auto refused = [&] {
    occupancy(matmul(tiles, Dtype::i32, to, square, other, box), easy());
  };
  EXPECT(message_of<SimulationError>(refused) ==
         "the matrix engine does not take i32; copy to another dtype");
}

void an_axis_of_one_tile_is_refused_unless_it_does_not_move() {
  Tiles tiles;
  const auto product = [&](Index extent) {
    return product_of(matmul(tiles, Dtype::f16, {{N, 4}}, {{M, 4}, {K, 4}}, {{K, 4}, {N, 4}},
                             {{M, extent}, {N, 4}, {K, 4}})
                          .walk);
  };
  EXPECT(product(1).m == 1);
  EXPECT(message_of<SimulationError>([&] { product(2); }).starts_with("axis 0 is in 1 of the"));
}

void a_map_goes_by_its_widest_operand() {
  Tiles tiles;
  Command command;
  command.kind = Kind::map;
  command.unit = Unit::vector;
  start_walk(command.walk, {{M, 65}});
  add_tile(command.walk, tiles.tile(Dtype::f16, {{M, 65}}), tiles.memory);
  add_constant(command.walk, 1);
  EXPECT(occupancy(command, easy()) == 2);
  add_tile(command.walk, tiles.tile(Dtype::f32, {{M, 65}}), tiles.memory);
  EXPECT(occupancy(command, easy()) == 3);
  command.kind = Kind::bucketize;
  using Case = std::pair<Index, Index>;
  for (const auto& [count, factor] : {Case{0, 0}, {1, 1}, {2, 2}, {3, 2}, {4, 3}}) {
    command.count = count;
    EXPECT(occupancy(command, easy()) == std::max<Index>(1, (65 * factor + 31) / 32));
  }
}

}  // namespace
}  // namespace sim

int main() {
  sim::axes_of_a_product_are_told_apart_by_who_has_them();
  sim::slow_dtypes_take_longer_and_unknown_ones_are_refused();
  sim::an_axis_of_one_tile_is_refused_unless_it_does_not_move();
  sim::a_map_goes_by_its_widest_operand();
  return sim::failures != 0;
}
