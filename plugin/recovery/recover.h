// SPDX-License-Identifier: Apache-2.0
//
// Goes on without a path that has failed, if the ends of the comm exchange messages about its
// paths: the path is fenced at both ends, the ends exchange reports, and what was lost goes over
// the other paths. Then the path is made anew. Without another path, isend and irecv answer "call
// again" and requests stay unfinished until it is.
//
// RepairEngine (plugin/repair) decides all that. This object feeds it with what has happened, and
// carries out what it says. A failure that the same data would meet on any other path as well, such
// as that of a wrong key, ends the comm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugin/connect/comm/path_mail.h"
#include "plugin/recovery/silence_watch.h"
#include "plugin/recovery/verdict.h"
#include "plugin/repair/ending.h"
#include "plugin/repair/engine.h"
#include "plugin/transfer/in_band.h"
#include "plugin/transfer/path_events.h"
#include "plugin/transfer/path_repair.h"

namespace beeline {

// The ports at both ends of one path of the comm.
Ends ends_of(const Comm& comm, std::size_t path);

inline constexpr const char* kGoneText =
    "its device was removed from its host, or has failed for good";

// One for each comm. Of a comm with one path, it allocates nothing until that fails.
class Recover final : public PathEvents {
 public:
  // A receiver that has waited for `ask_after_ns` asks whether its line was lost; 0: never.
  explicit Recover(const RepairLimits& limits = {}, std::int64_t ask_after_ns = 0) noexcept
      : limits_(limits), ask_after_ns_(ask_after_ns) {}

  void on_failed_request(Comm& comm, const Path& path, const ibv_wc& failed,
                         const char* doing) override;
  Errc on_refused(Comm& comm, const Path& path, int rc, const char* doing) override;
  void on_unreadable_queue(Comm& comm, const Path& path) override;
  void on_protocol_error(Comm& comm, const char* what) override;
  Errc on_fault(Comm& comm, Errc code, const char* doing, const std::string& cause) override;
  Status on_alarm(Comm& comm) override;
  Errc on_call_while_alarmed(Comm& comm, const char* call, bool* may) override;
  void on_waiting(Comm& comm, std::int64_t now_ns) override;
  Status on_quiet(Comm& comm, StallWatch::Verdict verdict) override;

 private:
  // Made when something fails for the first time.
  struct State {
    explicit State(const RepairEngine::Facts& facts) noexcept : engine(facts) {}

    RepairEngine engine;
    std::vector<RepairEvent> waiting;  // for the event before
    bool is_busy = false;              // with an event
    InBand in_band;
    SeenSerials seen;
    std::uint32_t last_serial = 0;
  };

  static RepairEngine::Moment moment(Comm& comm) noexcept;
  State& state(Comm& comm);
  PathRepair& repair_of(Comm& comm, std::size_t path);

  // --- Events ---
  // Whether the comm can go on if a path is taken out of use.
  static bool can_recover(const Comm& comm) noexcept;
  // Whether another path may mend that.
  bool may_mend(Comm& comm, const Path& path, const ibv_wc& failed);
  void fail_path(Comm& comm, std::size_t path, const std::string& cause, const RepairEvent& event,
                 wire::PathTrouble trouble = wire::PathTrouble::kNone);
  void fail_path(Comm& comm, std::size_t path, const std::string& cause);
  // Notes what sentences about the failure need.
  void note_failure(Comm& comm, std::size_t path, const std::string& cause,
                    wire::PathTrouble trouble, wire::PathTrouble their_trouble);
  void take(Comm& comm, const RepairEvent& event, const PathMessage* message = nullptr);
  void take_mail(Comm& comm, PathMail mail);
  void take_message(Comm& comm, const PathMessage& message);
  void take_queue_error(Comm& comm, const QueueFailed& failed);
  // A receiver that waits for long asks the sender, who finds out what was lost.
  void ask_for_line(Comm& comm, std::int64_t now_ns);
  void look_for_line(Comm& comm, const wire::PathNote& note);
  void take_in_band(Comm& comm);
  void write_in_band(Comm& comm);
  // Tells the peer, over the control channel and in-band.
  void send(Comm& comm, PathMessage message);
  void take_made(Comm& comm, PathMade made);
  void take_failure(Comm& comm, const PathNotMade& failure);
  void check_port(Comm& comm, std::size_t path);
  void check_port_in_use(Comm& comm, std::size_t path);
  void lose_device(Comm& comm, std::size_t path);
  void advance(Comm& comm);

