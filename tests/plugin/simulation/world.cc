// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/world.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "plugin/connect/handshake/agreement.h"
#include "plugin/connect/path/comm_end.h"
#include "plugin/verbs/cm_channel.h"

namespace beeline::simulation {
namespace {

// Applications send without pauses from before a fault until after it.
constexpr std::int64_t kRushBefore = 40 * kUs;
constexpr std::int64_t kRushAfter = 40 * kUs;
constexpr std::int64_t kReaction = 800;  // ns from an event to a call
constexpr std::int64_t kPeerTimeout = 20 * kSec;
constexpr PeerSilence::Limits kSilence = {.peer_ns = kPeerTimeout, .outage_ns = 300 * kSec};
// After this time without faults everything has to move, and every path to be in use: an attempt
// to make a path anew every 5 s at most, a second each to make and to probe it, and what a device
// that refuses or a peer that does not answer adds.
constexpr std::int64_t kRecovered = 20 * kSec;
// A device that stood in is left when the own one has been well for 5 s, or for a multiple of that
// if going back has failed before. Until then, other paths of the rail may have to wait.
constexpr std::int64_t kRecoveredFromStandIn = 90 * kSec;
// How long after its time a comm may be served, while the control thread works.
constexpr std::int64_t kLateService = 300 * kMs;
constexpr std::uint64_t kDrawsOfWorld = 0x6000;
constexpr std::uint32_t kMbps = 100'000;

template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(describe(result.error()));
  return std::move(*result);
}
template <class T>
T must(Outcome<T> outcome) {
  if (!outcome) throw std::runtime_error(outcome.error().text);
  return std::move(*outcome);
}
void must(const Status& status) {
  if (!status) throw std::runtime_error(describe(status.error()));
}

// The part of a connection manager that does nothing.
verbs::CmId idle_cm_id() {
  static const verbs::CmApi api = [] {
    verbs::CmApi made;
    made.destroy_id = [](rdma_cm_id*) { return 0; };
    made.destroy_event_channel = [](rdma_event_channel*) {};
    return made;
  }();
  static rdma_cm_id raw = {};
  return {std::make_shared<verbs::CmChannel>(api, nullptr), &raw};
}

template <class Made>
CommPlans plans() {
  CommPlans plans;
  for (std::size_t i = 0; i < plans.by_paths.size(); ++i) {
    plans.by_paths[i] = Made::plan(i + 1);
    plans.by_paths[i].comm_bytes = sizeof(Guarded<Made>);
  }
  return plans;
}

}  // namespace

World::World(const RunOptions& options)
    : options_(options),
      network_(agenda_, options.seed),
      nics_(agenda_, network_, payload_),
      draws_(options.seed, kDrawsOfWorld),
      start_ns_(agenda_.now()) {
  control_.resume_channels = true;
  control_.sender = plans<SendComm>();
  control_.receiver = plans<RecvComm>();
  control_.qp.timeout = static_cast<std::uint8_t>(options.timeout);
  control_.qp.ece = false;
  control_.qp.thread_domains = 0;
  control_.qp.qps_per_rail = static_cast<int>(options.queue_pairs);
  checks_service_ = std::ranges::none_of(options_.faults, [](const Fault& fault) {
    return fault.kind == FaultKind::kStopped || fault.kind == FaultKind::kSlowControl;
  });
  make_hosts();
  for (std::uint32_t i = 0; i < options.comms; ++i) connect(i);
  for (const Fault& fault : options_.faults) {
    agenda_.at(start_ns_ + fault.at_ns - kRushBefore, [this] { rush(); });
    agenda_.at(start_ns_ + fault.at_ns, [this, &fault] { begin(fault); });
    if (fault.for_ns != 0) {
      agenda_.at(start_ns_ + fault.at_ns + fault.for_ns, [this, &fault] {
        if (!is_over_) end(fault);
      });
    }
  }
  for (std::uint32_t host = 0; host < options.hosts; ++host) {
    agenda_.in(kReaction, [this, host] { look(host); });
  }
}

World::~World() {
  pairs_.clear();
  for (const auto& process : processes_) process->look_for_orders();
}

