// SPDX-License-Identifier: Apache-2.0
//
// Tests of buffers in GPU memory, with two GPUs of softgpu, whose memory the CPU cannot read.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "tests/support/catch.h"
#include "tools/perf/buffer.h"
#include "tools/perf/content.h"
#include "tools/perf/end.h"

namespace beeline::perf {
namespace {

// The settings of the machine do not apply.
RankMemory open_memory(MemoryChoice choice, int rank = 0) {
  for (const char* name : {"BEELINE_SYSFS_ROOT", "CUDA_VISIBLE_DEVICES", "NCCL_NET_FORCE_FLUSH"}) {
    ::unsetenv(name);
  }
  Outcome<RankMemory> memory = RankMemory::open(choice, rank);
  INFO((memory ? "" : memory.error().text));
  REQUIRE(memory);
  return std::move(*memory);
}

Buffer make_buffer(const RankMemory& memory, size_t size) {
  NetResult<Buffer> buffer = Buffer::make(memory, size);
  REQUIRE(buffer);
  return std::move(*buffer);
}

// Settings of GPUs that are opened from now on.
void set_gpus(const char* settings) {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(driver != nullptr);
  auto* const set = reinterpret_cast<const char* (*)(const char*)>(::dlsym(driver, "softgpu_set"));
  REQUIRE(set != nullptr);
  REQUIRE(set(settings) == nullptr);
}

// Accesses memory as a NIC would.
void write_byte(const RankMemory& memory, const std::uint8_t* where) {
  const std::uint8_t byte = 1;
  REQUIRE(memory.gpu()->copy_in(reinterpret_cast<gpu::DevicePtr>(where), &byte, 1));
}

Device device_with(int pointers, int force_flush = 0) {
  Device device;
  device.name = "nic0";
  device.props.ptrSupport = pointers;
  device.props.forceFlush = force_flush;
  return device;
}

// The last registration that the plugin got.
struct Registered {
  void* data = nullptr;
  size_t size = 0;
  int type = 0;
  std::uint64_t offset = 0;
  int fd = -1;
  bool open = false;
};
Registered registered;

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

// A plugin that accepts any registration and returns its address.
Net taking_net() {
  Net net;
  net.calls.regMr = [](void*, void* data, size_t size, int type, void** mr) {
    registered = {.data = data, .size = size, .type = type};
    *mr = data;
    return ncclSuccess;
  };
  net.calls.regMrDmaBuf = [](void*, void* data, size_t size, int type, std::uint64_t offset, int fd,
                             void** mr) {
    registered = {data, size, type, offset, fd, is_open(fd)};
    *mr = data;
    return ncclSuccess;
  };
  return net;
}

TEST_CASE("buffer: data that is stored on a GPU is read back", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kPeermem);
  const Buffer buffer = make_buffer(memory, 10'000);
  REQUIRE(buffer.address() != buffer.stage());
  CHECK(reinterpret_cast<std::uintptr_t>(buffer.address()) % host_page() == 0);

  const Piece piece{4000, 5000};
  fill(buffer.stage(piece.at), piece.size, 7);
  REQUIRE(buffer.store(piece));
  std::memset(buffer.stage(), 0, buffer.size());
  const auto fetched = buffer.fetch(piece);
  REQUIRE(fetched);
  CHECK(compare(*fetched, piece.size, 7).count == 0);
  CHECK(*buffer.stage(piece.at - 1) == 0);  // only this piece
  CHECK(*buffer.stage(piece.at + piece.size) == 0);
  const auto before = buffer.fetch({0, 1});
  REQUIRE(before);
  CHECK(**before == kPoison);
}

TEST_CASE("buffer: the fill pattern reaches the GPU", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kDmabuf);
  const Buffer buffer = make_buffer(memory, 100);
  write_byte(memory, buffer.address(10));
  REQUIRE(buffer.poison());
  *buffer.stage(10) = 0;
  CHECK(**buffer.fetch({0, buffer.size()}) == kPoison);
  CHECK(*buffer.stage(10) == kPoison);
}

TEST_CASE("buffer: a byte that a NIC wrote outside of it counts", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kDmabuf);
  const Buffer buffer = make_buffer(memory, 100);
  write_byte(memory, buffer.address(0));
  write_byte(memory, buffer.address(99));
  CHECK(*buffer.broken_guards() == 0);
  write_byte(memory, buffer.address() - 1);
  CHECK(*buffer.broken_guards() == 1);
  write_byte(memory, buffer.address(100));
  CHECK(*buffer.broken_guards() == 2);
}

TEST_CASE("buffer: host memory needs no staging buffer", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kHost);
  const Buffer buffer = make_buffer(memory, 100);
  CHECK(buffer.address(7) == buffer.stage(7));
  CHECK(*buffer.fetch({7, 1}) == buffer.stage(7));
}

