// SPDX-License-Identifier: Apache-2.0
//
// Sixteen processes exchange verified data during random faults. A connection that fails is set up
// again. Nothing may hang, arrive corrupted or twice, or leak.
//
// SOFTNIC_SOAK_SECONDS sets the duration, SOFTNIC_SOAK_SEED the faults.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/clock.h"
#include "common/base/fd.h"
#include "softnic/faults/chaos_plan.h"
#include "softnic/faults/script.h"
#include "tests/support/peer_frame.h"
#include "tests/support/peer_group.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kWorkers = 16;
constexpr std::uint32_t kHosts = 4;
constexpr std::uint32_t kDevices = 2;
constexpr std::size_t kMessageBytes = 20'000;
constexpr std::uint32_t kMessagesOfALife = 400;
constexpr std::uint32_t kWindow = 8;
// A connection without progress for this time is given up. It is longer than all retries of a QP.
constexpr std::int64_t kGiveUpNs = 300 * beeline::kNsPerMs;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

softnic::FabricSpec soak_fabric(std::uint64_t seed) {
  softnic::FabricSpec spec = softnic::even_fabric(kHosts, kDevices);
  spec.clock_scale = 0.05;  // a QP without an answer uses up its retries in some 30 ms
  spec.seed = seed;
  return spec;
}

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

struct Tally {
  std::uint64_t lives = 0;
  std::uint64_t broken = 0;  // connections that ended early
  std::uint64_t without_device = 0;
  std::uint64_t messages = 0;
};

// What the two ends of a connection exchange before it starts.
struct Offer {
  bool ready = false;
  QpAddress address{};
};

// One end of a connection until it fails or is done. Both ends send and receive, and all received
// data is compared.
class Life {
 public:
  Life(Peer& peer, std::size_t other, std::uint32_t number, const std::string& device)
      : peer_(peer), other_(other), number_(number) {
    try {
      end_.emplace(device, QpShape{.send_depth = kWindow, .recv_depth = 2 * kWindow});
      out_.emplace(end_->pd.get(), kWindow * kMessageBytes);
      in_.emplace(end_->pd.get(), std::size_t{2} * kWindow * kMessageBytes);
    } catch (const MustError&) {
      // The device is removed, or was removed while it was opened.
      out_.reset();
      end_.reset();
    }
  }

  // Returns the number of received messages. *whole: all were sent and received.
  std::uint32_t live(bool* whole, bool* had_device) {
    *whole = false;
    *had_device = shake_hands();
    if (!*had_device) return 0;
    std::int64_t moved_at = beeline::now_ns();
    while (sent_ + received_ < 2 * kMessagesOfALife && !failed_) {
      const bool moved = post_sends() || take(end_->send_cq.get()) || take(end_->recv_cq.get());
      const std::int64_t now = beeline::now_ns();
      if (moved) moved_at = now;
      if (now - moved_at > kGiveUpNs) break;
    }
    *whole = !failed_ && sent_ == kMessagesOfALife && received_ == kMessagesOfALife;
    return received_;
  }

 private:
  // Not ready if the device is removed, which may happen at any time.
  Offer offer(const Wire& wire) const {
    if (!end_) return {};
    try {
      return {true, address_of(end_->qp, wire)};
    } catch (const MustError&) {
      return {};
    }
  }

  bool shake_hands() {
    const Wire wire{.timeout = 12, .retry_cnt = 6};
    const Offer mine = offer(wire);
    peer_.send(other_, mine);
    const Offer theirs = peer_.receive<Offer>(other_);
    bool good = mine.ready && theirs.ready;
    if (good) {
      try {
        connect(end_->qp, theirs.address, wire);
        for (std::uint32_t i = 0; i < 2 * kWindow; ++i) post_receive(i);
      } catch (const MustError&) {
        good = false;  // removed in between
      }
    }
    peer_.send(other_, good);
    return peer_.receive<bool>(other_) && good;
  }

