#include "backends/sim/native/transfer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/sim/native/error.h"
#include "backends/sim/native/value.h"

namespace sim {
namespace {

// Elements that a transfer moves, or positions that it reads, at most: more than any local memory has.
constexpr Index kMostMoved = Index{1} << 26;
constexpr Index kFarthestStart = Index{1} << 60;  // which a step and an extent do not pass

void check_slice(const TensorInfo& tensor, int d, const device::Slice& slice) {
  if (slice.extent < 0)
    fail("dimension ", d, " of '", tensor.name, "' has extent ", slice.extent);
  if (slice.step < 1)
    fail("dimension ", d, " of '", tensor.name, "' has step ", slice.step, "; at least 1");
  if (slice.extent > kFarthest || slice.step > kFarthest || slice.start < -kFarthestStart ||
      slice.start > kFarthestStart)
    fail("dimension ", d, " of '", tensor.name, "' starts at ", slice.start, " with extent ",
         slice.extent, " and step ", slice.step);
  if (slice.axis == device::kNoAxis && slice.extent != 1)
    fail("dimension ", d, " of '", tensor.name, "' has extent ", slice.extent, " but no axis");
}

void check_range(const TensorInfo& tensor, int d, const device::Slice& slice, bool padded) {
  if (slice.rows != nullptr || padded || slice.extent == 0) return;
  const Index last = slice.start + slice.step * (slice.extent - 1);
  if (slice.start < 0 || last >= tensor.extent[d])
    fail("the region leaves '", tensor.name, "': positions ", slice.start, " .. ", last,
         " along dimension ", d, ", whose extent is ", tensor.extent[d]);
}

void resolve_rows(const device::Slice& slice, LocalMemory& memory, Dimension& dimension) {
  const Tile& rows = *slice.rows;
  const Box one{device::Span{slice.axis, slice.extent}};
  start_walk(dimension.rows, slice.along.size > 0 ? slice.along : one);
  if (dimension.rows.elements() > kMostMoved)
    fail("there are ", dimension.rows.elements(), " positions; at most ", kMostMoved);
  add_tile(dimension.rows, rows, memory);
  if (!is_index(rows.dtype))
    fail("positions are ", name_of(rows.dtype), " (buffer '", memory.buffer_of(rows.slot).name,
         "'); they must be i32 or i64");
  dimension.indirect = true;
}

void join_axis(Box& box, device::Span span) {
  for (const device::Span& other : box) {
    if (other.axis != span.axis) continue;
    if (other.extent != span.extent)
      fail("axis ", span.axis, " of the region has extents ", other.extent, " and ", span.extent);
    return;
  }
  box.add(span);
}

// The axes that a region runs along, each once where dimensions may go together.
Box axes_of(const device::Region& region, bool scattered) {
  Box box;
  for (const device::Slice& slice : region) {
    for (const device::Span& span : slice.along) join_axis(box, span);
    if (slice.axis == device::kNoAxis) continue;
    if (scattered)
      join_axis(box, {slice.axis, slice.extent});
    else
      box.add({slice.axis, slice.extent});
  }
  return box;
}

}  // namespace

void resolve(Transfer& transfer, const TensorInfo& tensor, const device::Region& region,
             const Tile& tile, device::Outside outside, LocalMemory& memory, Walk& walk) {
  if (region.size != tensor.rank)
    fail("the region has ", region.size, " dimensions, '", tensor.name, "' has ", tensor.rank);
  transfer.scattered = false;
  for (int d = 0; d < region.size; ++d) {
    check_slice(tensor, d, region.at[d]);
    transfer.axis[d] = region.at[d].axis;
    transfer.scattered = transfer.scattered || region.at[d].along.size > 0;
  }
  start_walk(walk, axes_of(region, transfer.scattered));
  if (walk.elements() > kMostMoved)
    fail("the region has ", walk.elements(), " elements; at most ", kMostMoved);
  add_tile(walk, tile, memory);
  if (tile.dtype != tensor.dtype)
    fail("'", tensor.name, "' is ", name_of(tensor.dtype), ", buffer '",
         memory.buffer_of(tile.slot).name, "' is ", name_of(tile.dtype), "; DMA does not convert");
  transfer.tensor = &tensor;
  transfer.padded = outside.allowed;
  transfer.pad = outside.value;
  for (int d = 0; d < region.size; ++d) {
    const device::Slice& slice = region.at[d];
    Dimension& dimension = transfer.dimension[d];
    dimension = Dimension{};
    dimension.start = slice.start;
    dimension.step = slice.step;
    dimension.extent = slice.extent;
    check_range(tensor, d, slice, outside.allowed);
    if (slice.axis == device::kNoAxis) {
      if (slice.rows != nullptr) resolve_rows(slice, memory, dimension);
      continue;
    }
    const Loop& loop = walk.loop[walk.find(slice.axis)];
    if (loop.has == 0 && slice.extent > 1)
      fail("the tile of buffer '", memory.buffer_of(tile.slot).name, "' lacks axis ", slice.axis,
           " of the region");
    dimension.tile_stride = loop.stride[0];
    if (slice.rows != nullptr) resolve_rows(slice, memory, dimension);
  }
  if (transfer.scattered) transfer.box = walk;
}

namespace {

// An arbitrary but fixed spread, for positions whose values are not simulated.
Index spread(Index i, Index extent) {
  if (extent == 0) return 0;
  const auto mixed = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15ull;
  return static_cast<Index>((mixed >> 20) % static_cast<std::uint64_t>(extent));
}

void find_indirect(const Dimension& dimension, Index extent, LocalMemory* memory,
                   std::vector<Index>& out) {
  const View& rows = dimension.rows.view[0];
  const Index count = dimension.rows.elements();
  if (memory == nullptr) {
    for (Index i = 0; i < count; ++i) out[i] = spread(rows.slot + i, extent);
    return;
  }
  const std::byte* data = memory->slot(rows.slot).data;
  const Index none[kOperands] = {rows.offset};
  Index* to = out.data();
  for_positions(dimension.rows, 0, dimension.rows.loops, none, [&](const Index(&at)[kOperands]) {
    read_integers(rows.dtype, data + at[0] * size_of(rows.dtype), 1, 1, to++);
  });
}

// The position of an entry, which may be any number; one beyond all numbers is the last of them.
Index position_of(const Dimension& dimension, Index entry) {
  Index moved, position;
  if (__builtin_mul_overflow(dimension.step, entry, &moved) ||
      __builtin_add_overflow(dimension.start, moved, &position))
    return std::numeric_limits<Index>::max();
  return position;
}

// A position along a dimension, -1 for one that is outside and may be.
Index checked(const Transfer& transfer, int d, Index position) {
  const Index extent = transfer.tensor->extent[d];
  const bool outside = position < 0 || position >= extent;
  if (outside && !transfer.padded)
    fail("position ", position, " along dimension ", d, " of '", transfer.tensor->name,
         "' is out of range; its extent is ", extent);
  return outside ? -1 : position;
}

// How far the entries of one dimension's positions move along each loop of the transfer's box.
void strides_of(const Transfer& transfer, int d, Index (&stride)[device::kMaxRank]) {
  const Walk& box = transfer.box;
  const Dimension& dimension = transfer.dimension[d];
  for (int i = 0; i < box.loops; ++i) stride[i] = 0;
  if (!dimension.indirect || dimension.rows.loops == 0) {
    const int i = box.find(transfer.axis[d]);
    if (i < box.loops) stride[i] = 1;
    return;
  }
  Index step = 1;
  for (int j = dimension.rows.loops - 1; j >= 0; --j) {
    const int i = box.find(dimension.rows.loop[j].axis);
    if (i < box.loops) stride[i] = step;
    step *= dimension.rows.loop[j].extent;
  }
}

// Adds what one dimension's positions give to the elements of a scattered transfer.
void add_dimension(const Transfer& transfer, int d, const std::vector<Index>& along,
                   std::vector<Index>& out) {
  Index stride[device::kMaxRank];
  strides_of(transfer, d, stride);
  const Walk& box = transfer.box;
  Index at[device::kMaxRank] = {};
  Index entry = 0;
  for (Index& element : out) {
    const Index position = along[static_cast<std::size_t>(entry)];
    element = element < 0 || position < 0 ? -1 : element + position * transfer.tensor->stride[d];
    for (int i = box.loops - 1; i >= 0; --i) {
      entry += stride[i];
      if (++at[i] < box.loop[i].extent) break;
      entry -= stride[i] * box.loop[i].extent;
      at[i] = 0;
    }
  }
}

}  // namespace

void find_positions(const Transfer& transfer, LocalMemory* memory, Positions& out) {
  const TensorInfo& tensor = *transfer.tensor;
  std::vector<Index> elements;
  if (transfer.scattered) elements.assign(static_cast<std::size_t>(transfer.box.elements()), 0);
  for (int d = 0; d < tensor.rank; ++d) {
    const Dimension& dimension = transfer.dimension[d];
    const Index count = dimension.indirect ? dimension.rows.elements() : dimension.extent;
    std::vector<Index>& at = out.at[d];
    at.resize(static_cast<std::size_t>(count));
    if (dimension.indirect) {
      find_indirect(dimension, tensor.extent[d], memory, at);
    } else {
      for (Index i = 0; i < count; ++i) at[i] = i;
    }
    for (Index i = 0; i < count; ++i)
      at[i] = checked(transfer, d, position_of(dimension, at[i]));
    if (transfer.scattered) add_dimension(transfer, d, at, elements);
  }
  if (transfer.scattered) out.at[0] = std::move(elements);
}

namespace {

// The dimensions that move, and where the fixed ones put the start.
struct Plan {
  int rank = 0;
  int dimension[device::kMaxRank];
  Index base = 0;        // elements into the tensor
  bool outside = false;  // a fixed position lies outside
  bool empty = false;
};

Plan plan(const Transfer& transfer, const Positions& positions) {
  Plan plan;
  for (int d = 0; d < transfer.tensor->rank; ++d) {
    const std::vector<Index>& at = positions.at[d];
    if (at.empty()) plan.empty = true;
    if (at.size() != 1) {
      plan.dimension[plan.rank++] = d;
    } else if (at[0] < 0) {
      plan.outside = true;
    } else {
      plan.base += at[0] * transfer.tensor->stride[d];
    }
  }
  return plan;
}

// Calls visit(first, count, tensor element, tile element) for pieces of the innermost dimension
// that are consecutive in the tensor; the tensor element is -1 for a piece outside it.
template <class Visit>
class Pieces {
 public:
  Pieces(const Transfer& transfer, const Positions& positions, Visit visit)
      : transfer_(transfer), positions_(positions), visit_(visit) {
    if (!transfer.scattered) plan_ = plan(transfer, positions);
  }

