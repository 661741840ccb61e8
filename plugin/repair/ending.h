// SPDX-License-Identifier: Apache-2.0
//
// Decides when a comm ends because its peer has, or because of a failed request that another path
// would not mend. Whether it would is tried, if there is one. If there is none, or the message has
// failed there as well, the request is suspected: the control channel gets a grace period to report
// that the peer's process died, has closed, or has fenced the path. Like RepairEngine, this object
// has no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/check/assert.h"
#include "plugin/repair/times.h"

namespace beeline {

class Ending {
 public:
  enum class Peer : std::uint8_t { kOpen, kClosed, kDead };
  enum class Reason : std::uint8_t {
    kNone,
    kPeerDied,
    kDataMissing,    // the peer has closed, and data that it had sent does not come
    kRequestFailed,  // nothing has explained it
  };

  // Only of the first failed request: others are flushed after it.
  void suspect(std::size_t path, std::int64_t now_ns) noexcept {
    BL_ASSERT(suspect_ == kNoPath, "the first failed request is the suspicious one");
    suspect_ = static_cast<std::uint8_t>(path);
    is_hopeless_ = refused_ && refused_->times >= kMostRefusals && refused_->path == path;
    grace_ends_ns_ = now_ns + times::kGraceNs;
  }
  std::optional<std::size_t> suspect() const noexcept {
    return suspect_ == kNoPath ? std::nullopt : std::optional<std::size_t>(suspect_);
  }
  bool suspects(std::size_t path) const noexcept { return suspect_ == path; }
  // The failure is explained, and the comm can go on without the path. A message that fails each
  // time it is sent is not: the other end may fence the path because of its failure.
  void forget_suspicion_of(std::size_t path) noexcept {
    if (suspects(path) && !is_hopeless_) suspect_ = kNoPath;
  }

  // A request has failed with a status that no fault of a path causes. Whether that is to be
  // suspected although other paths work, because what was asked for has failed on another path
  // before. `line` names the message; none: it is not known.
  bool follows_message(std::size_t path, std::optional<std::uint32_t> line,
                       std::int64_t now_ns) noexcept {
    const bool is_again =
        refused_ && refused_->line == line && now_ns - refused_->ns <= times::kRefusedAgainNs;
    const bool is_elsewhere = is_again && refused_->path != path;
    const int times = is_again && line ? refused_->times + 1 : 1;
    refused_ = {.path = path, .line = line, .ns = now_ns, .times = times};
    return is_elsewhere || times >= kMostRefusals;
  }

  // Data that the peer sent before may still be on its way.
  void begin_goodbye(std::int64_t now_ns) noexcept {
    has_goodbye_ = true;
    grace_ends_ns_ = now_ns + times::kGraceNs;
  }
  bool has_goodbye() const noexcept { return has_goodbye_; }

  Reason look(Peer peer, bool waits_for_data, std::int64_t now_ns) const noexcept {
    if (peer == Peer::kDead) return Reason::kPeerDied;
    if (now_ns <= grace_ends_ns_) return Reason::kNone;
    if (peer == Peer::kClosed && !waits_for_data) return Reason::kNone;
    if (suspect_ != kNoPath) return Reason::kRequestFailed;
    return peer == Peer::kClosed ? Reason::kDataMissing : Reason::kNone;
  }

 private:
  static constexpr std::uint8_t kNoPath = 0xff;
  // So many failures of one message are its own: the other end fences a path now and then in the
  // middle of a message, but not each time.
  static constexpr int kMostRefusals = 4;
  // The last failure with such a status.
  struct Refused {
    std::size_t path = 0;
    std::optional<std::uint32_t> line;
    std::int64_t ns = 0;
    int times = 0;  // in a row, of this message
  };

  std::uint8_t suspect_ = kNoPath;  // the path
  bool is_hopeless_ = false;        // the suspicion stays
  bool has_goodbye_ = false;
  std::int64_t grace_ends_ns_ = 0;
  std::optional<Refused> refused_;
};

}  // namespace beeline
