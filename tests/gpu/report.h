// SPDX-License-Identifier: Apache-2.0
//
// What the ranks and the process that started them say to each other. A line is a SOCK_SEQPACKET
// socket, so a report is there whole or not at all, and a rank that dies closes its end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/fd.h"
#include "tests/gpu/nccl_api.h"

namespace beeline::gpu {

enum class ReportKind : std::uint32_t {
  kStep,         // text: what the rank is about to do
  kFacts,        // text: what it found on this machine
  kUnavailable,  // text: what this machine lacks
  kUniqueId,     // unique_id; rank 0 makes it, the others are sent it
  kResult,       // index, round, wrong, seconds; text: the first wrong element
  kDone,         // all is done and destroyed
  kFailed,       // text: why
};

struct Report {
  ReportKind kind;
  std::uint32_t index = 0;  // of the case
  std::uint32_t round = 0;
  std::uint64_t wrong = 0;
  double seconds = 0;
  UniqueId unique_id{};
  std::array<char, 1024> text{};  // ends with a zero; what does not fit is cut off
};

class Line {
 public:
  explicit Line(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const noexcept { return fd_.get(); }

  // A line whose other end is gone swallows what is said: whoever left is seen by other means.
  void say(const Report& report) const;
  void say(ReportKind kind, std::string_view text) const;
  // Waits for the next; nothing when the other end is gone.
  std::optional<Report> hear() const;

 private:
  UniqueFd fd_;
};

struct LinePair {
  Line parent;
  Line child;
};
std::optional<LinePair> make_lines();

}  // namespace beeline::gpu