void World::make_hosts() {
  turns_.resize(options_.hosts);
  for (std::uint32_t host = 0; host < options_.hosts; ++host) {
    ProcessOptions process = {
        .host = "h" + std::to_string(host), .control = &control_, .seed = options_.seed};
    for (std::uint32_t nic = 0; nic < options_.nics; ++nic) {
      process.nics.push_back(&nics_.add("nic" + std::to_string(nic), kMbps));
      process.nics.back()->hazards().lacks_immediates =
          !options_.has_immediates || (nic >= options_.rails && !options_.have_standbys_immediates);
    }
    processes_.push_back(std::make_unique<Process>(agenda_, nics_, process));
    processes_.back()->set_wake([this, host] { wake(host); });
  }
  for (std::size_t one = 0; one < processes_.size(); ++one) {
    for (std::size_t other = one + 1; other < processes_.size(); ++other) {
      channels_.push_back(
          std::make_unique<Channel>(agenda_, *processes_[one], *processes_[other], kSilence));
    }
  }
  for (const auto& process : processes_) {
    std::vector<const Device*>& rails = devices_.emplace_back();
    for (std::uint32_t rail = 0; rail < options_.rails; ++rail) {
      rails.push_back(&process->devices()[rail]);
    }
  }
}

Channel& World::channel_between(const Process& one, const Process& other) {
  const auto found = std::ranges::find_if(channels_, [&](const auto& channel) {
    return channel->end_of(one).process == &one && channel->end_of(one).peer->process == &other;
  });
  return **found;
}

// As the connector and the acceptor do it, with the same functions and without messages.
void World::connect(std::uint32_t number) {
  const std::uint32_t from = number % options_.hosts;
  const std::uint32_t to =
      (from + 1 + number / options_.hosts % (options_.hosts - 1)) % options_.hosts;
  Process& sends = *processes_[from];
  Process& receives = *processes_[to];
  Channel& channel = channel_between(sends, receives);
  const wire::RailCounts counts = rail_counts(devices_[from], control_.qp);
  const PathLayout layout = path_layout(counts, counts);
  CommEnd ours = must(CommEnd::create(control_.sender.of(layout.count)));
  CommEnd theirs = must(CommEnd::create(control_.receiver.of(layout.count)));
  const auto is_missing = [&](std::uint8_t path) { return (options_.missing >> path & 1) != 0; };
  for (std::uint8_t i = 0; i < layout.count; ++i) {
    if (is_missing(i)) continue;
    const Device& here = *devices_[from][layout.place(i).rail];
    const Device& there = *devices_[to][layout.place(i).peer_rail];
    must(ours.add_path(layout.place(i), here, control_.qp));
    must(theirs.add_path(layout.place(i), there, control_.qp));
    PathSetup& path = ours.paths().at(i);
    PathSetup& peer = theirs.paths().at(i);
    const PortSide side = {here, here.facts, control_.qp};
    const PortSide peer_side = {there, there.facts, control_.qp};
    wire::PathOffer offer = must(make_offer(side));
    offer.qp = qp_facts(side, path);
    Agreement agreed = must(agree(peer_side, offer, sends.host(), random_flow_labels()));
    peer.set_route(std::move(agreed.route));
    agreed.answer.qp = qp_facts(peer_side, peer);
    path.set_route(must(route_of(side, agreed.answer)));
    must(peer.connect(control_.qp));
    must(path.connect(control_.qp));
  }
  const wire::Window our_window = ours.window();
  const wire::Window their_window = theirs.window();
  const std::uint32_t our_number = ++last_comm_;
  const std::uint32_t their_number = ++last_comm_;
  const auto finish = [&](CommEnd&& end, Role role, const wire::Window& window, Process& process,
                          Process& peer, std::uint32_t host, std::uint32_t own,
                          std::uint32_t others) {
    auto made = std::make_unique<Connection>(std::move(end).finish(role, window));
    made->devices = devices_[host];
    made->receiver_rails = options_.rails;
    made->planned_paths = layout.count;
    for (PathResources& path : made->paths) {
      if (options_.is_by_cm) path.queues.cm = idle_cm_id();
    }
    for (std::uint8_t i = 0; i < layout.count; ++i) {
      const PathPlace place = layout.place(i);
      if (is_missing(i)) add_missing_path(*made, place, *devices_[host][place.rail]);
    }
    std::vector<const Device*> used(devices_[host].begin(), devices_[host].end());
    Channel::End& channel_end = channel.end_of(process);
    const auto link = std::make_shared<CommLink>(
        PeerName{.host = peer.host(), .pid = 1, .device = "nic0:1"},
        CommNumbers{.channel = 1, .ours = own, .theirs = others}, used,
        std::shared_ptr<MessageSink>(std::shared_ptr<void>(), &channel_end), process.mailbox(),
        true);
    channel_end.links.add(link);
    made->link = link;
    process.service().remaker().remember(own, *made, control_.qp, peer.host());
    return made;
  };
  const CommOptions comm = {
      .stall_ns = 12'147'483'648,
      .give_up_ns = options_.give_up_ns,
      .device_ns = 120 * kSec,
      .peer_ns = kPeerTimeout,
      .ask_after_ns = 30 * kSec,
      .early_done = options_.has_early_done,
      .standbys = nullptr,
  };
  CommOptions sender_options = comm;
  CommOptions receiver_options = comm;
  sender_options.registration = &sends.means();
  receiver_options.registration = &receives.means();
  if (options_.has_standbys) {
    sender_options.standbys = &sends.standbys();
    receiver_options.standbys = &receives.standbys();
  }
  TrafficOptions traffic = {.seed = options_.seed,
                            .comm = number,
                            .most_bytes = options_.most_bytes,
                            .groups_at_once = options_.groups_at_once,
                            .pace_ns = options_.pace_us * kUs,
                            .is_gpu = options_.is_gpu,
                            .one_railed = options_.one_railed,
                            .has_early_done = options_.has_early_done,
                            .late_ns = start_ns_ + options_.faults_for_ns / 2};
  Pair pair;
  pair.sender = std::make_unique<Sender>(sends, nics_, payload_, traffic,
                                         finish(std::move(ours), Role::kSend, their_window, sends,
                                                receives, from, our_number, their_number),
                                         sender_options);
  pair.receiver = std::make_unique<Receiver>(receives, nics_, payload_, traffic,
                                             finish(std::move(theirs), Role::kReceive, our_window,
                                                    receives, sends, to, their_number, our_number),
                                             receiver_options);
  pair.sender->set_peer(pair.receiver.get());
  // Their comms are not in a statistics page.
  pair.sender->comm().link().set_progress(&pair.sender->progress());
  pair.receiver->comm().link().set_progress(&pair.receiver->progress());
  pairs_.push_back(std::move(pair));
}

