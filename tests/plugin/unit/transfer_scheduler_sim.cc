// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/unit/transfer_scheduler_sim.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace beeline::test {
namespace {

constexpr double kBytesPerNs = 1e6 / 1e9;  // of 1 MB/s
constexpr std::uint32_t kMostChunks = 64;
constexpr std::uint32_t kCutBytes = 128;
constexpr std::uint32_t kClaimedMbps = 100'000;
constexpr PathMask kAllPaths = 0xFF;

std::uint32_t round_up(std::uint32_t bytes) {
  return (bytes + kCutBytes - 1) / kCutBytes * kCutBytes;
}

std::vector<PathGuess> guesses_of(const std::vector<SimPath>& paths) {
  std::vector<PathGuess> guesses;
  guesses.reserve(paths.size());
  for (const SimPath& path : paths)
    guesses.push_back({.speed_mbps = kClaimedMbps, .group = path.group});
  return guesses;
}

}  // namespace

std::vector<SimPath> paths_of(const std::vector<double>& mb_per_s) {
  std::vector<SimPath> paths;
  paths.reserve(mb_per_s.size());
  for (const double rate : mb_per_s)
    paths.push_back({.mb_per_s = rate, .group = static_cast<std::uint8_t>(paths.size())});
  return paths;
}

void SimLink::set_rate(double bytes_per_ns, std::int64_t now_ns) {
  advance(now_ns);
  bytes_per_ns_ = bytes_per_ns;
}

void SimLink::post(const Write& write) {
  advance(write.posted_ns);
  writes_.push_back(write);
  writes_.back().left = static_cast<double>(write.bytes);
}

void SimLink::advance(std::int64_t now_ns) {
  const double end_ns = static_cast<double>(now_ns);
  while (!writes_.empty() && next_ns() <= end_ns) {
    at_ns_ = next_ns();
    carried_bytes_ += writes_.front().left;
    done_.push_back({.write = writes_.front(), .ns = at_ns_});
    writes_.pop_front();
  }
  if (!writes_.empty() && end_ns > at_ns_) {
    const double carried = (end_ns - at_ns_) * bytes_per_ns_;
    writes_.front().left -= carried;
    carried_bytes_ += carried;
  }
  at_ns_ = std::max(at_ns_, end_ns);
}

double SimLink::next_ns() const noexcept {
  if (writes_.empty() || bytes_per_ns_ == 0) return kNever;
  return at_ns_ + writes_.front().left / bytes_per_ns_;
}

double SimLink::first_ns() const noexcept { return done_.empty() ? next_ns() : done_.front().ns; }

bool SimLink::take(std::int64_t now_ns, Write& write) {
  if (done_.empty() || done_.front().ns > static_cast<double>(now_ns)) return false;
  write = done_.front().write;
  done_.pop_front();
  return true;
}

Sim::Sim(SplitRule rule, const Traffic& traffic, const std::vector<SimPath>& paths,
         std::uint64_t seed)
    : rule_(rule),
      traffic_(traffic),
      chunk_bytes_(
          round_up(std::max(traffic.least_chunk_bytes, traffic.message_bytes / kMostChunks))),
      scheduler_(guesses_of(paths)),
      links_(paths.size()),
      completed_ns_(paths.size()),
      longest_gap_ns_(paths.size()),
      random_(seed) {
  for (std::size_t i = 0; i < paths.size(); ++i) set_rate(i, paths[i].mb_per_s);
  begin_messages();
}

void Sim::set_rate(std::size_t path, double mb_per_s) {
  links_[path].set_rate(mb_per_s * kBytesPerNs, now_ns_);
}

void Sim::run_until(std::int64_t end_ns) {
  for (std::int64_t poll_ns = next_poll_ns(); poll_ns <= end_ns; poll_ns = next_poll_ns()) {
    record_until(poll_ns);
    now_ns_ = poll_ns;
    poll();
    begin_messages();
  }
  record_until(end_ns);
  now_ns_ = end_ns;
}

// A while after something completes, or after what has completed already becomes visible.
std::int64_t Sim::next_poll_ns() {
  double next_ns = SimLink::kNever;
  for (const SimLink& link : links_) next_ns = std::min(next_ns, link.first_ns());
  if (next_ns == SimLink::kNever) return static_cast<std::int64_t>(SimLink::kNever);
  const std::int64_t visible_ns = static_cast<std::int64_t>(next_ns) + 1 + traffic_.latency_ns;
  return std::max(visible_ns, now_ns_) +
         static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(traffic_.most_poll_ns));
}

