// SPDX-License-Identifier: Apache-2.0
//
// Messages between host memory and GPU memory, which is registered by dma-buf or by peer memory.
// Received data is flushed, as NCCL does, and then compared.
#include <fcntl.h>
#include <unistd.h>

#include <random>

#include "tests/plugin/contract/gpu.h"
#include "tests/support/catch.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMost = (1U << 20) + 1;
constexpr std::array<size_t, 5> kSizes = {0, 1, 7, kPage, kMost};

}  // namespace

TEST_CASE("gpu data: from any kind of memory into any other, of any size",
          "[contract][gpu][gpu_data][softnic]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  const auto for_all = [](auto&& act) {
    uint32_t seed = 0;
    for (size_t from = 0; from < kKinds.size(); ++from) {
      for (size_t to = 0; to < kKinds.size(); ++to) {
        for (const size_t size : kSizes) act(from, to, size, ++seed);
      }
    }
  };
  run_gpu_flow(
      way,
      [&](Sender& end) {
        std::vector<AnyBuffer> buffers = one_of_each(end, kMost);
        for_all([&](size_t from, size_t, size_t size, uint32_t seed) {
          buffers[from].fill(0, size, seed);
          end.send(buffers[from].part(0, size)).finish();
        });
      },
      [&](Receiver& end) {
        std::vector<AnyBuffer> buffers = one_of_each(end, kMost);
        for_all([&](size_t, size_t to, size_t size, uint32_t seed) {
          const Part part = buffers[to].part(0, kMost);
          Request request = end.receive(part);
          request.finish();
          BL_MUST(request.size() == size);
          finish_flush(end.flush(part, size));
          buffers[to].expect(0, size, seed);
          buffers[to].must_hold();
        });
      });
}

TEST_CASE("gpu data: a registration begins anywhere in an allocation, a message anywhere in it",
          "[contract][gpu][gpu_data][softnic]") {
  const size_t skip = GENERATE(size_t{0}, 3 * kPage, 5 * kPage + 904);
  CAPTURE(skip);
  run_with_gpu([&] {
    constexpr size_t kSize = 9 * kPage + 77;
    const auto [session, net, link] = LinkedSession();
    std::mt19937 random(1);
    for (const Kind kind : {Kind::kDmabuf, Kind::kPeermem}) {
      AnyBuffer from(net, link.send, kind, kSize, skip);
      AnyBuffer to(net, link.recv, kind, kSize, skip);
      for (uint32_t round = 0; round < 20; ++round) {
        const size_t here = random() % kSize;
        const size_t there = random() % kSize;
        const size_t size = random() % (kSize - std::max(here, there) + 1);
        from.fill(here, size, round);
        to.expect(there, size, round);
        carry_and_flush(net, link, from.part(here, size), to.part(there, size));
        to.must_hold();
        from.must_hold();
      }
    }
  });
}

// NCCL closes it when regMrDmaBuf returns, and the number is soon used for another file.
TEST_CASE("gpu data: a dma-buf's descriptor is the caller's to close",
          "[contract][gpu][gpu_data][softnic]") {
  run_with_gpu([&] {
    constexpr size_t kSize = 4 * kPage;
    const auto [session, net, link] = LinkedSession();
    AnyBuffer from(net, link.send, Kind::kDmabuf, kSize);
    GpuMemory to(kSize);
    const auto address = reinterpret_cast<DevicePtr>(to.at());
    UniqueFd handle(cuda().handle(address, kSize));
    const int number = handle.get();
    void* mhandle = nullptr;
    BL_MUST_SUCCEED(
        net.reg_mr_dma_buf(link.recv.raw(), to.at(), kSize, NCCL_PTR_CUDA, 0, number, &mhandle));
    Mr mr = Mr::take(net, link.recv, mhandle);
    handle.reset();
    const UniqueFd other(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, number));
    BL_MUST(other.get() == number);
    from.fill(0, kSize, 1);
    to.expect(0, kSize, 1);
    carry(net, link, from.part(0, kSize), {to.at(), kSize, 0, mr.raw()});
    to.must_hold();
    // Dropping does not close the file that now has this number.
    mr.drop();
    BL_MUST(fcntl(number, F_GETFD) >= 0);
  });
}

TEST_CASE("gpu data: freed and allocated again, an address is other memory",
          "[contract][gpu][gpu_data][softnic]") {
  run_with_gpu([&] {
    constexpr size_t kSize = 2 * kPage;
    const auto [session, net, link] = LinkedSession();
    AnyBuffer from(net, link.send, Kind::kHost, kSize);
    std::vector<uint8_t*> addresses;
    for (uint32_t round = 0; round < 20; ++round) {
      AnyBuffer to(net, link.recv, round % 2 == 0 ? Kind::kDmabuf : Kind::kPeermem, kSize);
      addresses.push_back(to.at());
      must_carry(net, link, from, to, kSize, round);
      to.mr().drop();  // as NCCL does, before the memory is freed
    }
    std::sort(addresses.begin(), addresses.end());
    BL_MUST(std::adjacent_find(addresses.begin(), addresses.end()) != addresses.end());
  });
}

TEST_CASE("gpu data: memory of two GPUs on one comm", "[contract][gpu][gpu_data][softnic]") {
  run_with_gpu([&] {
    constexpr size_t kSize = 3 * kPage;
    start_gpu(1);
    const auto [session, net, link] = LinkedSession();
    AnyBuffer on_second(net, link.send, Kind::kDmabuf, kSize);
    start_gpu(0);
    AnyBuffer on_first(net, link.recv, Kind::kDmabuf, kSize);
    must_carry(net, link, on_second, on_first, kSize, 1);
    start_gpu(1);
    must_carry(net, link, on_second, on_first, kSize, 2);
  });
}