// --- The applications ---

void World::rush() {
  for (const Pair& pair : pairs_) {
    pair.sender->rush_until(agenda_.now() + kRushBefore + kRushAfter);
  }
  for (std::uint32_t host = 0; host < options_.hosts; ++host) wake(host);
}

void World::wake(std::uint32_t host) {
  wake_at(host, agenda_.now() + kReaction + (options_.comms > 16 ? 50 * kUs : 0));
}

void World::wake_at(std::uint32_t host, std::int64_t when_ns) {
  std::int64_t& wakes = turns_[host].wakes_ns;
  if (wakes <= when_ns) return;
  wakes = when_ns;
  agenda_.at(when_ns, [this, host, when_ns] {
    if (turns_[host].wakes_ns == when_ns) burst(host, End::Burst::kReaction);
  });
}

// The burst at this time is the only one that stays in the agenda while others come and go.
void World::send_at(std::uint32_t host, std::int64_t when_ns) {
  std::int64_t& sends = turns_[host].sends_ns;
  if (sends <= when_ns) return;
  sends = when_ns;
  agenda_.at(when_ns, [this, host, when_ns] {
    if (turns_[host].sends_ns != when_ns) return;
    turns_[host].sends_ns = kNever;
    burst(host, End::Burst::kReaction);
  });
}

// At its intervals an application tests so often that the plugin looks at the clock.
void World::look(std::uint32_t host) {
  if (processes_[host]->is_dead()) return;
  burst(host, End::Burst::kLook);
  agenda_.in(options_.poll_ms * kMs, [this, host] { look(host); });
}

void World::burst(std::uint32_t host, End::Burst burst) {
  Process& process = *processes_[host];
  const std::int64_t now = agenda_.now();
  turns_[host].wakes_ns = kNever;
  if (checks_service_) check_service(process);
  if (process.is_dead()) return;
  if (process.is_stopped()) return wake_at(host, process.stopped_until_ns());
  std::int64_t next_send = kNever;
  for (const Pair& pair : pairs_) {
    for (End* const end :
         {static_cast<End*>(pair.sender.get()), static_cast<End*>(pair.receiver.get())}) {
      if (&end->process() != &process || now < end->paused_until_ns()) continue;
      const std::uint64_t before = end->progress();
      end->burst(burst);
      if (end == pair.sender.get() && pair.sender->next_send_ns() > now) {
        next_send = std::min(next_send, pair.sender->next_send_ns());
      }
      if (end->progress() != before) note(static_cast<std::uint64_t>(now) + end->progress());
    }
  }
  process.look_for_orders();
  if (next_send != kNever) send_at(host, next_send);
}

