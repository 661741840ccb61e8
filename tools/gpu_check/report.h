// SPDX-License-Identifier: Apache-2.0
//
// The messages between the ranks and the process that started them. Sockets are SOCK_SEQPACKET, so
// a report arrives completely or not at all, and the socket of a rank that dies is closed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/fd.h"
#include "tools/gpu_check/nccl_api.h"

namespace beeline::gpu {

enum class ReportKind : std::uint32_t {
  kStep,         // text: what the rank is about to do
  kFacts,        // text: what it found on this machine
  kUnavailable,  // text: what this machine lacks
  kUniqueId,     // unique_id; from rank 0, and then to the others
  kResult,       // index, round, wrong, seconds; text: the first wrong element
  kDone,         // all operations are done
  kFailed,       // text: why
};

struct Report {
  ReportKind kind;
  std::uint32_t index = 0;  // of the case
  std::uint32_t round = 0;
  std::uint64_t wrong = 0;
  double seconds = 0;
  UniqueId unique_id{};
  std::array<char, 1024> text{};  // ends with a zero; longer texts are cut
};

class ReportSocket {
 public:
  explicit ReportSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  int fd() const noexcept { return fd_.get(); }

  // Does nothing if the other end is closed, which is noticed in other ways.
  void send(const Report& report) const;
  void send(ReportKind kind, std::string_view text) const;
  // Waits for the next report. Returns nothing if the other end is closed.
  std::optional<Report> receive() const;

 private:
  UniqueFd fd_;
};

struct ReportSocketPair {
  ReportSocket parent;
  ReportSocket child;
};
std::optional<ReportSocketPair> make_report_sockets();

}  // namespace beeline::gpu
