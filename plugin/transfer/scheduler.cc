// SPDX-License-Identifier: Apache-2.0
#include "plugin/transfer/scheduler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace beeline {
namespace {

constexpr double kBytesPerNsOfMbps = 1e6 / 8 / 1e9;
// If no port says how fast it is.
constexpr std::uint32_t kUnknownSpeedMbps = 100'000;
// What a message costs besides its bytes, so that idle paths differ by more than nothing.
constexpr std::uint64_t kMessageBytes = 4096;
// A path that gets nothing is probed this often, and less often if a message has to wait for the
// probe: then probes take at most this part of the time.
constexpr std::int64_t kProbeNs = 10 * kNsPerMs;
constexpr double kProbePart = 1.0 / 32;

// A group of paths that may carry a part of the message.
struct Candidate {
  std::uint8_t path;
  double held;  // bytes outstanding
  double ns_per_byte;
  double rate;           // the inverse
  std::uint32_t room;    // chunks that it may be given now
  std::uint32_t wanted;  // chunks that it should carry
  std::int64_t unused_ns;
  bool is_open;
};

class Split {
 public:
  std::array<Candidate, Scheduler::kMaxPaths> candidates;
  std::size_t count = 0;
  double chunk = 0;  // bytes

  std::span<Candidate> all() noexcept { return {candidates.data(), count}; }

  // The time until everything outstanding and these chunks are finished, if no path is idle before.
  // Paths that are busy for longer anyway are closed: they get nothing.
  double finish_ns(std::uint32_t chunks) noexcept {
    double bytes = chunks * chunk;
    double rate = 0;
    for (Candidate& candidate : all()) {
      candidate.is_open = true;
      bytes += candidate.held;
      rate += candidate.rate;
    }
    for (bool is_stable = false; !is_stable;) {
      is_stable = true;
      for (Candidate& candidate : all()) {
        if (!candidate.is_open || candidate.held * rate < bytes * candidate.rate) continue;
        candidate.is_open = is_stable = false;
        bytes -= candidate.held;
        rate -= candidate.rate;
      }
    }
    return bytes / rate;
  }

  // Probes are given first. Returns how many chunks are left.
  std::uint32_t probe(std::uint32_t chunks) noexcept {
    const double finish = finish_ns(chunks);
    for (Candidate& candidate : all()) {
      if (chunks == 0) break;
      if (candidate.held != 0 || candidate.rate * finish >= chunk) continue;
      const double late_ns = chunk * candidate.ns_per_byte - finish;
      if (static_cast<double>(candidate.unused_ns) <
          std::max(double{kProbeNs}, late_ns / kProbePart))
        continue;
      candidate.wanted = 1;
      --chunks;
    }
    return chunks;
  }

  void share(std::uint32_t chunks) noexcept {
    const double finish = finish_ns(chunks);
    std::uint32_t left = chunks;
    for (Candidate& candidate : all()) {
      if (!candidate.is_open) continue;
      const double whole = (candidate.rate * finish - candidate.held) / chunk;
      const std::uint32_t wanted = std::min(static_cast<std::uint32_t>(std::max(whole, 0.0)), left);
      candidate.wanted += wanted;
      left -= wanted;
    }
    for (; left != 0; --left) ++earliest().wanted;
  }

 private:
  // The path that would finish one more chunk first.
  Candidate& earliest() noexcept {
    Candidate* best = nullptr;
    double best_ns = std::numeric_limits<double>::max();
    for (Candidate& candidate : all()) {
      const double ns = (candidate.held + (candidate.wanted + 1) * chunk) * candidate.ns_per_byte;
      if (ns >= best_ns) continue;
      best_ns = ns;
      best = &candidate;
    }
    return *best;
  }
};

}  // namespace