// A comm that NCCL does not call is served by the control thread, when its time has come.
void World::check_service(const Process& process) {
  for (const Pair& pair : pairs_) {
    for (End* const end :
         {static_cast<End*>(pair.sender.get()), static_cast<End*>(pair.receiver.get())}) {
      if (&end->process() != &process || end->is_closed() || end->has_ended()) continue;
      if (end->comm().link().has_ended()) continue;  // its next call sees that
      if (end->comm().gate().busy() != 0) end->note_busy();
      const std::int64_t due = end->comm().link().due_ns();
      if (agenda_.now() - std::max(due, end->last_busy_ns()) < kLateService) continue;
      nics_.violate("a comm is not served although its time has come");
    }
  }
}

// --- The run, and what is asked of it ---

void World::run_until(std::int64_t until_ns) {
  while (nics_.violation().empty() && agenda_.step(until_ns)) continue;
  if (nics_.violation().empty()) check_ends();
}

// Whether a comm may rightly end in this run.
bool World::may_end() const noexcept {
  if (options_.give_up_ns != 0 || options_.one_railed != 0) return true;
  const auto is = [](FaultKind kind) {
    return [kind](const Fault& fault) { return fault.kind == kind; };
  };
  const auto& faults = options_.faults;
  if (std::ranges::any_of(faults, is(FaultKind::kKilled))) return true;
  if (options_.is_gpu && std::ranges::any_of(faults, is(FaultKind::kNoReads))) return true;
  // Where no other path works at that moment, or the message fails again.
  const bool has_program_fault = std::ranges::any_of(faults, [](const Fault& fault) {
    return fault.kind == FaultKind::kStatus &&
           std::ranges::find(kStatusesOfPrograms, fault.amount) != kStatusesOfPrograms.end();
  });
  if (has_program_fault && (faults.size() > 1 || options_.rails * options_.queue_pairs == 1))
    return true;
  // A peer that is not heard for so long may be dead.
  if (std::ranges::any_of(faults, [](const Fault& fault) {
        return (fault.kind == FaultKind::kControlCut || fault.kind == FaultKind::kControlMute) &&
               fault.for_ns > kPeerTimeout;
      })) {
    return true;
  }
  // Neither end can fence a path.
  std::uint32_t refusing = 0;
  std::uint32_t lacking = 0;  // a device
  for (const Fault& fault : faults) {
    if (fault.kind == FaultKind::kNoErrorState) refusing |= 1U << fault.host;
    if (fault.kind == FaultKind::kRemoved) lacking |= 1U << fault.host;
  }
  // Where one end's device refuses, the other end need not fence if its own is gone. It has to hear
  // of the refusal first, which it does not over a control channel that is mute if no other path
  // works.
  const bool is_mute = std::ranges::any_of(faults, is(FaultKind::kControlMute));
  const std::uint32_t unable = is_mute ? refusing | lacking : refusing;
  return refusing != 0 && (unable & (unable - 1)) != 0;
}

void World::check_ends() {
  for (const Pair& pair : pairs_) {
    if (!pair.has_ended()) continue;
    if (!may_end()) return nics_.violate("a comm has ended although it could go on");
    const std::int64_t since =
        pair.sender->has_ended() ? pair.sender->ended_ns() : pair.receiver->ended_ns();
    const bool is_late = agenda_.now() - since > kPeerTimeout + 5 * kSec;
    const bool is_one_left = !pair.sender->has_ended() || !pair.receiver->has_ended();
    const bool is_dead = pair.sender->process().is_dead() || pair.receiver->process().is_dead();
    if (is_late && is_one_left && !is_dead) {
      return nics_.violate("one end of a comm has ended, and the other waits");
    }
  }
}

bool World::are_idle() const {
  return std::ranges::all_of(pairs_, [](const Pair& pair) {
    return pair.has_ended() || (pair.sender->is_idle() && pair.receiver->is_idle());
  });
}

