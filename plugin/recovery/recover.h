// SPDX-License-Identifier: Apache-2.0
//
// The policy for failures of a comm that has several paths: a path that fails is fenced at both
// ends, the ends exchange reports, and what was lost goes over the other paths. What each end does
// follows from a table (path_machine.h). The path is not made anew yet.
//
// Failures that no other path can make up for end the comm (give_up.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "plugin/recovery/give_up.h"
#include "plugin/recovery/path_machine.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/message_fenced.h"

namespace beeline {

// One for each comm. Allocates nothing until something fails.
class Recover final : public PathEvents {
 public:
  void on_failed_request(Comm& comm, const DataPath& path, const ibv_wc& failed,
                         const char* doing) override;
  Errc on_refused(Comm& comm, const DataPath& path, int rc, const char* doing) override;
  void on_unreadable_queue(Comm& comm, const DataPath& path) override;
  void on_protocol_error(Comm& comm, const char* what) override;
  Errc on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) override;
  Status on_alarm(Comm& comm) override;
  Errc on_call_while_alarmed(Comm& comm, const char* call, bool* may) override;
  Status on_quiet(Comm& comm, StallWatch::Verdict verdict) override;

 private:
  using Report = decltype(wire::Fenced::report);
  // One path.
  struct Repair {
    PathStatus status;
    std::string cause;  // in words
    std::int64_t failed_ns = 0;
    Report ours;
    Report theirs;
  };
  using Repairs = std::array<Repair, wire::kMaxPaths>;

  bool can_do_without(const Comm& comm, std::size_t path) const noexcept;
  Repair& repair_of(const Comm& comm, std::size_t path);
  void fail_path(Comm& comm, std::size_t path, const std::string& cause);
  // Carries out what the table says. `message` is null unless one has come.
  void take_event(Comm& comm, std::size_t path, PathEvent::Kind kind, const wire::Fenced* message);
  // False: the later actions of the transition must not be taken.
  bool take_action(Comm& comm, std::size_t path, PathAction action, const PathTransition& made,
                   const wire::Fenced* message);
  bool take_report(Comm& comm, Repair& repair);
  void resume(Comm& comm, std::size_t path, const Repair& repair);
  void take_message(Comm& comm, const wire::Fenced& message);
  void advance(Comm& comm);

  GiveUp give_up_;
  std::unique_ptr<Repairs> repairs_;  // by path
};

}  // namespace beeline
