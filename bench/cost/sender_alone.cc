// SPDX-License-Identifier: Apache-2.0
#include "bench/cost/sender_alone.h"

#include <array>
#include <cstdint>

#include "tests/support/must.h"

namespace beeline::bench {
namespace {

constexpr int kTag = 7;

// The two ends of one comm pair, with the counters of the sender's calls.
class OneByOne {
 public:
  OneByOne(nccl::Net& net, const NullverbsReport& report, const CommPair& comms,
           const Buffers& buffers)
      : net_(net), report_(report), comms_(comms), buffers_(buffers) {
    BL_BENCH_CALL(net_.calls.regMr(comms_.send, buffers_.sent(0), buffers_.all_bytes(),
                                   NCCL_PTR_HOST, &send_memory_));
    BL_BENCH_CALL(net_.calls.regMr(comms_.recv, buffers_.sent(0), buffers_.all_bytes(),
                                   NCCL_PTR_HOST, &recv_memory_));
  }
  OneByOne(const OneByOne&) = delete;
  OneByOne& operator=(const OneByOne&) = delete;
  ~OneByOne() {
    (void)net_.calls.deregMr(comms_.send, send_memory_);
    (void)net_.calls.deregMr(comms_.recv, recv_memory_);
  }

  void move_one() {
    void* received = receive();
    void* sent = nullptr;
    int size = 0;
    while (sent == nullptr) {
      const NullverbsReport before = report_;
      BL_BENCH_CALL(net_.calls.isend(comms_.send, buffers_.sent(0), buffers_.bytes(), kTag,
                                     send_memory_, nullptr, &sent));
      add(before);
      // A plugin may grant an irecv only in a later call of the same comm.
      if (sent == nullptr) BL_MUST(!is_done(received, size));
    }
    for (bool done = false; !done;) {
      const NullverbsReport before = report_;
      done = is_done(sent, size);
      add(before);
    }
    while (!is_done(received, size)) {
    }
    BL_MUST(static_cast<std::size_t>(size) == buffers_.bytes());
  }

  SenderCounts each(std::size_t count) const {
    const auto share = [&](std::uint64_t total) {
      return static_cast<double>(total) / static_cast<double>(count);
    };
    return {share(posts_), share(requests_), share(completions_)};
  }

 private:
  void* receive() {
    void* data = buffers_.received(0);
    std::size_t size = buffers_.bytes();
    int tag = kTag;
    void* profiler = nullptr;
    void* request = nullptr;
    while (request == nullptr) {
      BL_BENCH_CALL(
          net_.calls.irecv(comms_.recv, 1, &data, &size, &tag, &recv_memory_, &profiler, &request));
    }
    return request;
  }

  bool is_done(void* request, int& size) {
    int done = 0;
    std::array<int, Buffers::kInFlight> sizes{};
    BL_BENCH_CALL(net_.calls.test(request, &done, sizes.data()));
    size = sizes[0];
    return done != 0;
  }

  void add(const NullverbsReport& before) noexcept {
    posts_ += report_.send_posts - before.send_posts;
    requests_ += report_.send_requests - before.send_requests;
    completions_ += report_.completions - before.completions;
  }

  nccl::Net& net_;
  const NullverbsReport& report_;
  const CommPair comms_;
  const Buffers& buffers_;
  void* send_memory_ = nullptr;
  void* recv_memory_ = nullptr;
  std::uint64_t posts_ = 0;
  std::uint64_t requests_ = 0;
  std::uint64_t completions_ = 0;
};

}  // namespace

SenderCounts count_sender(nccl::Net& net, const NullverbsReport& report, const CommPair& comms,
                          const Buffers& buffers, std::size_t count) {
  OneByOne messages(net, report, comms, buffers);
  for (std::size_t i = 0; i < count; ++i) messages.move_one();
  return messages.each(count);
}

}  // namespace beeline::bench
