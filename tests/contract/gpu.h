// SPDX-License-Identifier: Apache-2.0
//
// GPU memory as a program with a GPU hands it to the plugin. The GPUs are softgpu's, so a processor
// that touches a device pointer dies, and the test with it; what the bytes are is asked of the
// driver.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "tests/contract/flow.h"
#include "tests/softgpu/process.h"

namespace beeline::test {

// An environment variable as long as the object lives; null: not set. Before processes are made.
class Variable {
 public:
  Variable(const char* name, const char* value);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable();

 private:
  const char* name_;
  bool was_set_;
  std::string before_;
};

// As long as it lives, what NICs write to GPU memory stays beside it until a READ.
class Hiding {
 public:
  Hiding() { hide_gpu_writes(true); }
  Hiding(const Hiding&) = delete;
  Hiding& operator=(const Hiding&) = delete;
  ~Hiding() { hide_gpu_writes(false); }
};

// This process's driver. Who asks first loads it: from then on the plugin finds it too.
Cuda& cuda();
// A GPU in use, as when NCCL is called; it is the calling thread's.
void start_gpu(int gpu = 0);

// What memory it is, and how the plugin is told of it.
enum class Kind { kHost, kDmabuf, kPeermem };
inline constexpr std::array kKinds = {Kind::kHost, Kind::kDmabuf, Kind::kPeermem};
std::ostream& operator<<(std::ostream& out, Kind kind);

// GPU memory of which every byte is accounted for, as `Memory` does for that of the host. On the
// GPU that is the thread's when it is made.
class GpuMemory {
 public:
  // Lies `skip` bytes behind a page's start.
  explicit GpuMemory(size_t size, size_t skip = 0);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  ~GpuMemory();

  size_t size() const noexcept { return size_; }
  uint8_t* at(size_t offset = 0) const noexcept;  // an address for the plugin, not for us
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

// Registers a range of GPU memory as NCCL does: the descriptor of a dma-buf is closed at once.
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
// A process of its own with a GPU in use.
void run_with_gpu(const std::function<void()>& body);
// Sends one message, flushes where it is to be flushed, and looks at it.
void must_carry(Net& net, const Link& link, AnyBuffer& from, AnyBuffer& to, size_t size,
                uint32_t seed);

// NICs have nothing of GPU memory, and no handle of any is open.
void must_hold_no_gpu_memory();

}  // namespace beeline::test