bool World::has_recovered(const std::vector<std::uint64_t>& progress) const {
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const Pair& pair = pairs_[i];
    const std::size_t paths = pair.sender->comm().paths().size();
    const bool has_moved = pair.receiver->progress() != progress[i];
    const bool is_whole = pair.sender->paths_up() == paths && pair.receiver->paths_up() == paths;
    if (!pair.has_ended() && !(has_moved && is_whole)) return false;
  }
  return true;
}

void World::finish() {
  end_all();
  std::vector<std::uint64_t> progress;
  for (const Pair& pair : pairs_) progress.push_back(pair.receiver->progress());
  // A path that was missing is tried ever less often.
  const std::int64_t patience = (options_.has_standbys ? kRecoveredFromStandIn : kRecovered) +
                                4 * (options_.pace_us * kUs) +
                                (options_.missing == 0 ? 0 : options_.faults_for_ns);
  const std::int64_t recovered_by = agenda_.now() + patience;
  while (nics_.violation().empty() && agenda_.now() < recovered_by && !has_recovered(progress)) {
    run_until(agenda_.now() + 20 * kMs);
  }
  for (std::size_t i = 0; i < pairs_.size() && nics_.violation().empty(); ++i) {
    const Pair& pair = pairs_[i];
    if (pair.has_ended()) continue;
    const std::string name = "comm " + std::to_string(i);
    if (pair.receiver->progress() == progress[i]) {
      return nics_.violate(name + ": nothing moves although all faults are over");
    }
    const std::size_t paths = pair.sender->comm().paths().size();
    if (pair.sender->paths_up() != paths || pair.receiver->paths_up() != paths) {
      return nics_.violate(name + ": a path is not used again although all faults are over");
    }
  }
  if (nics_.violation().empty()) nics_.set_calm();
  std::uint32_t last = 0;
  for (const Pair& pair : pairs_) {
    last = std::max(pair.receiver->groups_begun(), pair.sender->groups_begun() + 1);
    pair.sender->stop_after(last);
    pair.receiver->stop_after(last);
  }
  const std::int64_t deadline = agenda_.now() + patience;
  while (nics_.violation().empty() && !are_idle() && agenda_.now() < deadline) {
    run_until(agenda_.now() + 5 * kMs);
  }
  if (nics_.violation().empty() && !are_idle()) {
    nics_.violate("a request is not finished although all faults are over");
  }
}

void World::close_all() {
  for (const Pair& pair : pairs_) {
    const bool sender_first = draws_.one_in(2);
    if (sender_first) pair.sender->close();
    pair.receiver->close();
    if (!sender_first) pair.sender->close();
  }
  for (const auto& process : processes_) process->look_for_orders();
  run_until(agenda_.now() + kSec);
  for (const auto& process : processes_) process->look_for_orders();
  const bool is_any_dead =
      std::ranges::any_of(processes_, [](const auto& process) { return process->is_dead(); });
  if (nics_.violation().empty() && !is_any_dead && nics_.objects() != 0) {
    nics_.violate(std::to_string(nics_.objects()) + " objects of devices are left after the close");
  }
}

RunResult World::run() {
  run_until(start_ns_ + options_.faults_for_ns);
  // What lasts longer ends here.
  if (nics_.violation().empty()) finish();
  RunResult result;
  for (const Pair& pair : pairs_) {
    result.messages += pair.sender->groups_done();
    result.ended += pair.has_ended() ? 1 : 0;
    const std::int64_t end_ns = std::max(pair.sender->ended_ns(), pair.receiver->ended_ns());
    if (pair.has_ended()) result.last_end_ns = std::max(result.last_end_ns, end_ns - start_ns_);
    result.longest_gap_ns = std::max(result.longest_gap_ns, pair.receiver->longest_gap_ns());
    result.longest_late_gap_ns =
        std::max(result.longest_late_gap_ns, pair.receiver->longest_late_gap_ns());
  }
  if (nics_.violation().empty()) close_all();
  result.violation = nics_.violation();
  result.packets = network_.packets();
  result.steps = agenda_.calls();
  result.simulated_ns = agenda_.now() - start_ns_;
  result.hash = mix(hash_ ^ result.messages ^ result.packets << 20 ^ result.steps << 40);
  return result;
}

}  // namespace beeline::simulation
