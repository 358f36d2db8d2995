// Global memory as processing elements see it: requests over the mesh to banks of shared memory,
// which are a write-through cache in front of DRAM. Time only; values lie in the tensors.
#ifndef BACKENDS_SIM_NATIVE_MEMORY_H_
#define BACKENDS_SIM_NATIVE_MEMORY_H_

#include <deque>
#include <vector>

#include "backends/sim/native/cache.h"
#include "backends/sim/native/dram.h"
#include "backends/sim/native/events.h"
#include "backends/sim/native/mesh.h"
#include "backends/sim/native/transfer.h"

namespace sim {

// What to do when all requests of one transfer have been served. Lives until then.
struct Delivery {
  struct Receiver {
    int node = 0;
    Event done{};
    Time latest = 0;
  };
  std::vector<Receiver> receivers;  // more than one: a broadcast
  int pending = 0;
  bool closed = false;  // no more requests come
};

class Memory {
 public:
  Memory(const Spec& spec, Events& events, Mesh& mesh, Index bytes);

  Delivery* open();
  // A request that leaves `node` in cycle `at`.
  void read(Time at, int node, const Chunk& chunk, Delivery* delivery);
  void write(Time at, int node, const Chunk& chunk, Delivery* delivery, bool add);
  // No more requests. Each receiver is told when its last byte is there, not before `earliest`.
  void close(Delivery* delivery, Time earliest);

  const Dram& dram() const { return dram_; }
  Index read_bytes() const { return read_bytes_; }    // out of shared memory
  Index write_bytes() const { return write_bytes_; }  // into it
  Ticks busy() const;                                 // of the banks, summed

 private:
  struct Request {
    Memory* memory;
    Delivery* delivery;
    Chunk chunk;
    Index bank;
    int node;
    bool add;
  };
  Request* make(const Chunk& chunk, int node, Delivery* delivery, bool add);
  int node_of(Index bank) const { return bank_nodes_[static_cast<std::size_t>(bank)]; }

  // The stages of a read: the request is at the bank; the bank has the bytes.
  void read_at_bank(Request& request);
  void reply(Request& request);
  // The stages of a write: the bytes leave the PE; they are at the bank.
  void leave(Request& request);
  void write_at_bank(Request& request);
  Time fetch(Request& request, Time at);
  void served(Request& request);
  void finish(Delivery* delivery);

  template <void (Memory::*stage)(Request&)>
  static Event event(Request& request) {
    return {[](void* what) {
              auto& r = *static_cast<Request*>(what);
              (r.memory->*stage)(r);
            },
            &request};
  }

  const Spec& spec_;
  Events& events_;
  Mesh& mesh_;
  Cache cache_;
  Dram dram_;
  std::vector<Pipe> banks_;
  std::vector<int> bank_nodes_;
  std::deque<Request> requests_;
  std::vector<Request*> free_requests_;
  std::deque<Delivery> deliveries_;
  std::vector<Delivery*> free_deliveries_;
  Index read_bytes_ = 0;
  Index write_bytes_ = 0;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_MEMORY_H_