  void run() {
    if (transfer_.scattered) return elements();
    if (plan_.empty) return;
    if (plan_.rank == 0) return visit_(Index{1}, plan_.outside ? -1 : plan_.base, Index{0});
    descend(0, plan_.base, 0, plan_.outside);
  }

 private:
  void descend(int level, Index element, Index tile, bool outside) {
    const int d = plan_.dimension[level];
    const std::vector<Index>& at = positions_.at[d];
    const Index stride = transfer_.tensor->stride[d];
    const Index tile_stride = transfer_.dimension[d].tile_stride;
    const auto n = static_cast<Index>(at.size());
    if (level == plan_.rank - 1) return inner(at, n, stride, tile_stride, element, tile, outside);
    for (Index i = 0; i < n; ++i)
      descend(level + 1, element + std::max<Index>(at[i], 0) * stride, tile + i * tile_stride,
              outside || at[i] < 0);
  }

  // Single elements; those that are contiguous along the box's last loop are one piece.
  void elements() {
    const Walk& box = transfer_.box;
    const std::vector<Index>& at = positions_.at[0];
    const Index row = box.loops == 0 ? 1 : box.loop[box.loops - 1].extent;
    const Index none[kOperands] = {};
    auto first = at.begin();
    for_positions(box, 0, std::max(0, box.loops - 1), none, [&](const Index(&tile)[kOperands]) {
      for (Index i = 0; i < row;) {
        Index end = i + 1;
        const bool hole = first[i] < 0;
        while (end < row && (hole ? first[end] < 0 : first[end] == first[end - 1] + 1)) ++end;
        const Index step = box.loops == 0 ? 0 : box.loop[box.loops - 1].stride[0];
        visit_(end - i, hole ? -1 : first[i], tile[0] + i * step);
        i = end;
      }
      first += row;
    });
  }

