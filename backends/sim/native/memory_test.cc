// Mesh, cache, DRAM and the memory they make up: each asked one cycle early, and on time.
#include "backends/sim/native/memory.h"

#include "backends/sim/native/expect.h"

namespace sim {
namespace {

Spec easy() {
  Spec spec;
  spec.rows = spec.columns = 4;
  spec.dma = {64, 0, 1024, 1};
  spec.dram = {2, 8, 100, 1024};
  spec.shared = {4096, 2, 64, 20, 1024};
  spec.mesh = {64, 2};
  return spec;
}

void a_message_takes_its_hops_and_its_length() {
  Mesh mesh(easy().mesh, 4, 4);
  EXPECT(mesh.hops(0, 15) == 7);  // three along the row, three along the column, one in
  EXPECT(mesh.send(100, 0, 15, 640, Mesh::End::element) == 100 + 7 * 2 + 10);
  // The next one over the same links waits for each to be free; another way is free.
  EXPECT(mesh.send(100, 0, 15, 640, Mesh::End::element) == 100 + 10 + 7 * 2 + 10);
  EXPECT(mesh.send(100, 15, 0, 640, Mesh::End::element) == 100 + 7 * 2 + 10);
  EXPECT(mesh.send(100, 5, 5, 640, Mesh::End::bank) == 100 + 2 + 10);
  EXPECT(mesh.bytes() == (7 + 7 + 7 + 1) * 640);
}

void a_broadcast_takes_each_link_once() {
  Mesh mesh(easy().mesh, 4, 4);
  mesh.start_broadcast(0, 0, 64);
  EXPECT(mesh.branch(3) == 4 * 2 + 1);
  EXPECT(mesh.branch(2) == 3 * 2 + 1);
  EXPECT(mesh.branch(7) == 5 * 2 + 1);
  EXPECT(mesh.bytes() == (3 + 1 + 1 + 2) * 64);
}

void banks_sit_at_the_outer_columns() {
  Mesh mesh(easy().mesh, 4, 4);
  EXPECT(mesh.bank_node(0, 8) == 0);
  EXPECT(mesh.bank_node(1, 8) == 3);
  EXPECT(mesh.bank_node(7, 8) == 15);
}

void the_cache_drops_what_was_used_least_recently() {
  Cache cache(2, 10);
  cache.put(4, ~std::uint64_t{0}, 7);
  cache.put(5, 1, 9);
  EXPECT(cache.find(4, 3) == 7);
  EXPECT(cache.find(5, 1) == 9);
  EXPECT(cache.find(5, 2) == -1);  // held in part
  EXPECT(cache.find(4, 1) == 7);
  cache.put(6, 1, 11);
  EXPECT(cache.find(5, 1) == -1);
  EXPECT(cache.find(4, 1) == 7);
  EXPECT(cache.held() == 2);
  cache.put(6, 2, 5);
  EXPECT(cache.find(6, 3) == 11);
}

void channels_serve_one_after_another_and_side_by_side() {
  Dram dram(easy().dram);
  EXPECT(dram.read(10, 0, 80) == 10 + 10 + 100);
  EXPECT(dram.read(10, 0, 80) == 10 + 20 + 100);
  EXPECT(dram.read(10, 1024, 80) == 10 + 10 + 100);
  EXPECT(dram.write(200, 0, 4) == 201);  // half a cycle, rounded up
  EXPECT(dram.write(200, 0, 4) == 201);  // the other half
  EXPECT(dram.read_bytes() == 240 && dram.write_bytes() == 8);
}

void stripes_of_any_stride_spread_over_the_channels() {
  for (const Index stride : {1, 2, 16, 256}) {
    int hits[16] = {};
    for (Index i = 0; i < 256; ++i) ++hits[interleave(i * stride, 16)];
    for (const int count : hits) EXPECT(count >= 8 && count <= 32);
  }
}

struct Asked {
  Time done = -1;
  Events* events;
};

Event note(Asked& asked) {
  return {[](void* what) {
            auto& a = *static_cast<Asked*>(what);
            a.done = a.events->now();
          },
          &asked};
}

struct System {
  Spec spec = easy();
  Events events;
  Mesh mesh{spec.mesh, spec.rows, spec.columns};
  Memory memory{spec, events, mesh, 1 << 20};

