// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/control/control_loop.h"

#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/socket/interface.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

// After this time of beginning connects, received messages get their turn.
constexpr std::int64_t kWorkOfTurnNs = 2 * kNsPerMs;

}  // namespace

Result<std::unique_ptr<ControlLoop>> ControlLoop::create(ControlSetup setup) {
  const int wakeup_fd = setup.mailbox->wakeup_fd();
  auto loop = std::make_unique<ControlLoop>(std::move(setup), BL_TRY(Poller::create()));
  // No handler is needed: run() looks for orders after every wait.
  loop->wakeup_key_ = BL_TRY(loop->poller_->add(wakeup_fd, EPOLLIN, [](std::uint32_t) {}));
  return loop;
}

ControlLoop::ControlLoop(ControlSetup setup, std::unique_ptr<Poller> poller)
    : setup_(std::move(setup)),
      poller_(std::move(poller)),
      ports_(*setup_.devices, *poller_, *this),
      cm_(setup_.options->cm_library, *poller_, setup_.options->ports),
      service_({.options = setup_.options, .ports = &ports_, .timers = poller_.get(), .cm = &cm_}),
      channels_(*poller_, setup_.self,
                {.first_message = setup_.options->half_open_timeout,
                 .peer = setup_.options->peer_timeout,
                 .outage = setup_.options->outage_timeout},
                setup_.options->limits, *this),
      inbound_(*poller_, setup_.self, setup_.options->half_open_timeout, channels_, *this),
      dialer_(*poller_, setup_.self, setup_.options->half_open_timeout, *this),
      connector_(context(), dialer_),
      acceptor_(context()),
      wait_log_(setup_.options->wait_warning.count()),
      listener_slots_(setup_.options->slots) {}

ControlLoop::~ControlLoop() { poller_->remove(setup_.mailbox->wakeup_fd(), wakeup_key_); }

ControlContext ControlLoop::context() {
  return {.options = setup_.options,
          .self = &setup_.self,
          .mailbox = setup_.mailbox,
          .poller = poller_.get(),
          .ports = &ports_,
          .channels = &channels_,
          .cm = &cm_,
          .remaker = &service_.remaker()};
}

void ControlLoop::run() {
  schedule_expiry();
  schedule_wait_log();
  while (handle_orders() && !finish_if_idle()) {
    setup_.mailbox->note_cpu();
    const bool has_more = !to_begin_.empty() || service_.has_orders() || channels_.has_backlog();
    poller_->run_once(has_more ? Poller::Idle::kMustNot : Poller::Idle::kMayWait);
    channels_.run_backlog();
    begin_connects();
    service_.carry_out_orders();
    schedule_path_log();
  }
  setup_.mailbox->path_log().flush(now_ns());
}

void ControlLoop::begin_connects() {
  const std::int64_t end_of_turn = now_ns() + kWorkOfTurnNs;
  while (!to_begin_.empty()) {
    const std::uint32_t comm = to_begin_.front();
    to_begin_.pop_front();
    if (!connector_.resume(comm)) {
      std::optional<AttemptOrder> order = setup_.mailbox->find_order(comm);
      if (!order) continue;
      connector_.start(std::move(*order));
    }
    if (now_ns() > end_of_turn) return;
  }
}

void ControlLoop::schedule_expiry() {
  const auto given = setup_.options->forgotten_timeout;
  const auto usual = std::max<std::chrono::milliseconds>(2 * setup_.options->connect_timeout,
                                                         std::chrono::minutes(1));
  const auto round = (given.count() > 0 ? given : usual) / ControlMailbox::kIdleRounds;
  poller_->at(now_ns() + round.count() * kNsPerMs, [this] {
    setup_.mailbox->expire();
    schedule_expiry();
  });
}

void ControlLoop::schedule_wait_log() {
  poller_->at(now_ns() + wait_log_.period_ns(), [this] {
    const auto links = channels_.links();
    if (setup_.options->slots != nullptr) setup_.options->slots->set_alive(now_ns());
    service_.look_for_messages(links);
    wait_log_.look({links.begin(), links.end()}, now_ns());
    connector_.look_at_calls(now_ns());
    listener_slots_.look(*setup_.mailbox, now_ns());
    schedule_wait_log();
  });
}

