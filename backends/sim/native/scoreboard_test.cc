#include "backends/sim/native/scoreboard.h"

#include "backends/sim/native/expect.h"

namespace sim {
namespace {

constexpr int kOne = 1, kOther = 2;

Hazards reads(Scoreboard& board, std::uint32_t slot) {
  Hazards hazards;
  board.enter_read(hazards, slot);
  return hazards;
}

Hazards writes(Scoreboard& board, std::uint32_t slot, int engine) {
  Hazards hazards;
  board.enter_write(hazards, slot, engine);
  return hazards;
}

void a_read_waits_for_the_write_before_it() {
  Scoreboard board;
  board.grow(2);
  const Hazards write = writes(board, 1, kOne);
  const Hazards read = reads(board, 1);
  EXPECT(board.blocking(write) == -1);
  EXPECT(board.blocking(read) == 1);
  board.watch(1, kOther);
  EXPECT(board.release(write) == 1u << kOther);
  EXPECT(board.blocking(read) == -1);
}

void a_write_waits_for_the_reads_before_it_and_for_no_later_ones() {
  Scoreboard board;
  board.grow(1);
  const Hazards first = reads(board, 0);
  const Hazards write = writes(board, 0, kOne);
  const Hazards second = reads(board, 0);
  EXPECT(board.blocking(write) == 0);
  EXPECT(board.blocking(second) == 0);
  board.release(first);
  EXPECT(board.blocking(write) == -1);
  EXPECT(board.blocking(second) == 0);
  EXPECT(board.pending_reads(0) == 1);
  EXPECT(board.pending_writes(0) == 1);
}

void writes_of_one_engine_pipeline_and_those_of_two_do_not() {
  Scoreboard board;
  board.grow(1);
  const Hazards a = writes(board, 0, kOne);
  const Hazards b = writes(board, 0, kOne);
  const Hazards c = writes(board, 0, kOther);
  const Hazards d = writes(board, 0, kOther);
  EXPECT(board.blocking(b) == -1);
  EXPECT(board.blocking(c) == 0);
  board.release(b);  // out of order
  EXPECT(board.blocking(c) == 0);
  EXPECT(board.blocking(d) == 0);
  board.release(a);
  EXPECT(board.blocking(c) == -1);
  EXPECT(board.blocking(d) == -1);
}

void a_command_does_not_wait_for_itself() {
  Scoreboard board;
  board.grow(1);
  Hazards in_place;
  board.enter_read(in_place, 0);
  board.enter_write(in_place, 0, kOne);
  Hazards again;
  board.enter_read(again, 0);
  board.enter_write(again, 0, kOne);
  EXPECT(board.blocking(in_place) == -1);
  EXPECT(board.blocking(again) == 0);
  board.release(in_place);
  EXPECT(board.blocking(again) == -1);
}

}  // namespace
}  // namespace sim

int main() {
  sim::a_read_waits_for_the_write_before_it();
  sim::a_write_waits_for_the_reads_before_it_and_for_no_later_ones();
  sim::writes_of_one_engine_pipeline_and_those_of_two_do_not();
  sim::a_command_does_not_wait_for_itself();
  return sim::failures != 0;
}
