// SPDX-License-Identifier: Apache-2.0
//
// GPU memory for tests. The GPUs are softgpu's: a program that dereferences a device pointer gets
// a fault, and the driver has to copy the bytes to be compared.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tests/beds/softgpu/process.h"
#include "tests/plugin/contract/flow.h"

namespace beeline::test {

// As long as it lives, data that NICs write to GPU memory stays hidden until a READ or a flush by
// the driver.
class Hiding {
 public:
  Hiding() { hide_gpu_writes(true); }
  Hiding(const Hiding&) = delete;
  Hiding& operator=(const Hiding&) = delete;
  ~Hiding() { hide_gpu_writes(false); }
};

// This process's CUDA driver. The first call loads it; from then on the plugin finds it too.
Cuda& cuda();
// Makes the GPU's context current in the calling thread, as it is when NCCL is called.
void start_gpu(int gpu = 0);

// Host memory, or GPU memory and how it is registered.
enum class Kind { kHost, kDmabuf, kPeermem };
inline constexpr std::array kKinds = {Kind::kHost, Kind::kDmabuf, Kind::kPeermem};
std::ostream& operator<<(std::ostream& out, Kind kind);

// GPU memory that checks all of its bytes, as `Memory` does on the host. It is allocated on the GPU
// whose context is current.
class GpuMemory {
 public:
  // Starts `skip` bytes after a page boundary.
  explicit GpuMemory(size_t size, size_t skip = 0);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();

  size_t size() const noexcept { return size_; }
  uint8_t* at(size_t offset = 0) const noexcept;  // a device pointer
  void fill(size_t offset, size_t size, uint32_t seed);
  void expect(size_t offset, size_t size, uint32_t seed);
  void must_hold() const;
  bool holds(size_t offset, size_t size) const;

  static constexpr size_t kGuard = Memory::kGuard;

 private:
  std::vector<uint8_t> look(size_t from, size_t size) const;

  size_t size_;
  size_t before_;               // bytes of the allocation
  std::vector<uint8_t> image_;  // of the whole allocation
  DevicePtr allocation_ = 0;
};

// Register a range of GPU memory as NCCL does: the descriptor of a dma-buf is closed at once.
struct Registered {
  ncclResult_t result;
  void* mhandle;
};
Registered try_reg_dmabuf(Net& net, const Comm& comm, uint8_t* start, size_t size);
Registered try_reg_pointer(Net& net, const Comm& comm, uint8_t* start, size_t size);
Mr reg_gpu(Net& net, const Comm& comm, Kind kind, uint8_t* start, size_t size);

// Memory of any kind, registered.
class AnyBuffer {
 public:
  AnyBuffer(Net& net, const Comm& comm, Kind kind, size_t size, size_t skip = 0);
  AnyBuffer(const End& end, Kind kind, size_t size, size_t skip = 0)
      : AnyBuffer(end.net(), end.comm, kind, size, skip) {}

  Kind kind() const noexcept { return kind_; }
  Part part(size_t offset, size_t size, int tag = 0) const {
    return {at(offset), size, tag, mr_.raw()};
  }
  Mr& mr() noexcept { return mr_; }
  uint8_t* at(size_t offset = 0) const;
  void fill(size_t offset, size_t size, uint32_t seed);
  void expect(size_t offset, size_t size, uint32_t seed);
  void must_hold() const;
  bool holds(size_t offset, size_t size) const;

 private:
  Kind kind_;
  std::variant<std::unique_ptr<Memory>, std::unique_ptr<GpuMemory>> memory_;
  Mr mr_;
};
// One of each kind.
std::vector<AnyBuffer> one_of_each(const End& end, size_t size, size_t skip = 0);

// The flow of flow.h, with a GPU in use at both ends.
void run_gpu_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver);
inline void run_gpu_flow(const SenderBody& sender, const ReceiverBody& receiver) {
  run_gpu_flow(usual_way(), sender, receiver);
}
// Runs the body in a process of its own with a GPU in use.
void run_with_gpu(const std::function<void()>& body);
// Moves one message and flushes what was received.
void carry_and_flush(Net& net, const Link& link, const Part& from, const Part& to);
// The same with the seed's pattern, which must then be in `to`.
void must_carry(Net& net, const Link& link, AnyBuffer& from, AnyBuffer& to, size_t size,
                uint32_t seed);

// Throws if NICs still have GPU memory pinned, or if a handle of such memory is open.
void must_hold_no_gpu_memory();

}  // namespace beeline::test