void ControlLoop::schedule_path_log() {
  const std::int64_t due_ns = setup_.mailbox->path_log().due_ns();
  if (due_ns >= path_log_due_ns_) return;
  path_log_due_ns_ = due_ns;
  poller_->at(due_ns, [this, due_ns] {
    if (path_log_due_ns_ == due_ns) path_log_due_ns_ = PathLog::kNever;
    setup_.mailbox->path_log().look(now_ns());
  });
}

void ControlLoop::give_up() noexcept {
  channels_.abort_all();
  setup_.mailbox->fail_all(fail(Errc::kInternal, "run the control thread").error);
}

bool ControlLoop::handle_orders() {
  setup_.mailbox->take_orders(orders_);
  if (orders_.listening) {
    const Status opened = inbound_.listen_on(std::move(orders_.listening));
    if (!opened) {
      BL_WARN("no peer can connect to this process: %s", describe(opened.error()).c_str());
    }
  }
  for (const GoneLink& gone : orders_.gone) {
    channels_.on_link_gone(gone);
    service_.remaker().forget(gone.numbers.ours);
  }
  for (LinkOrder& order : orders_.paths) service_.take(std::move(order));
  to_begin_.insert(to_begin_.end(), orders_.begun.begin(), orders_.begun.end());
  for (const std::uint32_t comm : orders_.abandoned) connector_.abandon(comm);
  if (!orders_.closed.empty()) acceptor_.on_closed(orders_.closed);
  listener_slots_.on_closed(orders_.closed);
  const bool stop = orders_.stop;
  orders_.clear();
  return !stop;
}

bool ControlLoop::has_work() {
  return !to_begin_.empty() || !connector_.is_empty() || !acceptor_.is_empty() ||
         channels_.link_count() > 0 || setup_.mailbox->has_listeners();
}

bool ControlLoop::finish_if_idle() {
  if (has_work()) return false;
  channels_.close_all();
  return channels_.is_empty() && setup_.mailbox->leave();
}

// The comms that have no other device than one that is gone end at once, without a wait for their
// completions: whether and when those come depends on the driver.
void ControlLoop::on_device_event(const DeviceContext& context, const verbs::AsyncEvent& event) {
  tell_about_ports(context, event);
  if (event.kind == verbs::EventKind::kDeviceFatal) channels_.lose_device(context);
  if (CommService::is_about_paths(event.kind)) service_.serve_all(channels_.links_on(context));
  if (CommService::is_queue_error(event)) {
    service_.on_queue_error(channels_.links_on(context), context, event);
  }
  if (setup_.port_events != nullptr) setup_.port_events->on_device_event(context, event);
}

// Connections that have used the port tell the same log what they do without it.
void ControlLoop::tell_about_ports(const DeviceContext& context, const verbs::AsyncEvent& event) {
  const auto tell = [&](PortNews::Kind kind, const std::string& port, const char* what) {
    setup_.mailbox->path_log().add({kind, place_of_port(port), what}, now_ns());
  };
  const std::string port = context.ibdev() + ":" + std::to_string(event.port);
  if (event.kind == verbs::EventKind::kPortError) {
    tell(PortNews::Kind::kDown, port, kPortReportsError);
  } else if (event.kind == verbs::EventKind::kPortActive) {
    tell(PortNews::Kind::kUp, port, " is ACTIVE again");
  } else if (event.kind == verbs::EventKind::kDeviceFatal) {
    setup_.devices->each_port_of(context, [&](const Device& device) {
      tell(PortNews::Kind::kDown, port_name(device), kDeviceIsGone);
    });
  }
}

void ControlLoop::on_device_back(const DeviceContext& context) {
  setup_.devices->each_port_of(context, [&](const Device& device) {
    setup_.mailbox->path_log().add(
        {PortNews::Kind::kUp, place_of_port(port_name(device)), " was opened again"}, now_ns());
  });
  service_.serve_all(channels_.links_on(context));
  if (setup_.port_events != nullptr) setup_.port_events->on_device_back(context);
}