  std::uint32_t seed_of(std::size_t sender, std::uint32_t message) const {
    return static_cast<std::uint32_t>((std::size_t{number_} * 1000 + message) * kWorkers + sender);
  }

  void post_receive(std::uint32_t message) {
    const std::size_t place = message % (2 * kWindow) * kMessageBytes;
    BL_MUST_OK(post(end_->qp, recv_work(in_->part(place, kMessageBytes), message)));
  }

  bool post_sends() {
    if (posted_ == kMessagesOfALife || posted_ - sent_ == kWindow) return false;
    const std::size_t place = posted_ % kWindow * kMessageBytes;
    fill_pattern(out_->bytes(place, kMessageBytes), seed_of(peer_.rank(), posted_));
    if (post(end_->qp, send_imm_work(out_->part(place, kMessageBytes), posted_, posted_)) != 0) {
      failed_ = true;
    }
    ++posted_;
    return true;
  }

  bool take(ibv_cq* cq) {
    ibv_wc wc = {};
    const int got = ibv_poll_cq(cq, 1, &wc);
    if (got == 0) return false;
    failed_ = failed_ || got < 0 || wc.status != IBV_WC_SUCCESS;
    if (failed_) return true;
    if (cq == end_->send_cq.get()) {
      BL_MUST(wc.wr_id == sent_++);
    } else {
      take_message(wc);
    }
    return true;
  }

  // Every message arrives once, in order and complete.
  void take_message(const ibv_wc& wc) {
    BL_MUST(wc.wr_id == received_ && wc.imm_data == received_ && wc.byte_len == kMessageBytes);
    const std::size_t place = received_ % (2 * kWindow) * kMessageBytes;
    BL_MUST(has_pattern(in_->bytes(place, kMessageBytes), seed_of(other_, received_)));
    ++received_;
    if (received_ + kWindow < kMessagesOfALife) post_receive_again();
  }

  void post_receive_again() {
    const std::uint32_t message = received_ - 1 + 2 * kWindow;
    const std::size_t place = message % (2 * kWindow) * kMessageBytes;
    if (post(end_->qp, recv_work(in_->part(place, kMessageBytes), message)) != 0) failed_ = true;
  }

  Peer& peer_;
  const std::size_t other_;
  const std::uint32_t number_;
  std::optional<Endpoint> end_;
  std::optional<Buffer> out_;
  std::optional<Buffer> in_;
  std::uint32_t posted_ = 0;
  std::uint32_t sent_ = 0;
  std::uint32_t received_ = 0;
  bool failed_ = false;
};

void work(Peer& peer, std::int64_t until) {
  TestFabric::choose_host("h" + std::to_string(peer.rank() % kHosts));
  const std::size_t other = peer.rank() ^ 1;
  const DeviceList keeps_our_seat;
  const std::size_t descriptors = open_descriptors();
  Tally tally;
  for (std::uint32_t number = 0;; ++number) {
    // The even process decides for both, so that neither waits for a partner that is done.
    bool on = beeline::now_ns() < until;
    if (peer.rank() % 2 == 0) {
      peer.send(other, on);
    } else {
      on = peer.receive<bool>(other);
    }
    if (!on) break;
    bool whole = false;
    bool had_device = false;
    const std::string device = "softnic" + std::to_string((peer.rank() / 2 + number) % kDevices);
    tally.messages += Life(peer, other, number, device).live(&whole, &had_device);
    ++tally.lives;
    if (!had_device) {
      ++tally.without_device;
    } else if (!whole) {
      ++tally.broken;
    }
  }
  // Files of a peer stay open as long as it lives; no other descriptors may accumulate.
  BL_MUST(open_descriptors() <= descriptors + 2 * kWorkers);
  peer.send(kWorkers, tally);
}

struct Soak {
  const TestFabric& fabric;
  std::uint64_t seed;
  std::int64_t start;
  std::int64_t until;
};