  // --- Commands: recover_act.cc ---
  void carry_out(Comm& comm, const RepairCommands& commands, const PathMessage* message);
  // The result, where the engine waits for it.
  std::optional<RepairEvent> carry_out(Comm& comm, const RepairCommand& command,
                                       const PathMessage* message);
  std::optional<RepairEvent> act(Comm& comm, const RepairCommand& command,
                                 const PathMessage* message);
  std::optional<RepairEvent> fence(Comm& comm, std::size_t path);
  void take_report(Comm& comm, std::size_t path);
  void resume(Comm& comm, std::size_t path, std::uint32_t generation);
  void send_fenced(Comm& comm, std::size_t path, std::uint32_t generation, bool has_peer_report);
  std::optional<RepairEvent> make_queues(Comm& comm, const RepairCommand& command,
                                         const PathMessage* message);
  std::optional<RepairEvent> connect_queues(Comm& comm, const RepairCommand& command,
                                            const wire::AnswerPath& answer);
  bool join(Comm& comm, std::size_t path);
  void discard_made(Comm& comm, std::size_t path);
  void check_finished(Comm& comm, std::size_t path);

  // --- Sentences about paths: recover_say.cc ---
  void say_up(Comm& comm, const RepairCommand& command);
  void say_added(Comm& comm, std::size_t path);
  void say_resumed(Comm& comm, std::size_t path);
  void say_waiting(Comm& comm);
  void note_place(Comm& comm, std::size_t path);
  std::string describe_outage(Comm& comm, const char* remark);

  // --- The next generation is prepared before it is offered: recover_move.cc ---
  void prepare(Comm& comm, const RepairCommand& command);
  void take_prepared(Comm& comm, PathMade made);
  void take_awaited(Comm& comm, std::size_t path, std::uint32_t generation);
  void take_not_prepared(Comm& comm, const PathNotMade& failure);
  // Whether the message is about that.
  bool take_move_message(Comm& comm, const PathMessage& message);
  void prepare_for(Comm& comm, const wire::OfferPath& offer);
  void connect_prepared(Comm& comm, const wire::AnswerPath& answer);
  // The queue pairs of that generation, if they are ready and those of the other end have this
  // number. Otherwise they are dropped.
  std::optional<PreparedPath> use_prepared(Comm& comm, std::size_t path, std::uint32_t generation,
                                           std::optional<std::uint32_t> peer_qpn);
  void drop_prepared(Comm& comm, std::size_t path);
  // At the receiver: the queue pairs wait to be joined.
  static void adopt(PathRepair& known, PreparedPath ready);

  // --- Devices: recover_devices.cc ---
  static RepairEvent ask_own_port(const Comm& comm, std::size_t path);
  // Whether no other path of the same rail is in use with another device.
  static bool fits_rail(const Comm& comm, std::size_t path, const Device& device) noexcept;
  // The devices to try, in this order. `turn` says with which in the list to begin.
  static std::vector<const Device*> devices_for(const Comm& comm, std::size_t path,
                                                bool may_stand_in, std::uint32_t turn);
  static std::uint32_t turn_for(PathRepair& known, const wire::OfferPath& offer);
  static std::string why_stand_in_leaves(const Comm& comm, std::size_t left);

  // --- The end of the comm: recover_end.cc ---
  // The comm has failed.
  bool has_ended() const noexcept { return !end_.has_value(); }
  void suspect(Comm& comm, const Path& path, const ibv_wc& failed, const char* doing);
  Status check_end(Comm& comm);
  Status take_goodbye(Comm& comm, std::int64_t now_ns);
  void end_without_path(Comm& comm);
  void end_for_mute_peer(Comm& comm, std::size_t path);
  Status end_if_stalled(Comm& comm, StallWatch::Verdict verdict);
  // The cause is at this end of the path.
  Errc end_on(Comm& comm, const Path& path, const char* doing, const std::string& why);
  // Logs once that `doing` is impossible and why, and tells the peer.
  Status end(Comm& comm, std::size_t path, const char* doing, const Verdict& why);

  // The request of Ending::suspect().
  struct Suspected {
    FailedRequest request;
    std::int64_t worked_until_ns = 0;  // when data still moved
  };

  Ending ending_;
  std::unique_ptr<Suspected> suspected_;
  Status end_;  // not ok: the comm has ended
  bool refusal_logged_ = false;
  const RepairLimits limits_;
  const std::int64_t ask_after_ns_;
  // For what a receiver waits, as of the last look.
  struct Waited {
    std::optional<AwaitedLine> line;
    std::int64_t since_ns = 0;  // or since this end has asked
  };
  std::unique_ptr<Waited> waited_;  // made when a comm first waits
  std::unique_ptr<State> state_;
  std::unique_ptr<SilenceWatch> silence_;  // made when a comm with several paths first waits
};

}  // namespace beeline