  void inner(const std::vector<Index>& at, Index n, Index stride, Index tile_stride,
             Index element, Index tile, bool outside) {
    for (Index i = 0; i < n;) {
      Index end = i + 1;
      const bool hole = outside || at[i] < 0;
      if (hole) {
        while (end < n && (outside || at[end] < 0)) ++end;
      } else if (stride == 1) {
        while (end < n && at[end] == at[end - 1] + 1) ++end;
      }
      visit_(end - i, hole ? -1 : element + at[i] * stride, tile + i * tile_stride);
      i = end;
    }
  }

  const Transfer& transfer_;
  const Positions& positions_;
  Plan plan_;
  Visit visit_;
};

Index inner_tile_stride(const Transfer& transfer, const Positions& positions) {
  const Walk& box = transfer.box;
  if (transfer.scattered) return box.loops == 0 ? 1 : box.loop[box.loops - 1].stride[0];
  const Plan p = plan(transfer, positions);
  return p.rank == 0 ? 1 : transfer.dimension[p.dimension[p.rank - 1]].tile_stride;
}

void fill(Dtype dtype, std::byte* data, Index stride, Index n, double value) {
  for (Index i = 0; i < n; ++i)
    write_double(dtype, data + i * stride * size_of(dtype), value);
}

void copy(std::byte* to, Index to_stride, const std::byte* from, Index from_stride, Index n,
          int size) {
  if (to_stride == 1 && from_stride == 1) {
    std::copy(from, from + n * size, to);
    return;
  }
  for (Index i = 0; i < n; ++i)
    std::copy(from + i * from_stride * size, from + (i * from_stride + 1) * size,
              to + i * to_stride * size);
}

void accumulate(Dtype dtype, std::byte* to, const std::byte* from, Index from_stride, Index n) {
  const int size = size_of(dtype);
  for (Index i = 0; i < n; ++i) {
    std::byte* sum = to + i * size;
    const std::byte* item = from + i * from_stride * size;
    if (is_float(dtype)) {
      float a, b;
      read_floats(dtype, sum, 1, 1, &a);
      read_floats(dtype, item, 1, 1, &b);
      a += b;
      write_floats(dtype, sum, 1, 1, &a);
    } else {
      std::int64_t a, b;
      read_integers(dtype, sum, 1, 1, &a);
      read_integers(dtype, item, 1, 1, &b);
      a = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      write_integers(dtype, sum, 1, 1, &a);
    }
  }
}

}  // namespace

void move(const Transfer& transfer, const Positions& positions, Move how, std::byte* tile,
          Races& races, Index pe) {
  const TensorInfo& tensor = *transfer.tensor;
  const int size = size_of(tensor.dtype);
  const Index stride = inner_tile_stride(transfer, positions);
  Pieces(transfer, positions, [&](Index n, Index element, Index at) {
    std::byte* local = tile + at * size;
    std::byte* global = tensor.data + element * size;
    if (element >= 0) races.touch(tensor, element, n, how, pe);
    if (how == Move::load && element < 0) {
      fill(tensor.dtype, local, stride, n, transfer.pad);
    } else if (how == Move::load) {
      copy(local, stride, global, 1, n, size);
    } else if (how == Move::store) {
      copy(global, 1, local, stride, n, size);
    } else {
      accumulate(tensor.dtype, global, local, stride, n);
    }
  }).run();
}

std::uint64_t sectors_of(Index address, Index bytes, Index block_bytes) {
  const Index sector = (block_bytes + 63) / 64;
  const Index first = address % block_bytes / sector;
  const Index last = (address % block_bytes + bytes - 1) / sector;
  const std::uint64_t upto = last >= 63 ? ~std::uint64_t{0} : (std::uint64_t{1} << (last + 1)) - 1;
  return upto & ~((std::uint64_t{1} << first) - 1);
}

void find_chunks(const Transfer& transfer, const Positions& positions, const Spec& spec,
                 std::vector<Chunk>& out) {
  out.clear();
  const TensorInfo& tensor = *transfer.tensor;
  const int size = size_of(tensor.dtype);
  const Index block = spec.shared.block_bytes;
  const Index sector = std::min(spec.dma.chunk_bytes, block);
  Index end = -1;  // where the piece before ended
  Pieces(transfer, positions, [&](Index n, Index element, Index) {
    if (element < 0) return;
    Index address = tensor.address + element * size;
    for (Index left = n * size; left > 0;) {
      const Index bytes = std::min(left, sector - address % sector);
      const bool same = !out.empty() && out.back().address / sector == address / sector &&
                        out.back().bytes + bytes <= sector;
      if (!same) out.push_back({address, 0, 0, 0});
      Chunk& chunk = out.back();
      chunk.bytes += bytes;
      chunk.runs += !same || address != end;
      chunk.sectors |= sectors_of(address, bytes, block);
      address += bytes;
      left -= bytes;
      end = address;
    }
  }).run();
}

}  // namespace sim
