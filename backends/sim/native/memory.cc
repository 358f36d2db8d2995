#include "backends/sim/native/memory.h"

#include <algorithm>

namespace sim {

Memory::Memory(const Spec& spec, Events& events, Mesh& mesh, Index bytes)
    : spec_(spec), events_(events), mesh_(mesh),
      cache_(spec.shared.bytes / spec.shared.block_bytes, bytes / spec.shared.block_bytes + 1),
      dram_(spec.dram), banks_(static_cast<std::size_t>(spec.shared.banks)) {
  for (Index bank = 0; bank < spec.shared.banks; ++bank)
    bank_nodes_.push_back(mesh.bank_node(bank, spec.shared.banks));
}

Delivery* Memory::open() {
  if (free_deliveries_.empty()) {
    deliveries_.emplace_back();
    free_deliveries_.push_back(&deliveries_.back());
  }
  Delivery* delivery = free_deliveries_.back();
  free_deliveries_.pop_back();
  delivery->receivers.clear();
  delivery->pending = 0;
  delivery->closed = false;
  return delivery;
}

Memory::Request* Memory::make(const Chunk& chunk, int node, Delivery* delivery, bool add) {
  if (free_requests_.empty()) {
    requests_.emplace_back();
    free_requests_.push_back(&requests_.back());
  }
  Request* request = free_requests_.back();
  free_requests_.pop_back();
  const Index bank = interleave(chunk.address / spec_.shared.block_bytes, spec_.shared.banks);
  *request = {this, delivery, chunk, bank, node, add};
  ++delivery->pending;
  return request;
}

void Memory::read(Time at, int node, const Chunk& chunk, Delivery* delivery) {
  Request* request = make(chunk, node, delivery, false);
  events_.at(at + mesh_.delay(node, node_of(request->bank)),
             event<&Memory::read_at_bank>(*request));
}

void Memory::write(Time at, int node, const Chunk& chunk, Delivery* delivery, bool add) {
  events_.at(at, event<&Memory::leave>(*make(chunk, node, delivery, add)));
}

Time Memory::fetch(Request& request, Time at) {
  const Index block = request.chunk.address / spec_.shared.block_bytes;
  const Time held = cache_.find(block, request.chunk.sectors);
  if (held >= 0) return std::max(at, held);
  const Time ready = dram_.read(at, block * spec_.shared.block_bytes, spec_.shared.block_bytes);
  cache_.put(block, ~std::uint64_t{0}, ready);
  return ready;
}

void Memory::read_at_bank(Request& request) {
  Pipe& bank = banks_[static_cast<std::size_t>(request.bank)];
  const Ticks length =
      ticks_for(static_cast<double>(request.chunk.bytes), spec_.shared.bytes_per_cycle);
  const Time read =
      cycles(bank.reserve(ticks(events_.now()), length)) + spec_.shared.latency_cycles;
  read_bytes_ += request.chunk.bytes;
  events_.at(fetch(request, read), event<&Memory::reply>(request));
}

void Memory::reply(Request& request) {
  mesh_.start_broadcast(events_.now(), node_of(request.bank), request.chunk.bytes);
  for (Delivery::Receiver& receiver : request.delivery->receivers)
    receiver.latest = std::max(receiver.latest, mesh_.branch(receiver.node));
  served(request);
}

void Memory::leave(Request& request) {
  const Time arrival = mesh_.send(events_.now(), request.node, node_of(request.bank),
                                  request.chunk.bytes, Mesh::End::bank);
  events_.at(arrival, event<&Memory::write_at_bank>(request));
}

void Memory::write_at_bank(Request& request) {
  const Index block = request.chunk.address / spec_.shared.block_bytes;
  Pipe& bank = banks_[static_cast<std::size_t>(request.bank)];
  const Ticks length =
      ticks_for(static_cast<double>(request.chunk.bytes), spec_.shared.bytes_per_cycle);
  Time at = cycles(bank.reserve(ticks(events_.now()), request.add ? 2 * length : length));
  write_bytes_ += request.chunk.bytes;
  if (request.add) {  // read, then write
    read_bytes_ += request.chunk.bytes;
    at = fetch(request, at + spec_.shared.latency_cycles);
  }
  cache_.put(block, request.chunk.sectors, at + spec_.shared.latency_cycles);
  const Time taken = dram_.write(at, request.chunk.address, request.chunk.bytes);
  for (Delivery::Receiver& receiver : request.delivery->receivers)
    receiver.latest =
        std::max(receiver.latest, taken + mesh_.delay(node_of(request.bank), receiver.node));
  served(request);
}

void Memory::served(Request& request) {
  Delivery* delivery = request.delivery;
  free_requests_.push_back(&request);
  if (--delivery->pending == 0 && delivery->closed) finish(delivery);
}

void Memory::close(Delivery* delivery, Time earliest) {
  delivery->closed = true;
  for (Delivery::Receiver& receiver : delivery->receivers)
    receiver.latest = std::max(receiver.latest, earliest);
  if (delivery->pending == 0) finish(delivery);
}

void Memory::finish(Delivery* delivery) {
  for (const Delivery::Receiver& receiver : delivery->receivers)
    events_.at(std::max(receiver.latest, events_.now()), receiver.done);
  free_deliveries_.push_back(delivery);
}

Ticks Memory::busy() const {
  Ticks sum = 0;
  for (const Pipe& bank : banks_) sum += bank.busy();
  return sum;
}

}  // namespace sim
