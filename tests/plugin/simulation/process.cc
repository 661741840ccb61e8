// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/simulation/process.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "common/base/host.h"
#include "plugin/wire/message.h"
#include "plugin/wire/message_remake.h"

namespace beeline::simulation {
namespace {

constexpr std::int64_t kHandOver = 20 * kUs;  // from one thread to the other

}  // namespace

// --- The control channel ---

Channel::Channel(Agenda& agenda, Process& one, Process& other, const PeerSilence::Limits& limits)
    : agenda_(agenda), limits_(limits) {
  ends_[0].process = &one;
  ends_[1].process = &other;
  ends_[0].peer = &ends_[1];
  ends_[1].peer = &ends_[0];
  for (End& end : ends_) {
    end.channel = this;
    end.process->add_channel(*this);
  }
}

void Channel::End::send(const wire::Bytes& frame) noexcept { channel->carry(*this, frame); }

void Channel::carry(End& from, const wire::Bytes& frame) {
  if (!is_connected_ || from.process->is_dead()) return;
  if (from.is_mute) {
    from.waiting.push_back(frame);
    return;
  }
  const std::int64_t arrival = std::max(
      agenda_.now() + 40 * kUs + from.process->draws_.between(0, 60 * kUs), from.last_arrival_ns);
  from.last_arrival_ns = arrival;
  from.peer->process->control(arrival, [this, &from, frame, cuts = cuts_] {
    if (cuts == cuts_) from.peer->process->receive(*from.peer, frame);
  });
}

void Channel::cut() {
  if (!is_connected_) return;
  is_connected_ = false;
  ++cuts_;
  for (End& end : ends_) {
    end.waiting.clear();
    end.was_lost = true;
    end.silence.begin(agenda_.now(), 0, end.links.progress());
    look_at_silence(end, cuts_);
  }
}

// As Channels::facts_about(). Each process has a host of its own.
PeerSilence::Facts Channel::facts_about(End& end) {
  PeerSilence::Facts facts = {.are_own_ports_down =
                                  end.process->service().are_ports_down(end.links.all())};
  for (Channel* const channel : end.process->channels_) {
    if (channel == this) continue;
    facts.has_other_hosts = true;
    facts.hears_others |=
        channel->is_connected() || channel->end_of(*end.process).silence.is_short(limits_);
  }
  return facts;
}

// As Channels::on_no_answer().
void Channel::look_at_silence(End& end, std::uint64_t cut) {
  end.process->control(agenda_.now() + kSec, [this, &end, cut] {
    if (is_connected_ || cut != cuts_) return;
    using Verdict = PeerSilence::Verdict;
    const Verdict verdict =
        end.silence.look(agenda_.now(), end.links.progress(), limits_, facts_about(end));
    if (verdict == Verdict::kDead || verdict == Verdict::kOutageTooLong)
      return end.links.kill("no answer on the control channel, and no data has moved"), void();
    for (const auto& link : end.links.all()) link->ask_peer();
    look_at_silence(end, cut);
  });
}

void Channel::restore() {
  if (is_connected_ || ends_[0].process->is_dead() || ends_[1].process->is_dead()) return;
  is_connected_ = true;
  for (End& end : ends_) {
    end.process->control(agenda_.now() + kMs, [&end] { end.links.say_again(end); });
  }
}

void Channel::set_mute(const Process& process, bool is_mute) {
  End& end = end_of(process);
  end.is_mute = is_mute;
  if (is_mute) return;
  for (const wire::Bytes& frame : std::exchange(end.waiting, {})) carry(end, frame);
}

void Channel::on_death(const Process& process) {
  End& peer = *end_of(process).peer;
  is_connected_ = false;
  ++cuts_;
  peer.process->control(agenda_.now() + kMs,
                        [&peer] { peer.links.kill("its process ended without goodbye"); });
}

// --- The process ---

Process::Process(Agenda& agenda, Nics& nics, const ProcessOptions& options)
    : agenda_(agenda),
      all_nics_(nics),
      host_(options.host),
      draws_(options.seed, 0x2000 + static_cast<std::uint64_t>(options.host.back())),
      nics_of_(options.nics) {
  devices_.reserve(nics_of_.size());
  for (std::size_t i = 0; i < nics_of_.size(); ++i) {
    contexts_.push_back(
        std::make_unique<DeviceContext>(verbs::Context(Nics::api(), nics_of_[i]->open()),
                                        nics_of_[i]->name(), static_cast<int>(i)));
    devices_.push_back(describe(*nics_of_[i], static_cast<int>(i), *contexts_.back()));
    devices_.back().caps.immediate = !nics_of_[i]->hazards().lacks_immediates;
  }
  standbys_.emplace(devices_);
  means_ = {.caches = this, .left_out = &left_out_, .has_recovery = true};
  auto mailbox = ControlMailbox::create();
  if (!mailbox) throw std::runtime_error("no mailbox");
  mailbox_ = *std::move(mailbox);
  mailbox_->start_serving();
  service_ = std::make_unique<CommService>(
      RemakeContext{.options = options.control, .ports = this, .timers = this});
  look_for_messages();
}

Process::~Process() {
  waiting_.clear();
  mailbox_->take_orders(orders_);
  orders_.clear();
  service_.reset();
  mailbox_->clear();
}

Device Process::describe(const Nic& nic, int index, DeviceContext& context) {
  Device device;
  device.index = index;
  device.name = "beeline_" + nic.name();
  device.ibdev = nic.name();
  device.guid = static_cast<std::uint64_t>(index) + 1;
  device.netdev = "eth" + std::to_string(index);
  device.pci_path = "/sys/devices/pci0000:00/0000:00:0" + std::to_string(index) + ".0";
  device.card_path = device.pci_path;
  device.caps.max_msg_bytes = 1U << 30;
  device.caps.max_rd_atomic = 16;
  device.facts = {.state = nic.is_active() ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
                  .active_mtu = IBV_MTU_4096,
                  .speed_mbps = 100'000,
                  .pkeys = {0xffff},
                  .gids = {{.index = 0, .type = GidType::kRoceV2, .gid = nic.gid()}}};
  device.context = &context;
  return device;
}

void Process::at(std::int64_t when_ns, std::function<void()> call) {
  control(when_ns, std::move(call));
}

void Process::control(std::int64_t when_ns, std::function<void()> call) {
  agenda_.at(when_ns, [this, call = std::move(call)] {
    if (is_dead_) return;
    if (is_stopped()) return postponed_.push_back(call);
    call();
    look_for_orders();
  });
}

void Process::stop_until(std::int64_t when_ns) {
  stopped_until_ns_ = when_ns;
  agenda_.at(std::max(when_ns, agenda_.now()), [this] {
    if (is_stopped()) return;
    for (const auto& call : std::exchange(postponed_, {})) control(agenda_.now(), call);
  });
}

Result<const PortFacts*> Process::facts(const Device& device) {
  const Nic& nic = *nics_of_[static_cast<std::size_t>(device.index)];
  if (device.context->is_gone() || nic.is_removed()) {
    return fail(Errc::kSystem, "use a device that was removed from this host");
  }
  facts_ = describe(nic, device.index, *device.context).facts;
  return &facts_;
}

Result<MrCache*> Process::cache(const Device& device) {
  std::unique_ptr<MrCache>& place = caches_[device.context];
  if (place == nullptr) {
    place = std::make_unique<MrCache>(device.api(), BL_TRY(device.context->pd()), false);
  }
  return place.get();
}

namespace {

template <class Message>
Message read(const wire::Frame& frame, Nics& nics) {
  auto message = wire::decode<Message>(frame.body);
  if (!message) nics.violate("a message cannot be decoded");
  return message ? *std::move(message) : Message{};
}

}  // namespace

// As ControlLoop::on_message().
void Process::receive(Channel::End& end, const wire::Bytes& bytes) {
  wire::FrameSplitter splitter;
  splitter.append(bytes);
  auto next = splitter.next();
  if (!next || !*next) return all_nics_.violate("a frame cannot be read");
  const wire::Frame& frame = **next;
  if (auto message = path_message_in(frame)) {
    if (!*message) return all_nics_.violate("a message cannot be decoded");
    const auto link =
        end.links.find(std::visit([](const auto& any) { return any.comm; }, **message));
    if (link == nullptr) return;
    if (!link->on_message(**std::move(message)))
      all_nics_.violate("a message about a path is refused");
    return service_->serve(link);
  }
  switch (frame.type) {
    case wire::MessageType::kReject: {
      const auto reject = read<wire::Reject>(frame, all_nics_);
      if (const auto link = end.links.find(reject.comm)) link->die("it says: " + reject.text);
      if (reject.code == wire::RejectCode::kAbandoned) return end.links.on_given_up(reject.comm);
      end.links.answer_for(reject.comm, end);
      return;
    }
    case wire::MessageType::kGoodbye:
      return end.links.on_goodbye(read<wire::Goodbye>(frame, all_nics_));
    case wire::MessageType::kStillOpen: {
      const auto question = read<wire::StillOpen>(frame, all_nics_);
      if (end.links.answer_for(question.comm, end)) return;
      return end.send(wire::encode(wire::Reject{.comm = question.our_comm,
                                                .code = wire::RejectCode::kAbandoned,
                                                .text = "no such connection"}));
    }
    case wire::MessageType::kFenced:
    case wire::MessageType::kOfferPath:
    case wire::MessageType::kAnswerPath:
    case wire::MessageType::kPathNote:  // above
    case wire::MessageType::kHello:
    case wire::MessageType::kHelloAck:
    case wire::MessageType::kRefuse:
    case wire::MessageType::kConnect:
    case wire::MessageType::kAccept:
    case wire::MessageType::kReady:
    case wire::MessageType::kResume:
    case wire::MessageType::kResumeAck:
      all_nics_.violate("a message that is not sent on an open channel");
  }
}

void Process::look_for_orders() {
  mailbox_->path_log().look(agenda_.now());
  mailbox_->take_orders(orders_);
  if (orders_.is_empty()) return;
  for (const GoneLink& gone : orders_.gone) {
    for (Channel* const channel : channels_) {
      Channel::End& end = channel->end_of(*this);
      if (end.links.find(gone.numbers.ours) != nullptr) continue;
      const bool is_kept = end.links.close(gone, true);
      if (is_kept && end.was_lost) end.links.say_closed(gone.numbers.ours, end);
    }
    service_->remaker().forget(gone.numbers.ours);
  }
  for (LinkOrder& order : orders_.paths) waiting_.push_back(std::move(order));
  orders_.clear();
  if (waiting_.empty() || is_working_) return;
  is_working_ = true;
  control(agenda_.now() + kHandOver, [this] { next_order(); });
}

void Process::next_order() {
  is_working_ = false;
  if (waiting_.empty()) return;
  LinkOrder order = std::move(waiting_.front());
  waiting_.pop_front();
  const bool makes_queues = order.order.has_value();
  service_->take(std::move(order));
  service_->carry_out_orders();
  if (waiting_.empty()) return;
  is_working_ = true;
  control(agenda_.now() + (makes_queues ? order_time_ns_ : kUs), [this] { next_order(); });
}

void Process::set_wake(std::function<void()> wake) {
  wake_ = std::move(wake);
  for (Nic* const nic : nics_of_) nic->set_on_completion(wake_);
}

bool Process::has_completions() const noexcept {
  return std::ranges::any_of(nics_of_, [](const Nic* nic) { return nic->completions() != 0; });
}

// --- Events of the host ---

std::vector<std::shared_ptr<CommLink>> Process::links_on(const DeviceContext& context) {
  std::vector<std::shared_ptr<CommLink>> found;
  for (Channel* const channel : channels_) {
    for (auto& link : channel->end_of(*this).links.all()) {
      if (link->is_on(context)) found.push_back(std::move(link));
    }
  }
  return found;
}

// As ControlLoop::schedule_wait_log().
void Process::look_for_messages() {
  control(agenda_.now() + kSec, [this] {
    for (Channel* const channel : channels_)
      service_->look_for_messages(channel->end_of(*this).links.all());
    look_for_messages();
  });
}

void Process::on_event(const Device& device, verbs::EventKind kind) {
  device.history->record(kind, agenda_.now());
  if (kind == verbs::EventKind::kDeviceFatal) {
    device.context->set_gone();
    for (Channel* const channel : channels_) {
      channel->end_of(*this).links.lose_device(*device.context);
    }
  }
  if (CommService::is_about_paths(kind)) service_->serve_all(links_on(*device.context));
}

void Process::tell(std::size_t index, verbs::EventKind kind, std::int64_t delay_ns) {
  const Device& device = devices_[index].newest();
  control(agenda_.now() + delay_ns, [this, &device, kind] {
    if (!device.context->is_gone()) on_event(device, kind);
  });
}

void Process::remove(std::size_t index, std::int64_t event_delay_ns) {
  if (nics_of_[index]->is_removed()) return;
  nics_of_[index]->remove();
  tell(index, verbs::EventKind::kDeviceFatal, event_delay_ns);
}

// As DeviceTable::reopen() and PortWatch::find_again().
void Process::bring_back(std::size_t index) {
  if (!nics_of_[index]->is_removed()) return;
  const Device& former = devices_[index].newest();
  if (!former.context->is_gone()) {  // its event has not come yet
    control(agenda_.now() + 10 * kMs, [this, index] { bring_back(index); });
    return;
  }
  Nic& back = all_nics_.add(nics_of_[index]->name(), 100'000);
  nics_of_[index] = &back;
  back.set_on_completion(wake_);
  contexts_.push_back(std::make_unique<DeviceContext>(
      verbs::Context(Nics::api(), back.open()), back.name(), static_cast<int>(contexts_.size())));
  Device& device = returned_.emplace_back(former);
  device.facts = describe(back, former.index, *contexts_.back()).facts;
  device.context = contexts_.back().get();
  device.history = std::make_shared<PortHistory>();
  device.successor = std::make_shared<Device::Successor>(nullptr);
  former.successor->store(&device, std::memory_order_release);
  device.history->record(verbs::EventKind::kPortActive, agenda_.now());
  service_->serve_all(links_on(*device.context));
}

void Process::kill() {
  is_dead_ = true;
  for (Nic* const nic : nics_of_) nic->drop_queues();
  for (Channel* const channel : channels_) channel->on_death(*this);
}

}  // namespace beeline::simulation
