// SPDX-License-Identifier: Apache-2.0
//
// The policy for failures of a comm whose ends exchange messages about its paths: a path that fails
// is fenced at both ends, the ends exchange reports, and what was lost goes over the other paths.
// Then the path is made anew. Without another path, isend and irecv answer "call again" and
// requests stay unfinished until it is. What each end does follows from a table (path_machine.h).
//
// Failures that would follow the data to any path end the comm (give_up.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/connect/comm/path_mail.h"
#include "plugin/recovery/give_up.h"
#include "plugin/recovery/outage.h"
#include "plugin/recovery/path_machine.h"
#include "plugin/recovery/repair.h"
#include "plugin/recovery/silence_watch.h"
#include "plugin/wire/limits.h"

namespace beeline {

// One for each comm. Of a comm with one path, it allocates nothing until that fails.
class Recover final : public PathEvents {
 public:
  // `give_up_ns` is how long the comm may have no path that works; 0: for ever.
  explicit Recover(std::int64_t give_up_ns = 0) noexcept : outage_(give_up_ns) {}

  void on_failed_request(Comm& comm, const DataPath& path, const ibv_wc& failed,
                         const char* doing) override;
  Errc on_refused(Comm& comm, const DataPath& path, int rc, const char* doing) override;
  void on_unreadable_queue(Comm& comm, const DataPath& path) override;
  void on_protocol_error(Comm& comm, const char* what) override;
  Errc on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) override;
  Status on_alarm(Comm& comm) override;
  Errc on_call_while_alarmed(Comm& comm, const char* call, bool* may) override;
  void on_waiting(Comm& comm, std::int64_t now_ns) override;
  Status on_quiet(Comm& comm, StallWatch::Verdict verdict) override;

 private:
  using Repairs = std::array<Repair, wire::kMaxPaths>;

  // Whether the comm can go on if this path is taken out of use. It is made anew, unless the
  // connection manager has connected it.
  static bool can_recover(const Comm& comm, std::size_t path) noexcept;
  static bool has_other_path(const Comm& comm, std::size_t path) noexcept;
  Repair& repair_of(const Comm& comm, std::size_t path);
  bool is_hopeless(const Comm& comm, std::size_t path, const ibv_wc& failed);
  void fail_path(Comm& comm, std::size_t path, const std::string& cause);

  // Carries out what the table says. `message` is that of the event. False: what was made cannot be
  // joined now, and the event has to come again.
  bool take_event(Comm& comm, std::size_t path, const PathEvent& event, const PathMessage* message);
  bool take_local(Comm& comm, std::size_t path, PathEvent::Kind kind) {
    return take_event(comm, path, {.kind = kind}, nullptr);
  }
  // False: the later actions of the transition must not be taken.
  bool take_action(Comm& comm, std::size_t path, PathAction action, const PathTransition& made,
                   const PathMessage* message);
  bool fence(Comm& comm, std::size_t path);
  bool is_drained(Comm& comm, std::size_t path, std::int64_t now);
  bool take_report(Comm& comm, std::size_t path);
  static void resume(Comm& comm, std::size_t path, const Repair& repair);
  // The sender: tells the receiver for which of its lines nothing more will be sent.
  static void send_finished(Comm& comm, std::size_t path, const Repair& repair,
                            const wire::LineSet& finished);
  void order_queues(Comm& comm, std::size_t path, const PathMessage* message);
  void drop_made(Comm& comm, std::size_t path);
  static bool join(Comm& comm, std::size_t path, Repair& repair);
  void join_made(Comm& comm, std::size_t path);
  void on_state(Comm& comm, std::size_t path, Repair& repair);
  void on_up(Comm& comm, std::size_t path, Repair& repair, std::int64_t now);

  void take_mail(Comm& comm, PathMail mail);
  void take_message(Comm& comm, const PathMessage& message);
  void take_finished(Comm& comm, std::size_t path, const wire::Fenced& message);
  void check_finished(Comm& comm, std::size_t path);
  void on_two_refusals(Comm& comm, std::size_t path);
  void take_made(Comm& comm, PathMade made);
  void take_failure(Comm& comm, const PathNotMade& failure);

  void check_ports(Comm& comm);
  void check_port(Comm& comm, std::size_t path);
  void check_usable(Comm& comm, std::size_t path);
  void lose_device(Comm& comm, std::size_t path);

  // --- Other devices: recover_devices.cc ---
  // The device that NCCL has chosen for the path, opened again if it was gone.
  static const Device& own_device(const Comm& comm, std::size_t path) noexcept;
  // Whether another device has taken its place.
  static bool is_stand_in(const Comm& comm, std::size_t path) noexcept;
  bool may_stand_in(const Comm& comm, std::size_t path) const noexcept;
  // Whether the path could be made anew now, as far as this end knows.
  bool is_usable(const Comm& comm, std::size_t path);
  // The devices to try, in this order.
  std::vector<const Device*> devices_for(const Comm& comm, std::size_t path);
  // Whether no other path of the same rail is in use with another device.
  static bool fits_rail(const Comm& comm, std::size_t path, const Device& device) noexcept;
  // When advance_standbys() may have to act.
  std::int64_t standbys_due_ns(const Comm& comm, std::int64_t now) const noexcept;
  void advance_standbys(Comm& comm, std::int64_t now);
  void check_own_device(Comm& comm, std::size_t path, std::int64_t now);
  static const Device* own_device_in_use(const Comm& comm) noexcept;
  bool leave_beside_own(Comm& comm, std::size_t path, std::int64_t now);
  void leave_stand_in(Comm& comm, std::size_t path, const std::string& cause);
  void advance_path(Comm& comm, std::size_t path, std::int64_t now);
  void advance(Comm& comm);
  void check_outage(Comm& comm, std::int64_t now);
  std::string describe_paths(const Comm& comm) const;

  GiveUp give_up_;
  Outage outage_;
  bool has_called_standbys_ = false;       // in this outage
  std::unique_ptr<Repairs> repairs_;       // by path
  std::unique_ptr<SilenceWatch> silence_;  // made when a comm with several paths first waits
};

}  // namespace beeline