  Time transfer(Index address, Index bytes, bool write, bool add = false) {
    Asked asked{-1, &events};
    const Time now = events.now();
    Delivery* delivery = memory.open();
    delivery->receivers.push_back({0, note(asked), 0});
    const Chunk chunk{address, bytes, 1, sectors_of(address, bytes, 1024)};
    if (write) {
      memory.write(now, 0, chunk, delivery, add);
    } else {
      memory.read(now, 0, chunk, delivery);
    }
    memory.close(delivery, now);
    events.run(0, 0);
    return asked.done - now;
  }
};

void a_read_takes_each_stage_once() {
  System system;
  // There, bank, its latency, the block from DRAM, DRAM's latency, back and its length.
  EXPECT(system.transfer(0, 64, false) == 2 + 1 + 20 + 128 + 100 + 2 + 1);
  EXPECT(system.transfer(512, 64, false) == 2 + 1 + 20 + 2 + 1);  // the block is here now
  EXPECT(system.memory.dram().read_bytes() == 1024);
  EXPECT(system.memory.read_bytes() == 128);
}

void a_write_goes_through_and_stays() {
  System system;
  // There and its length, bank, DRAM's channel, and the answer.
  EXPECT(system.transfer(0, 64, true) == 2 + 1 + 1 + 8 + 2);
  EXPECT(system.transfer(0, 64, false) == 2 + 1 + 20 + 2 + 1);
  EXPECT(system.memory.dram().read_bytes() == 0);
  EXPECT(system.transfer(64, 64, false) > 200);  // the rest of the block was not written
  EXPECT(system.memory.dram().write_bytes() == 64);
}

void an_add_reads_before_it_writes() {
  System system;
  EXPECT(system.transfer(0, 64, true, true) == 2 + 1 + 2 + 20 + 128 + 100 + 8 + 2);
  EXPECT(system.memory.dram().read_bytes() == 1024);
  EXPECT(system.memory.dram().write_bytes() == 64);
}

void a_block_under_way_is_not_read_twice() {
  System system;
  Asked first{-1, &system.events}, second{-1, &system.events};
  for (Asked* asked : {&first, &second}) {
    Delivery* delivery = system.memory.open();
    delivery->receivers.push_back({0, note(*asked), 0});
    system.memory.read(0, 0, {0, 64, 1, 1}, delivery);
    system.memory.close(delivery, 0);
  }
  system.events.run(0, 0);
  EXPECT(system.memory.dram().read_bytes() == 1024);
  EXPECT(first.done == 254);
  EXPECT(second.done == 255);  // the same block, one cycle behind on the link
}

void nothing_takes_no_time() {
  System system;
  Asked asked{-1, &system.events};
  Delivery* delivery = system.memory.open();
  delivery->receivers.push_back({0, note(asked), 0});
  system.memory.close(delivery, 5);
  system.events.run(0, 0);
  EXPECT(asked.done == 5);
}

}  // namespace
}  // namespace sim

int main() {
  sim::a_message_takes_its_hops_and_its_length();
  sim::a_broadcast_takes_each_link_once();
  sim::banks_sit_at_the_outer_columns();
  sim::the_cache_drops_what_was_used_least_recently();
  sim::channels_serve_one_after_another_and_side_by_side();
  sim::stripes_of_any_stride_spread_over_the_channels();
  sim::a_read_takes_each_stage_once();
  sim::a_write_goes_through_and_stays();
  sim::an_add_reads_before_it_writes();
  sim::a_block_under_way_is_not_read_twice();
  sim::nothing_takes_no_time();
  return sim::failures != 0;
}