// --- Messages ---

// Takes a message by which the peer repairs a path of an open comm.
Status ControlLoop::on_path_message(Channel& channel, PathMessage message) {
  const auto link =
      channel.links().find(std::visit([](const auto& any) { return any.comm; }, message));
  if (link == nullptr) return {};
  if (!link->on_message(std::move(message))) {
    return fail(Errc::kProtocol, "take a message about a path of a comm that repairs none");
  }
  service_.serve(link);
  return {};
}

Status ControlLoop::on_message(Channel& channel, const wire::Frame& frame) {
  if (frame.type != wire::MessageType::kGoodbye) channel.note_progress(poller_->waited_ns());
  if (auto about_path = path_message_in(frame))
    return on_path_message(channel, BL_TRY(*std::move(about_path)));
  switch (frame.type) {
    case wire::MessageType::kConnect:
      acceptor_.on_connect(channel, BL_TRY(wire::decode<wire::Connect>(frame.body)));
      return {};
    case wire::MessageType::kAccept:
      return connector_.on_accept(channel, BL_TRY(wire::decode<wire::Accept>(frame.body)));
    case wire::MessageType::kReady:
      acceptor_.on_ready(channel, BL_TRY(wire::decode<wire::Ready>(frame.body)));
      return {};
    case wire::MessageType::kReject:
      on_reject(channel, BL_TRY(wire::decode<wire::Reject>(frame.body)));
      return {};
    case wire::MessageType::kGoodbye:
      channel.links().on_goodbye(BL_TRY(wire::decode<wire::Goodbye>(frame.body)));
      return {};
    case wire::MessageType::kStillOpen: {
      if (channel.resume() == nullptr) break;
      const auto question = BL_TRY(wire::decode<wire::StillOpen>(frame.body));
      if (!acceptor_.is_making(channel, question.comm)) channel.on_still_open(question);
      return {};
    }
    case wire::MessageType::kFenced:
    case wire::MessageType::kOfferPath:
    case wire::MessageType::kAnswerPath:
    case wire::MessageType::kPathNote:  // above
    case wire::MessageType::kHello:
    case wire::MessageType::kHelloAck:
    case wire::MessageType::kResume:
    case wire::MessageType::kResumeAck:
    case wire::MessageType::kRefuse: break;
  }
  return fail(Errc::kProtocol, "take an introduction on a channel that has had one");
}

void ControlLoop::on_reject(Channel& channel, const wire::Reject& reject) {
  if (connector_.on_reject(channel, reject) || acceptor_.on_reject(channel, reject)) return;
  const auto link = channel.links().find(reject.comm);
  if (link != nullptr) link->die("it says: " + reject.text);
  if (reject.code == wire::RejectCode::kAbandoned) return channel.links().on_given_up(reject.comm);
  channel.links().answer_for(reject.comm, channel.outbox());
}

// --- Channels ---

std::optional<DialTarget> ControlLoop::find_dial_target(const wire::ProcessId& process) {
  return connector_.dial_target(process);
}

void ControlLoop::on_unknown_listener(std::uint32_t comm, const std::string& text) {
  connector_.on_unknown_listener(comm, text);
}

void ControlLoop::on_unreachable(const wire::ProcessId& process, const Error& error,
                                 const std::string& text) {
  connector_.on_dial_failed(process, error, text);
}

void ControlLoop::on_channel_lost(Channel& channel, const std::string& cause) {
  connector_.on_channel_lost(channel, cause);
}

void ControlLoop::on_channel_back(Channel& channel) { begin_waiting(channel.peer().id); }

void ControlLoop::on_channel_end(Channel& channel, const std::string& cause) {
  connector_.on_channel_end(channel, cause);
  acceptor_.on_channel_end(channel, cause);
  // Some may have waited for this channel to come back. Now they need another one.
  if (channel.resume() != nullptr) begin_waiting(channel.peer().id);
}

void ControlLoop::begin_waiting(const wire::ProcessId& process) {
  const std::vector<std::uint32_t> waiting = connector_.waiting_for(process);
  to_begin_.insert(to_begin_.end(), waiting.begin(), waiting.end());
}

