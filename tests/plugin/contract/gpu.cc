// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/gpu.h"

#include <unistd.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "common/base/fd.h"

namespace beeline::test {
namespace {

size_t page() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }
size_t up_to_page(size_t size) { return (size + page() - 1) / page() * page(); }

template <class Memories, class Act>
auto with(const Memories& memories, Act&& act) {
  return std::visit([&](const auto& memory) { return act(*memory); }, memories);
}

}  // namespace

Cuda& cuda() {
  static auto* const one = new Cuda;
  return *one;
}

void start_gpu(int gpu) { cuda().start(gpu); }

std::ostream& operator<<(std::ostream& out, Kind kind) {
  switch (kind) {
    case Kind::kHost: return out << "host memory";
    case Kind::kDmabuf: return out << "dma-buf";
    case Kind::kPeermem: return out << "peer memory";
  }
  return out;
}

// --- Memory ------------------------------------------------------------------------------------

GpuMemory::GpuMemory(size_t size, size_t skip)
    : size_(size), before_(kGuard + skip), image_(before_ + size + kGuard, Memory::kFresh) {
  allocation_ = cuda().allocate(image_.size());
  CU_MUST(cuda(), kSuccess, cuda().cuMemsetD8_v2(allocation_, Memory::kFresh, image_.size()));
}

GpuMemory::~GpuMemory() { (void)cuda().cuMemFree_v2(allocation_); }

uint8_t* GpuMemory::at(size_t offset) const noexcept {
  return reinterpret_cast<uint8_t*>(allocation_ + before_ + offset);
}

void GpuMemory::fill(size_t offset, size_t size, uint32_t seed) {
  expect(offset, size, seed);
  if (size == 0) return;
  CU_MUST(cuda(), kSuccess,
          cuda().cuMemcpyHtoD_v2(allocation_ + before_ + offset, image_.data() + before_ + offset,
                                 size));
}

void GpuMemory::expect(size_t offset, size_t size, uint32_t seed) {
  BL_MUST(offset <= size_ && size <= size_ - offset);
  fill_pattern(image_.data() + before_ + offset, size, seed);
}

std::vector<uint8_t> GpuMemory::look(size_t from, size_t size) const {
  std::vector<uint8_t> bytes(size);
  if (size != 0) {
    CU_MUST(cuda(), kSuccess, cuda().cuMemcpyDtoH_v2(bytes.data(), allocation_ + from, size));
  }
  return bytes;
}

void GpuMemory::must_hold() const {
  const std::vector<uint8_t> found = look(0, image_.size());
  if (found == image_) return;  // quick, where nothing is optimised
  const auto differs = std::mismatch(image_.begin(), image_.end(), found.begin());
  throw MustError("byte " +
                  std::to_string(differs.first - image_.begin() - static_cast<ptrdiff_t>(before_)) +
                  " of " + std::to_string(size_) + " in GPU memory is " +
                  std::to_string(*differs.second) + ", not " + std::to_string(*differs.first));
}

bool GpuMemory::holds(size_t offset, size_t size) const {
  const std::vector<uint8_t> found = look(before_ + offset, size);
  return std::equal(found.begin(), found.end(),
                    image_.begin() + static_cast<ptrdiff_t>(before_ + offset));
}

// --- Registrations -----------------------------------------------------------------------------

// A dma-buf consists of whole pages; the registered range begins anywhere in it.
Registered try_reg_dmabuf(Net& net, const Comm& comm, uint8_t* start, size_t size) {
  const auto address = reinterpret_cast<DevicePtr>(start);
  const size_t skipped = address % page();
  const UniqueFd fd(cuda().handle(address - skipped, up_to_page(skipped + size)));
  Registered registered{ncclSuccess, start};
  registered.result = net.reg_mr_dma_buf(comm.raw(), start, size, NCCL_PTR_CUDA, skipped, fd.get(),
                                         &registered.mhandle);
  BL_MUST((registered.result == ncclSuccess) == (registered.mhandle != nullptr));
  return registered;
}

Registered try_reg_pointer(Net& net, const Comm& comm, uint8_t* start, size_t size) {
  Registered registered{ncclSuccess, start};
  registered.result = net.reg_mr(comm.raw(), start, size, NCCL_PTR_CUDA, &registered.mhandle);
  BL_MUST((registered.result == ncclSuccess) == (registered.mhandle != nullptr));
  return registered;
}

Mr reg_gpu(Net& net, const Comm& comm, Kind kind, uint8_t* start, size_t size) {
  const Registered registered = kind == Kind::kDmabuf ? try_reg_dmabuf(net, comm, start, size)
                                                      : try_reg_pointer(net, comm, start, size);
  BL_MUST_SUCCEED(registered.result);
  return Mr::take(net, comm, registered.mhandle);
}

AnyBuffer::AnyBuffer(Net& net, const Comm& comm, Kind kind, size_t size, size_t skip)
    : kind_(kind) {
  if (kind == Kind::kHost) {
    memory_ = std::make_unique<Memory>(size);
    mr_ = Mr(net, comm, at(), size);
  } else {
    memory_ = std::make_unique<GpuMemory>(size, skip);
    mr_ = reg_gpu(net, comm, kind, at(), size);
  }
}

uint8_t* AnyBuffer::at(size_t offset) const {
  return with(memory_, [&](const auto& memory) { return memory.at(offset); });
}
void AnyBuffer::fill(size_t offset, size_t size, uint32_t seed) {
  with(memory_, [&](auto& memory) { memory.fill(offset, size, seed); });
}
void AnyBuffer::expect(size_t offset, size_t size, uint32_t seed) {
  with(memory_, [&](auto& memory) { memory.expect(offset, size, seed); });
}
void AnyBuffer::must_hold() const {
  with(memory_, [](const auto& memory) { memory.must_hold(); });
}
bool AnyBuffer::holds(size_t offset, size_t size) const {
  return with(memory_, [&](const auto& memory) { return memory.holds(offset, size); });
}

std::vector<AnyBuffer> one_of_each(const End& end, size_t size, size_t skip) {
  std::vector<AnyBuffer> buffers;
  buffers.reserve(std::size(kKinds));
  for (const Kind kind : kKinds) buffers.emplace_back(end, kind, size, skip);
  return buffers;
}

// --- Flows -------------------------------------------------------------------------------------

void run_gpu_flow(const Way& way, const SenderBody& sender, const ReceiverBody& receiver) {
  run_flow(
      way,
      [](Peer& peer) {
        start_gpu();
        peer.meet();
      },
      sender, receiver);
}

void run_with_gpu(const std::function<void()>& body) {
  run_alone([&] {
    start_gpu();
    body();
  });
}

void carry_and_flush(Net& net, const Link& link, const Part& from, const Part& to) {
  carry(net, link, from, to);
  const auto received = static_cast<int>(std::min(from.size, to.size));
  finish_flush(iflush(net, link.recv, std::span(&to, 1), {received}));
}

void must_carry(Net& net, const Link& link, AnyBuffer& from, AnyBuffer& to, size_t size,
                uint32_t seed) {
  from.fill(0, size, seed);
  to.expect(0, size, seed);
  carry_and_flush(net, link, from.part(0, size), to.part(0, size));
  to.must_hold();
}

void must_hold_no_gpu_memory() {
  const uint64_t pinned = cuda().softgpu_pinned();
  const uint64_t handles = cuda().softgpu_open_handles();
  if (pinned == 0 && handles == 0) return;
  throw MustError("left over: " + std::to_string(pinned) + " pinned bytes, " +
                  std::to_string(handles) + " open handles");
}

}  // namespace beeline::test