softnic::ChaosRequest wish_for(const Soak& soak) {
  softnic::ChaosRequest wish;
  wish.seed = soak.seed;
  wish.duration_ns = static_cast<std::uint64_t>(soak.until - soak.start) * 9 / 10;
  wish.every_ns = 40 * beeline::kNsPerMs;
  wish.kinds = *softnic::parse_disturbances("");
  for (std::size_t h = 0; h < kHosts; ++h) {
    for (std::size_t d = 0; d < kDevices; ++d) {
      const std::string device = "h" + std::to_string(h) + "/softnic" + std::to_string(d);
      wish.ports.push_back({device + ":1", device, true});
    }
  }
  return wish;
}

// The last process of the group causes the faults and then sums up the results.
void disturb(Peer& peer, const Soak& soak) {
  const auto& fabric = soak.fabric.fabric();
  const std::string plan = softnic::script_text(softnic::plan_chaos(wish_for(soak)));
  const auto script = softnic::read_script(fabric, plan, "plan");
  BL_MUST(script);
  const auto wait = [&](std::uint64_t at_ns) {
    const std::int64_t due = soak.start + static_cast<std::int64_t>(at_ns);
    const timespec when = {due / beeline::kNsPerSec, due % beeline::kNsPerSec};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) != 0) {
    }
    return true;
  };
  const std::size_t commands = softnic::play(fabric, *script, wait);
  Tally sum;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const Tally one = peer.receive<Tally>(i);
    BL_MUST(one.messages > 0);
    sum.lives += one.lives;
    sum.broken += one.broken;
    sum.without_device += one.without_device;
    sum.messages += one.messages;
  }
  std::printf(
      "seed %llu, %.0f s: %zu commands; %llu messages in %llu lives of a connection, %llu broken, "
      "%llu without a device\n",
      static_cast<unsigned long long>(soak.seed),
      static_cast<double>(soak.until - soak.start) / 1e9, commands,
      static_cast<unsigned long long>(sum.messages), static_cast<unsigned long long>(sum.lives),
      static_cast<unsigned long long>(sum.broken),
      static_cast<unsigned long long>(sum.without_device));
  std::fflush(stdout);
  BL_MUST(sum.broken > 0);  // otherwise nothing was tested
}

}  // namespace

TEST_CASE("soak: the last messages of a peer that ended are received", "[softnic][soak]") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
  const beeline::UniqueFd hub(ends[0]);
  beeline::UniqueFd peer(ends[1]);
  REQUIRE(send_frame(hub.get(), {FrameKind::kMessage, 0}, "unread"));
  REQUIRE(send_frame(peer.get(), {FrameKind::kFailed, 0}, "why"));
  peer.reset();
  Frame frame;
  REQUIRE(receive_frame(hub.get(), &frame));
  CHECK(frame.body == "why");
  CHECK_FALSE(receive_frame(hub.get(), &frame));
}

TEST_CASE("soak: sixteen processes survive random faults", "[softnic][soak]") {
  const std::uint64_t seconds = from_environment("SOFTNIC_SOAK_SECONDS", 8);
  const std::uint64_t seed = from_environment("SOFTNIC_SOAK_SEED", 1);
  const TestFabric fabric(soak_fabric(seed));
  const std::int64_t start = beeline::now_ns();
  const Soak soak{fabric, seed, start,
                  start + static_cast<std::int64_t>(seconds) * beeline::kNsPerSec};
  std::vector<PeerBody> bodies(kWorkers, [&](Peer& peer) { work(peer, soak.until); });
  bodies.emplace_back([&](Peer& peer) { disturb(peer, soak); });
  run_peers(PeerMode::kProcesses, bodies, std::chrono::seconds(seconds + 120));
  CHECK(softnic::find_participants(fabric.fabric()).slots.empty());
  // The workers left no arena and no pipe.
  for (const auto& entry : std::filesystem::directory_iterator(fabric.fabric().dir())) {
    const std::string name = entry.path().filename();
    INFO(name);
    CHECK_FALSE(name.starts_with("arena."));
    CHECK_FALSE(name.starts_with("ev."));
  }
}
