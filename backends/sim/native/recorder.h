// A processing element as the process that runs a kernel's code has it: it records commands.
#ifndef BACKENDS_SIM_NATIVE_RECORDER_H_
#define BACKENDS_SIM_NATIVE_RECORDER_H_

#include "backends/sim/native/device/device.h"
#include "backends/sim/native/stream.h"

namespace sim {

// What a program may know of the chip that it runs on.
struct Shape {
  device::Index count;
  device::Index rows;
  device::Index columns;
  device::Index most_scalars;  // operations without a command; 0: no limit
};

// Nothing that a program asks of a command depends on what the command does, but for numbers. So the
// program runs ahead of the simulation, until it waits for one.
class Recorder final : public device::Pe {
 public:
  Recorder(const Shape& shape, device::Index id) : shape_(shape), id_(id) {}
  Recorder(const Recorder&) = delete;
  ~Recorder() override;

  void start(device::Program program) { program_ = program; }
  // Goes on until about so many bytes are recorded, or the program ends or waits for a number.
  // `number`: what it waited for.
  void run(device::Index number);
  const Writer& written() const { return out_; }
  // Adds the number that the program waits for, which `Reader::asked` reads.
  void put_asked(Writer& into) const;

  device::Index id() const override { return id_; }
  device::Index count() const override { return shape_.count; }
  device::Index rows() const override { return shape_.rows; }
  device::Index columns() const override { return shape_.columns; }
  device::Buffer buffer(const char* name, device::Dtype dtype, device::Box box,
                        device::Index stages) override;
  device::Issued load(const device::Tile& to, device::Tensor from, const device::Region& region,
                      device::Outside outside) override;
  device::Issued load_shared(const device::Tile& to, device::Tensor from,
                             const device::Region& region, device::Group group,
                             device::Outside outside) override;
  device::Number number(device::Tensor from, device::List<device::Index> position) override;
  device::Issued store(device::Tensor to, const device::Region& region,
                       const device::Tile& from) override;
  device::Issued add(device::Tensor to, const device::Region& region,
                     const device::Tile& from) override;
  device::Issued send(device::Index to_pe, const device::Tile& from,
                      const device::Box& box) override;
  device::Issued receive(const device::Tile& to, device::Index from_pe,
                         const device::Box& box) override;
  device::Issued receive(const device::Tile& to, device::Index from_pe, const device::Box& box,
                         device::Reduction reduction) override;
  device::Issued map(device::Op op, const device::Tile& to, device::Operands from,
                     const device::Box& box) override;
  device::Issued fill(const device::Tile& to, double value, const device::Box& box) override;
  device::Issued iota(const device::Tile& to, device::Axis axis, device::Index start,
                      const device::Box& box) override;
  device::Issued bucketize(const device::Tile& to, const device::Tile& values,
                           const device::Tile& borders, device::Axis axis, device::Index count,
                           const device::Box& box) override;
  device::Issued take(const device::Tile& to, const device::Tile& table, device::Axis axis,
                      device::Index count, const device::Tile& at,
                      const device::Box& box) override;
  device::Issued reduce(device::Reduction reduction, const device::Tile& to,
                        const device::Tile& from, const device::Box& box,
                        bool accumulate) override;
  device::Issued scan(device::Reduction reduction, const device::Tile& to,
                      const device::Tile& from, device::Axis axis, const device::Tile& carry,
                      const device::Box& box) override;
  device::Issued matmul(const device::Tile& to, const device::Tile& a, const device::Tile& b,
                        const device::Box& box, bool accumulate) override;
  device::Issued barrier() override;
  void scalars(device::Index operations) override;

 protected:
  void park(std::coroutine_handle<> program) override;
  void await_number(std::coroutine_handle<> program, device::Number* into) override;

 private:
  void begin(Record record);
  void next(Record record);  // of a command; ends a program that records without end
  template <class... Parts>
  device::Issued command(Record record, const Parts&... parts);

  const Shape& shape_;
  device::Index id_;
  device::Program program_{};
  Writer out_;
  device::Index scalars_ = 0;  // since the last command
  std::uint32_t buffers_ = 0;
  std::uint32_t slots_ = 0;
  device::Number* waited_ = nullptr;
  device::Tensor asked_from_{};  // of the last number
  device::List<device::Index> asked_at_;
  bool ended_ = false;
};

}  // namespace sim

#endif  // BACKENDS_SIM_NATIVE_RECORDER_H_
