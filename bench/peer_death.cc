// SPDX-License-Identifier: Apache-2.0
//
// Measures the time from the death of a peer until NCCL gets an error. Two processes have one comm
// with requests in flight; one of them is killed, and the other tests until it gets an error. Once
// for each side.
//
//   softnic run -- peer_death PLUGIN
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "common/base/clock.h"
#include "include/nccl/net_v12.h"

namespace {

using beeline::now_ns;

constexpr int kRounds = 10;
constexpr unsigned kPatienceSeconds = 30;
constexpr std::int64_t kGoal = beeline::kNsPerSec;

using Handle = std::array<char, NCCL_NET_HANDLE_MAXSIZE>;

[[noreturn]] void give_up(const char* what) {
  fmt::print(stderr, "peer_death: {}\n", what);
  std::_Exit(2);
}

void must(ncclResult_t result, const char* what) {
  if (result != ncclSuccess) give_up(what);
}

// Sends the current time to the measuring process.
void tell(int news) {
  const std::int64_t now = now_ns();
  if (write(news, &now, sizeof now) != sizeof now) give_up("no pipe");
}

std::int64_t hear(int news) {
  std::int64_t when = 0;
  if (read(news, &when, sizeof when) != sizeof when) give_up("the survivor said nothing");
  return when;
}

struct Side {
  const ncclNet_v12_t* net;
  int line;  // to the other process
  void* ctx = nullptr;
  void* comm = nullptr;
  void* memory = nullptr;
  std::vector<char> buffer = std::vector<char>(1 << 16);

  void open(const char* plugin, bool sends) {
    void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) give_up(dlerror());
    net = static_cast<const ncclNet_v12_t*>(dlsym(library, "ncclNetPlugin_v12"));
    if (net == nullptr) give_up("the plugin has no ncclNetPlugin_v12");
    must(net->init(&ctx, 1, nullptr, nullptr, nullptr), "init");
    Handle handle{};
    if (sends) {
      if (read(line, handle.data(), handle.size()) != ssize_t{handle.size()}) give_up("no handle");
      while (comm == nullptr) must(net->connect(ctx, 0, handle.data(), &comm, nullptr), "connect");
    } else {
      void* listener = nullptr;
      must(net->listen(ctx, 0, handle.data(), &listener), "listen");
      if (write(line, handle.data(), handle.size()) != ssize_t{handle.size()}) give_up("no line");
      while (comm == nullptr) must(net->accept(listener, &comm, nullptr), "accept");
      must(net->closeListen(listener), "closeListen");
    }
    must(net->regMr(comm, buffer.data(), buffer.size(), NCCL_PTR_HOST, &memory), "regMr");
  }

  // One request, or the error.
  ncclResult_t post(bool sends, void** request) {
    *request = nullptr;
    if (sends) {
      return net->isend(comm, buffer.data(), buffer.size(), 0, memory, nullptr, request);
    }
    void* data = buffer.data();
    std::size_t size = buffer.size();
    int tag = 0;
    return net->irecv(comm, 1, &data, &size, &tag, &memory, nullptr, request);
  }

  // Keeps requests in flight until one fails. Writes to `news`, if given, once data flows.
  void run(bool sends, int news = -1) {
    void* request = nullptr;
    for (int finished = 0;;) {
      if (request == nullptr && post(sends, &request) != ncclSuccess) return;
      if (request == nullptr) continue;
      int done = 0;
      if (net->test(request, &done, nullptr) != ncclSuccess) return;
      if (done == 0) continue;
      request = nullptr;
      if (++finished == 100 && news >= 0) tell(news);
    }
  }
};

// The surviving process measures. It is the parent of the other, and kills it.
std::int64_t measure(const char* plugin, bool survivor_sends) {
  std::array<int, 2> line{};
  std::array<int, 2> news{};
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, line.data()) != 0 || pipe(news.data()) != 0) {
    give_up("no socket pair");
  }
  const pid_t victim = fork();
  if (victim == 0) {
    Side side{.net = nullptr, .line = line[1]};
    side.open(plugin, !survivor_sends);
    side.run(!survivor_sends);
    std::_Exit(0);
  }
  const pid_t survivor = fork();
  if (survivor == 0) {
    Side side{.net = nullptr, .line = line[0]};
    side.open(plugin, survivor_sends);
    side.run(survivor_sends, news[1]);
    tell(news[1]);
    std::_Exit(0);
  }
  close(news[1]);
  alarm(kPatienceSeconds);
  hear(news[0]);  // data flows between the two
  const std::int64_t killed = now_ns();
  kill(victim, SIGKILL);
  const std::int64_t heard = hear(news[0]);
  alarm(0);
  waitpid(victim, nullptr, 0);
  waitpid(survivor, nullptr, 0);
  for (const int fd : {line[0], line[1], news[0]}) close(fd);
  return heard - killed;
}

bool report(const char* plugin, bool survivor_sends) {
  std::array<std::int64_t, kRounds> times{};
  for (std::int64_t& time : times) time = measure(plugin, survivor_sends);
  std::sort(times.begin(), times.end());
  const bool met = times.back() < kGoal;
  fmt::print(
      "killed {:<9} the other end hears of it after {:.2f} ms (median), {:.2f} ms (longest of "
      "{}); the goal is less than 1 s: {}\n",
      survivor_sends ? "receiver:" : "sender:", static_cast<double>(times[kRounds / 2]) / 1e6,
      static_cast<double>(times.back()) / 1e6, kRounds, met ? "met" : "MISSED");
  return met;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) give_up("usage: peer_death PLUGIN");
  report(argv[1], true);
  report(argv[1], false);
  return 0;
}