void Sim::record_until(std::int64_t end_ns) {
  for (std::int64_t ns = next_interval_ns(); ns <= end_ns; ns = next_interval_ns()) {
    Interval& interval = intervals_.emplace_back();
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i].advance(ns);
      const double before = std::exchange(carried_[i], links_[i].carried_bytes());
      interval[i] = (carried_[i] - before) / static_cast<double>(kIntervalNs) / kBytesPerNs;
    }
  }
}

std::int64_t Sim::next_interval_ns() const noexcept {
  return static_cast<std::int64_t>(intervals_.size() + 1) * kIntervalNs;
}

void Sim::poll() {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i].advance(now_ns_);
    SimLink::Write write;
    while (links_[i].take(now_ns_ - traffic_.latency_ns, write)) {
      scheduler_.completed(static_cast<std::uint8_t>(i), write.bytes, now_ns_);
      longest_gap_ns_[i] = std::max(longest_gap_ns_[i], now_ns_ - completed_ns_[i]);
      completed_ns_[i] = now_ns_;
      messages_[write.message - messages_.front().number].missing -= write.chunks;
    }
  }
  while (!messages_.empty() && messages_.front().missing == 0) messages_.pop_front();
}

void Sim::begin_messages() {
  const std::uint32_t chunks = (traffic_.message_bytes + chunk_bytes_ - 1) / chunk_bytes_;
  while (messages_.size() < traffic_.in_flight) {
    messages_.push_back({.number = begun_++,
                         .unsent = chunks,
                         .missing = chunks,
                         .bytes_left = traffic_.message_bytes});
  }
  for (Message& message : messages_) {
    if (message.unsent != 0) post(message);
    if (message.unsent != 0) break;
  }
}

void Sim::post(Message& message) {
  if (rule_ == SplitRule::kScheduler) return post_by_scheduler(message);
  const std::uint32_t parts = static_cast<std::uint32_t>(links_.size());
  message.unsent = message.missing = parts;
  const std::uint32_t part_bytes = round_up((traffic_.message_bytes + parts - 1) / parts);
  for (std::uint8_t i = 0; i < parts; ++i) post_chunks(message, i, 1, part_bytes);
}

void Sim::post_by_scheduler(Message& message) {
  if (traffic_.message_bytes < Scheduler::kLeastSplitBytes) {
    const std::uint8_t path = scheduler_.choose(kAllPaths, traffic_.message_bytes, now_ns_);
    return post_chunks(message, path, message.unsent, chunk_bytes_);
  }
  Scheduler::Shares shares;
  while (message.unsent != 0) {
    const unsigned count =
        scheduler_.split(kAllPaths, message.unsent, chunk_bytes_, now_ns_, shares);
    if (count == 0) return;
    for (unsigned i = 0; i < count; ++i)
      post_chunks(message, shares[i].path, shares[i].chunks, chunk_bytes_);
  }
}

void Sim::post_chunks(Message& message, std::uint8_t path, std::uint32_t chunks,
                      std::uint32_t chunk_bytes) {
  const std::uint64_t bytes =
      std::min<std::uint64_t>(message.bytes_left, std::uint64_t{chunks} * chunk_bytes);
  links_[path].post(
      {.message = message.number, .bytes = bytes, .chunks = chunks, .posted_ns = now_ns_});
  scheduler_.posted(path, bytes, now_ns_);
  message.unsent -= chunks;
  message.bytes_left -= bytes;
  ++writes_;
}

std::int64_t Sim::longest_gap_ns(std::size_t path) const noexcept {
  return std::max(longest_gap_ns_[path], now_ns_ - completed_ns_[path]);
}

double Sim::ideal_mb_per_s() const noexcept {
  double sum = 0;
  for (const SimLink& link : links_) sum += link.bytes_per_ns();
  return sum / kBytesPerNs;
}

double Sim::mb_per_s(std::size_t first, std::size_t count) const noexcept {
  double sum = 0;
  for (std::size_t i = first; i < first + count; ++i)
    for (const double path : intervals_[i]) sum += path;
  return sum / static_cast<double>(count);
}

}  // namespace beeline::test
