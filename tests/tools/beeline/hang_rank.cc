// SPDX-License-Identifier: Apache-2.0
//
// One rank of a ring that sends through a plugin, and hangs in the way that it is told.
//
// Usage: RANK=.. WORLD_SIZE=.. hang_rank FOLDER PLUGIN WAY
//   FOLDER  where the ranks leave their handles
//   WAY     plays              it goes on until it is killed
//           posts-no-receive   after some rounds: it sends, and posts no receive any more
//           sends-nothing      the same: it receives, and sends nothing any more
//           calls-nothing      the same: it posts a receive and a send, and tests neither
//           blocked            the same: a thread of it waits in the kernel
//           not-begun          it neither listens nor connects
//           listener-gone      it closes its listener before others see its handle, and only sends
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "include/nccl/net.h"
#include "tools/nccl/loader.h"

namespace {

constexpr int kRoundsBefore = 100;
constexpr std::size_t kBytes = 65536;

// With CATCHES_ERRORS like a framework whose threads outlive an error.
void must(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", call, beeline::nccl::to_string(result));
  while (std::getenv("CATCHES_ERRORS") != nullptr) ::pause();
  std::exit(1);
}

__attribute__((format(printf, 5, 6))) void log(ncclDebugLogLevel level, unsigned long, const char*,
                                               int, const char* format, ...) {
  if (level > NCCL_LOG_WARN) return;
  va_list args;
  va_start(args, format);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
}

[[noreturn]] void hang() {
  for (;;) ::pause();
}

// As on a file system that does not answer: the kernel lets a parent of vfork() wait in state D.
[[noreturn]] void block_in_kernel() {
  if (::vfork() == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  hang();
}

int number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

using Handle = std::array<char, NCCL_NET_HANDLE_MAXSIZE>;

class Rank {
 public:
  Rank(std::string folder, const char* plugin) : folder_(std::move(folder)) {
    auto loaded = beeline::nccl::load_plugin(plugin, 0);
    if (!loaded) {
      std::fprintf(stderr, "%s\n", loaded.error().text.c_str());
      std::exit(1);
    }
    net_ = *loaded;
    must(net_.calls.init(&net_.ctx, 0, &config_, &log, nullptr), "init");
  }

  // To the next rank, and from the one before. Like an application that catches errors and goes on,
  // a rank that cannot connect hangs.
  void connect(bool closes_listener) {
    Handle ours = {};
    void* listener = nullptr;
    must(net_.calls.listen(net_.ctx, 0, ours.data(), &listener), "listen");
    const std::string name = file_of(rank_);
    std::ofstream(name + ".new").write(ours.data(), ours.size());
    if (closes_listener) must(net_.calls.closeListen(listener), "closeListen");
    std::rename((name + ".new").c_str(), name.c_str());
    Handle next = {};
    const std::string next_name = file_of((rank_ + 1) % ranks_);
    while (!std::ifstream(next_name).read(next.data(), next.size())) ::usleep(1000);
    while (send_ == nullptr || (receive_ == nullptr && !closes_listener)) {
      if (send_ == nullptr) {
        const ncclResult_t made = net_.calls.connect(net_.ctx, 0, next.data(), &send_, nullptr);
        if (made != ncclSuccess) {
          std::fprintf(stderr, "connect: %s\n", beeline::nccl::to_string(made));
          hang();
        }
      }
      if (receive_ == nullptr && !closes_listener) {
        must(net_.calls.accept(listener, &receive_, nullptr), "accept");
      }
    }
    must(net_.calls.regMr(send_, data_.data(), kBytes, NCCL_PTR_HOST, &send_memory_), "regMr");
    if (closes_listener) return;
    must(net_.calls.regMr(receive_, data_.data(), kBytes, NCCL_PTR_HOST, &receive_memory_),
         "regMr");
  }

  void* post_receive() {
    void* request = nullptr;
    void* data = data_.data();
    std::size_t size = kBytes;
    int tag = 0;
    while (request == nullptr) {
      must(net_.calls.irecv(receive_, 1, &data, &size, &tag, &receive_memory_, nullptr, &request),
           "irecv");
    }
    return request;
  }
  void* post_send() {
    void* request = nullptr;
    while (request == nullptr) {
      must(net_.calls.isend(send_, data_.data(), kBytes, 0, send_memory_, nullptr, &request),
           "isend");
    }
    return request;
  }
  void finish(void* request) {
    int done = 0;
    while (done == 0) must(net_.calls.test(request, &done, nullptr), "test");
  }
  void play_round() {
    void* const receive = post_receive();
    void* const send = post_send();
    finish(receive);
    finish(send);
  }

 private:
  std::string file_of(int rank) const { return folder_ + "/handle." + std::to_string(rank); }

  std::string folder_;
  int rank_ = number_in("RANK");
  int ranks_ = number_in("WORLD_SIZE");
  ncclNetCommConfig_v12_t config_ = {};
  beeline::nccl::Net net_;
  std::vector<char> data_ = std::vector<char>(kBytes);
  void* send_ = nullptr;
  void* receive_ = nullptr;
  void* send_memory_ = nullptr;
  void* receive_memory_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  Rank rank(argv[1], argv[2]);
  const std::string way = argv[3];
  const bool closes_listener = way == "listener-gone";
  if (way == "not-begun") hang();
  rank.connect(closes_listener);
  if (closes_listener) {
    for (;;) rank.finish(rank.post_send());
  }
  for (int round = 0; way == "plays" || round < kRoundsBefore; ++round) rank.play_round();
  if (way == "posts-no-receive") {
    rank.finish(rank.post_send());
  } else if (way == "sends-nothing") {
    rank.finish(rank.post_receive());
  } else if (way == "blocked") {
    block_in_kernel();
  } else {
    rank.post_receive();
    rank.post_send();
  }
  hang();
}