Scheduler::Scheduler(std::span<const PathGuess> paths) noexcept {
  for (std::size_t i = 0; i < paths.size() && i < kMaxPaths; ++i) {
    const PathGuess& guess = paths[i];
    const std::uint32_t mbps = guess.speed_mbps != 0 ? guess.speed_mbps : kUnknownSpeedMbps;
    group_of_[i] = guess.group;
    Group& group = groups_[guess.group];
    if (group.paths == 0) group.rate = PathRate(mbps * kBytesPerNsOfMbps);
    group.paths = static_cast<PathMask>(group.paths | (1U << i));
    group_count_ = std::max(group_count_, static_cast<std::uint8_t>(guess.group + 1));
  }
}

// Of the paths in the mask.
std::uint8_t Scheduler::least_loaded(PathMask paths) const noexcept {
  std::uint8_t best = static_cast<std::uint8_t>(std::countr_zero(paths));
  for (unsigned left = paths & (paths - 1U); left != 0; left &= left - 1) {
    const std::uint8_t path = static_cast<std::uint8_t>(std::countr_zero(left));
    if (outstanding_[path] < outstanding_[best]) best = path;
  }
  return best;
}

std::uint8_t Scheduler::choose(PathMask usable, std::uint64_t bytes, std::int64_t now_ns) noexcept {
  const double whole = static_cast<double>(bytes + kMessageBytes);
  const Group* best = nullptr;
  const Group* unused = nullptr;
  double best_ns = std::numeric_limits<double>::max();
  double unused_ns = 0;
  std::uint8_t at = turn_;
  for (std::uint8_t i = 0; i < group_count_; ++i) {
    const Group& group = groups_[at];
    if (++at >= group_count_) at = 0;
    if ((group.paths & usable) == 0) continue;
    const double ns =
        (static_cast<double>(group.rate.outstanding()) + whole) * group.rate.ns_per_byte(now_ns);
    if (ns < best_ns) {
      best_ns = ns;
      best = &group;
    }
    if (now_ns - group.posted_ns >= kProbeNs && group.rate.outstanding() == 0 && ns > unused_ns) {
      unused_ns = ns;
      unused = &group;
    }
  }
  if (++turn_ >= group_count_) turn_ = 0;
  if (unused != nullptr &&
      static_cast<double>(now_ns - unused->posted_ns) * kProbePart >= unused_ns - best_ns)
    best = unused;
  return least_loaded(best->paths & usable);
}

unsigned Scheduler::split(PathMask usable, std::uint32_t chunks, std::uint32_t chunk_bytes,
                          std::int64_t now_ns, Shares& shares) noexcept {
  Split split;
  split.chunk = chunk_bytes;
  for (std::uint8_t i = 0; i < group_count_; ++i) {
    Group& group = groups_[i];
    if ((group.paths & usable) == 0) continue;
    if (group.rate.is_due(now_ns)) group.rate.measure(latency_ns_);
    const std::uint64_t held = group.rate.outstanding();
    const double ns_per_byte = group.rate.ns_per_byte(now_ns);
    const std::uint64_t most =
        std::max(group.rate.most_outstanding(), std::uint64_t{2} * chunk_bytes);
    // Half of what it may hold, so that it still has work when this completes. Less would cut a
    // message into ever smaller writes. It may be slightly too much, because the limit moves: a
    // path that holds just over half of it would run dry.
    const std::uint64_t room = held > most / 8 * 5 ? 0 : most / 2;
    split.candidates[split.count++] = {
        .path = least_loaded(group.paths & usable),
        .held = static_cast<double>(held),
        .ns_per_byte = ns_per_byte,
        .rate = 1 / ns_per_byte,
        .room = static_cast<std::uint32_t>(room / chunk_bytes),
        .wanted = 0,
        .unused_ns = now_ns - group.posted_ns,
        .is_open = true,
    };
  }
  if (const std::uint32_t left = split.probe(chunks); left != 0) split.share(left);
  unsigned written = 0;
  for (const Candidate& candidate : split.all()) {
    groups_[group_of_[candidate.path]].is_full = candidate.wanted > candidate.room;
    if (const std::uint32_t given = std::min(candidate.wanted, candidate.room); given != 0)
      shares[written++] = {.path = candidate.path, .chunks = given};
  }
  return written;
}

}  // namespace beeline