TEST_CASE("buffer: a dma-buf is open only during the registration", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kDmabuf);
  const Buffer buffer = make_buffer(memory, 10'000);
  const Net net = taking_net();
  End end(net, nullptr, "an end");
  const auto mr = end.register_memory(buffer, 5'000);
  REQUIRE(mr);
  CHECK(*mr == buffer.address());
  CHECK(registered.data == buffer.address());
  CHECK(registered.size == 5'000);  // the dma-buf consists of whole pages, the region does not
  CHECK(registered.type == NCCL_PTR_CUDA);
  CHECK(registered.offset == 0);
  CHECK(registered.open);
  CHECK_FALSE(is_open(registered.fd));
}

TEST_CASE("buffer: the plugin gets the type of the memory", "[tools][memory]") {
  const Net net = taking_net();
  End end(net, nullptr, "an end");
  for (const auto& [choice, type] : {std::pair{MemoryChoice::kHost, NCCL_PTR_HOST},
                                     std::pair{MemoryChoice::kPeermem, NCCL_PTR_CUDA}}) {
    const RankMemory memory = open_memory(choice);
    const Buffer buffer = make_buffer(memory, 100);
    REQUIRE(end.register_memory(buffer, 100));
    CHECK(registered.data == buffer.address());
    CHECK(registered.type == type);
    CHECK(registered.fd == -1);
  }
}

TEST_CASE("buffer: registered memory is not freed, since NICs may still write to it",
          "[tools][memory]") {
  constexpr size_t kSize = size_t{4} << 20;  // memory of this size is returned to the kernel
  const RankMemory memory = open_memory(MemoryChoice::kHost);
  Net net = taking_net();
  net.calls.deregMr = [](void*, void*) { return ncclSuccess; };
  End end(net, nullptr, "an end");
  const UniqueFd bytes(::memfd_create("bytes", MFD_CLOEXEC));
  REQUIRE(bytes);
  const std::uint8_t* address = nullptr;
  {
    const Buffer buffer = make_buffer(memory, kSize);
    REQUIRE(end.register_memory(buffer, kSize));
    address = buffer.address();
  }
  CHECK(::write(bytes.get(), address, kSize) == static_cast<ssize_t>(kSize));
}

TEST_CASE("memory: an invalid address causes an error with its name", "[tools][memory]") {
  const RankMemory memory = open_memory(MemoryChoice::kPeermem);
  std::array<char, 8> bytes{};
  const auto copied = memory.gpu()->copy_out(bytes.data(), 4096, bytes.size());
  REQUIRE_FALSE(copied);
  CHECK(std::string(copied.error()) == "cuMemcpyDtoHAsync: CUDA_ERROR_INVALID_VALUE");
}

TEST_CASE("memory: ranks take the GPUs in turn, and the kinds of memory in a mixed run",
          "[tools][memory]") {
  for (const int rank : {0, 1, 2, 3}) {
    CAPTURE(rank);
    const RankMemory memory = open_memory(MemoryChoice::kMixed, rank);
    CHECK(memory.gpu()->about().ordinal == rank % 2);
    CHECK(memory.kind() == (rank % 2 == 0 ? BufferKind::kDmabuf : BufferKind::kPeermem));
  }
}

TEST_CASE("memory: the device has to support the kind of memory", "[tools][memory]") {
  Net net;
  net.calls.name = "Some";
  const Device all = device_with(NCCL_PTR_HOST | NCCL_PTR_CUDA | NCCL_PTR_DMABUF);
  const Device pointers = device_with(NCCL_PTR_HOST | NCCL_PTR_CUDA);
  const RankMemory peermem = open_memory(MemoryChoice::kPeermem);
  const RankMemory dmabuf = open_memory(MemoryChoice::kDmabuf);
  CHECK(peermem.check_support(net, pointers));
  CHECK(dmabuf.check_support(net, pointers)
            .error()
            .text.find("device nic0 supports only host+cuda memory, not dmabuf") == 0);
  CHECK(peermem.check_support(net, device_with(NCCL_PTR_HOST)).error().text.find("modprobe") !=
        std::string::npos);
  CHECK(dmabuf.check_support(net, all).error().text.find("Some has no regMrDmaBuf") !=
        std::string::npos);
  net.calls.regMrDmaBuf = [](void*, void*, size_t, int, uint64_t, int, void**) {
    return ncclSuccess;
  };
  CHECK(dmabuf.check_support(net, all));
}

TEST_CASE("memory: it is flushed if NCCL would flush it", "[tools][memory]") {
  const RankMemory hopper = open_memory(MemoryChoice::kPeermem);
  const RankMemory host = open_memory(MemoryChoice::kHost);
  const Device relaxed = device_with(NCCL_PTR_CUDA, 0);
  const Device strict = device_with(NCCL_PTR_CUDA, 1);
  CHECK_FALSE(hopper.flushes(FlushChoice::kAuto, relaxed));
  CHECK(hopper.flushes(FlushChoice::kAuto, strict));
  CHECK_FALSE(host.flushes(FlushChoice::kAuto, strict));
  CHECK_FALSE(hopper.flushes(FlushChoice::kNever, strict));
  CHECK(host.flushes(FlushChoice::kAlways, relaxed));

  ::setenv("NCCL_NET_FORCE_FLUSH", "1", 1);
  CHECK(hopper.flushes(FlushChoice::kAuto, relaxed));
  CHECK_FALSE(host.flushes(FlushChoice::kAuto, relaxed));
  ::setenv("NCCL_NET_FORCE_FLUSH", "0", 1);
  CHECK_FALSE(hopper.flushes(FlushChoice::kAuto, relaxed));
  ::unsetenv("NCCL_NET_FORCE_FLUSH");

  set_gpus("gpus=2,compute=8.9");
  const RankMemory older = open_memory(MemoryChoice::kDmabuf);
  CHECK(older.flushes(FlushChoice::kAuto, relaxed));
  CHECK_FALSE(older.flushes(FlushChoice::kNever, relaxed));
  set_gpus("gpus=2,compute=9.0");
}

}  // namespace
}  // namespace beeline::perf