bool ControlLoop::has_handshake_on(const Channel& channel) const {
  return connector_.is_using(channel) || acceptor_.is_using(channel);
}

bool ControlLoop::are_ports_down(const Channel& channel) {
  return service_.are_ports_down(channel.links().all());
}

void ControlLoop::on_introduced(Introduced introduced) {
  const wire::ProcessId process = introduced.peer.id;
  const bool is_own = process == setup_.self.id;
  if (is_own) introduced.resume.reset();  // the two ends of this channel end together
  if (!is_own) dialer_.cancel(process);
  const Channel* const channel = channels_.add(std::move(introduced));
  if (channel == nullptr) return;
  begin_waiting(process);
  channels_.read(channel->id());
}

std::optional<wire::ResumeOffer> ControlLoop::make_resume_offer() {
  if (!setup_.options->resume_channels) return std::nullopt;
  Outcome<std::vector<wire::SocketAddress>> addresses = listening_addresses();
  if (!addresses) {
    BL_WARN_LIMITED(3, "control channels of this process cannot be resumed when they are lost: %s",
                    addresses.error().text.c_str());
    return std::nullopt;
  }
  const Result<wire::Token> token = make_token();
  if (!token) return std::nullopt;
  return wire::ResumeOffer{.token = *token, .addresses = *std::move(addresses)};
}

Outcome<std::vector<wire::SocketAddress>> ControlLoop::listening_addresses() {
  std::vector<wire::SocketAddress> addresses = inbound_.addresses();
  if (addresses.empty()) {
    const auto interfaces = list_interfaces();
    if (!interfaces) return fail(Problem(interfaces.error()));
    const Interface chosen =
        BL_TRY(choose_interface(*interfaces, setup_.options->interface, setup_.options->family));
    Result<UniqueFd> listening = open_listening_socket(chosen.address, setup_.options->ports);
    if (!listening) return fail(Problem(listening.error()));
    if (const Status added = inbound_.listen_on(std::move(*listening)); !added) {
      return fail(Problem(added.error()));
    }
    addresses = inbound_.addresses();
  }
  if (addresses.size() > wire::kMaxResumeAddresses) addresses.resize(wire::kMaxResumeAddresses);
  return addresses;
}

std::optional<wire::Refuse> ControlLoop::check_hello(const wire::Hello& hello) {
  if (std::optional<wire::Refuse> refusal = check_identity(hello)) return refusal;
  std::optional<std::string> limit = channels_.make_room(hello.process);
  if (!limit) return std::nullopt;
  BL_WARN_LIMITED(5, "a control connection from %s (pid %u) is refused: %s", hello.host.c_str(),
                  hello.pid, limit->c_str());
  // With this code the peer tries again.
  return wire::Refuse{.code = wire::RefuseCode::kDuplicate, .text = *std::move(limit)};
}

// Two processes may dial each other at the same time, but need only one channel. The dial of the
// process with the smaller id has precedence once that process has sent its HELLO. Before that, it
// accepts the other's HELLO and cancels its own dial.
std::optional<wire::Refuse> ControlLoop::check_identity(const wire::Hello& hello) {
  if (!setup_.mailbox->find_listener(hello.listener, hello.token)) {
    return wire::Refuse{.code = wire::RefuseCode::kUnknownListener,
                        .text = "no such listener on " + host_name() + ": it is closed"};
  }
  if (hello.process == setup_.self.id && !dialer_.has_introduced(hello.process)) {
    return wire::Refuse{.code = wire::RefuseCode::kUnknownListener,
                        .text = "it takes the name of the process that it dials"};
  }
  if (hello.process <= setup_.self.id) return std::nullopt;
  const Channel* const open = channels_.find_process(hello.process);
  const bool ours_stands = open != nullptr && open->direction() == Direction::kDialed;
  if (!ours_stands && !dialer_.has_introduced(hello.process)) return std::nullopt;
  return wire::Refuse{.code = wire::RefuseCode::kDuplicate,
                      .text = "both processes have dialed at once, and need one channel only"};
}

}  // namespace beeline
