// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/rail_traffic.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>

#include "common/base/log.h"

namespace beeline {
namespace {

std::string gigabytes(double bytes, const char* unit) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%.*f %s", bytes < 1e10 ? 2 : 1, bytes / 1e9, unit);
  return text.data();
}

}  // namespace

void RailTraffic::on_made() noexcept {
  const std::lock_guard lock(mutex_);
  ++open_;
}

void RailTraffic::on_closing(const Comm& comm) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    count(comm);
    if (open_ == 1) log();
  } catch (const std::exception&) {
    // Out of memory for a line in the log.
  }
  if (--open_ == 0) forget();
}

void RailTraffic::forget() noexcept {
  closed_ = 0;
  path_failures_ = 0;
  sent_.clear();
  received_.clear();
}

void RailTraffic::count(const Comm& comm) {
  ++closed_;
  path_failures_ += comm.path_failures();
  Shares& shares = comm.role() == Role::kSend ? sent_ : received_;
  for (std::size_t i = 0; i < comm.paths().size(); ++i) {
    const std::uint64_t bytes = comm.bytes_of_path(i);
    if (bytes == 0) continue;
    Share& share = shares[label(*comm.paths()[i].resources->device)];
    share.bytes += bytes;
    share.weighted_rate += comm.rate_of_path(i) * static_cast<double>(bytes);
  }
}

void RailTraffic::log() const {
  const std::string sent = text("sent", sent_);
  const std::string received = text("received", received_);
  if (sent.empty() && received.empty()) return;
  const char* const between = sent.empty() || received.empty() ? "" : "; ";
  const std::string failures =
      path_failures_ == 0 ? "" : "; paths that failed: " + std::to_string(path_failures_);
  const std::string closed = closed_ == 1
                                 ? "the connection is closed"
                                 : "all " + std::to_string(closed_) + " connections are closed";
  BL_INFO(kLogNet, "%s: %s%s%s%s", closed.c_str(), sent.c_str(), between, received.c_str(),
          failures.c_str());
}

std::string RailTraffic::text(const char* direction, const Shares& shares) {
  double all = 0;
  for (const auto& [name, share] : shares) all += static_cast<double>(share.bytes);
  if (all == 0) return {};
  std::string text = std::string(direction) + " " + gigabytes(all, "GB") + ":";
  const char* before = " ";
  for (const auto& [name, share] : shares) {
    const auto bytes = static_cast<double>(share.bytes);
    const auto percent = std::lround(100 * bytes / all);
    text += before + name + " " + std::to_string(percent) + " %";
    if (share.weighted_rate > 0)
      text += " at " + gigabytes(1e9 * share.weighted_rate / bytes, "GB/s");
    before = ", ";
  }
  return text;
}

}  // namespace beeline
