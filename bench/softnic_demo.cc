// SPDX-License-Identifier: Apache-2.0
//
// A demonstration with plain verbs: a process on h0 writes into the memory of a process on h1,
// which sleeps and then checks every byte. Only the link that goes down at the end shows that the
// NIC is software.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "bench/demo_cable.h"
#include "bench/demo_pattern.h"
#include "bench/support/endpoint.h"
#include "bench/support/ranks.h"
#include "bench/support/samples.h"
#include "common/base/clock.h"

namespace beeline::bench {
namespace {

constexpr const char* kDevice = "softnic0";
constexpr size_t kArea = 16 << 20;
constexpr size_t kSizes[] = {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20};
constexpr size_t kMostWrites = 1000;
constexpr size_t kPasses = 3;  // each with different data
constexpr size_t kUnderWay = 8;
constexpr size_t kCableBytes = 64 << 10;

std::string text_of(size_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  if (bytes >= 1 << 10) return fmt::format("{} KiB", bytes >> 10);
  return fmt::format("{} B", bytes);
}

std::string decimal_text_of(size_t bytes) {
  const double kilo = static_cast<double>(bytes) / 1e3;
  return kilo < 1e3 ? fmt::format("{:.0f} kB", kilo) : fmt::format("{:.0f} MB", kilo / 1e3);
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
  return text;
}

// --- The sender ----------------------------------------------------------------------------------

class Sender {
 public:
  explicit Sender(test::Peer& peer) : peer_(peer), end_(kDevice, kArea) { end_.connect(peer, 1); }

  void show();

 private:
  void show_ends();
  void show_size(size_t size);
  void show_cable();
  void show_next_steps();

  // Transfers `bytes` with `move`, and has them checked. Returns the number of wrong bytes.
  template <class Move>
  size_t checked(size_t bytes, Move&& move) {
    const Check check{++seed_ << 32, bytes};
    fill(end_.memory(), check);
    move();
    peer_.send(1, check);
    moved_ += bytes;
    const auto wrong = peer_.receive<size_t>(1);
    wrong_ += wrong;
    return wrong;
  }
  // Keeps many writes in flight; calls `seen` after each poll.
  template <class Seen>
  void stream(size_t size, size_t writes, Seen&& seen);

  test::Peer& peer_;
  Endpoint end_;
  uint64_t seed_ = 0;
  size_t moved_ = 0;
  size_t wrong_ = 0;
};

template <class Seen>
void Sender::stream(size_t size, size_t writes, Seen&& seen) {
  size_t posted = 0;
  for (size_t done = 0; done < writes;) {
    for (; posted < writes && posted - done < kUnderWay; ++posted) {
      end_.post({posted * size, posted * size, size});
    }
    done += end_.poll();
    seen(done);
  }
}

void Sender::show_size(size_t size) {
  const size_t writes = std::min(kMostWrites, kArea / size);
  const size_t bytes = writes * size;
  Samples latency;
  Samples all;
  size_t wrong = 0;
  for (size_t pass = 0; pass < kPasses; ++pass) {
    wrong += checked(bytes, [&] {
      for (size_t i = 0; i < writes; ++i) {
        latency.add(timed_ns([&] {
          end_.post({i * size, i * size, size});
          end_.wait_for(1);
        }));
      }
    });
    wrong +=
        checked(bytes, [&] { all.add(timed_ns([&] { stream(size, writes, [](size_t) {}); })); });
  }
  fmt::print("{:>10}{:>10}{:>14}{:>16}{:>15}{:>9}\n", text_of(size), 2 * kPasses * writes,
             fmt::format("{:.1f} us", latency.median() / 1e3),
             fmt::format("{:.2f} GB/s", gb_per_s(bytes, all.median())),
             decimal_text_of(2 * kPasses * bytes), wrong);
  std::fflush(stdout);
}

// A NIC repeats unacknowledged packets, so the program only sees that it takes longer.
void Sender::show_cable() {
  constexpr size_t kWrites = kArea / kCableBytes;
  Cable cable(kWrites / 2);
  const size_t wrong = checked(kArea, [&] { stream(kCableBytes, kWrites, cable); });
  fmt::print("\nCable out for {} ms in the middle of {} writes of {}: silence of {} ms,\n",
             kCableOutNs / kNsPerMs, kWrites, text_of(kCableBytes), cable.silence_ns() / kNsPerMs);
  fmt::print("then all went on by itself. No error, {} wrong bytes.\n", wrong);
}

void Sender::show_ends() {
  fmt::print("process {:<8} h0/{}  GID {}\n", getpid(), kDevice, text_of(end_.info().gid));
  fmt::print("  writes into the memory of\n");
  fmt::print("process {:<8} h1/{}  GID {}\n", peer_.receive<pid_t>(1), kDevice,
             text_of(end_.peer().gid));
  fmt::print("  which sleeps while the data lands, and then checks every byte.\n\n");
  fmt::print("{:>10}{:>10}{:>14}{:>16}{:>15}{:>9}\n", "size", "writes", "latency", "bandwidth",
             "checked", "wrong");
}

void Sender::show_next_steps() {
  fmt::print("\n{} moved by RDMA WRITE from heap to heap, {} wrong bytes, no RDMA hardware.\n",
             decimal_text_of(moved_), wrong_);
  fmt::print(
      "\nYour own verbs programs run unmodified, on either of two hosts. In two terminals, with a\n"
      "program of Debian's perftest:\n"
      "  build/softnic/softnic run --host h0 -- ib_write_bw -x 3\n"
      "  build/softnic/softnic run --host h1 -- ib_write_bw -x 3 localhost\n"
      "and in a third, while they run:\n"
      "  build/softnic/softnic ls\n"
      "  build/softnic/softnic ctl h0/softnic0 down     (or up, rate=200M, latency=50us)\n");
}

void Sender::show() {
  show_ends();
  for (const size_t size : kSizes) show_size(size);
  show_cable();
  show_next_steps();
  peer_.send(1, Check{});
  if (wrong_ != 0) throw test::MustError("bytes arrived wrong");
}

// --- The receiver --------------------------------------------------------------------------------

void receive(test::Peer& peer) {
  Endpoint end(kDevice, kArea);
  end.connect(peer, 0);
  peer.send(0, getpid());
  for (;;) {
    const auto check = peer.receive<Check>(0);
    if (check.bytes == 0) return;
    peer.send(0, count_wrong(end.memory(), check));
  }
}

}  // namespace
}  // namespace beeline::bench

int main() {
  using namespace beeline::bench;
  return run_ranks({{"h0", [](beeline::test::Peer& peer) { Sender(peer).show(); }},
                    {"h1", [](beeline::test::Peer& peer) { receive(peer); }}});
}
