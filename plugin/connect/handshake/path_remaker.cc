// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/handshake/path_remaker.h"

#include <algorithm>
#include <variant>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/check/assert.h"
#include "plugin/connect/handshake/cm_agreement.h"
#include "plugin/connect/handshake/pending_comm.h"
#include "plugin/connect/path/wire_conversion.h"
#include "plugin/device/memlock.h"
#include "plugin/verbs/text.h"

namespace beeline {
namespace {

// For the resolution of an address, and then for a probe.
constexpr std::int64_t kMostNs = kNsPerSec;
// For the connection manager, which resolves an address and a route before.
constexpr std::int64_t kMostByCmNs = 5 * kNsPerSec;
// How often the completion of a probe is looked for.
constexpr std::int64_t kPollNs = kNsPerMs / 2;

Problem problem_of(const Error& error) {
  return {error.code, describe(error) + memlock_advice(error)};
}

}  // namespace

void PathRemaker::remember(std::uint32_t comm, const Connection& connection, const QpOptions& qp,
                           const std::string& peer_host) {
  const bool sends = connection.role == Role::kSend;
  const CommPlans& plans = sends ? context_.options->sender : context_.options->receiver;
  Recipe& recipe = recipes_[comm];
  const ControlBlock& memory = connection.memory;
  const CommPlan& plan = plans.of(connection.planned_paths);
  recipe = {.plan = &plan,
            .qp = qp,
            .peer_host = peer_host,
            .memory = memory.data(),
            .memory_bytes = memory.size(),
            .access = control_access(plan)};
  for (const PathResources& path : connection.paths) {
    Origin& origin = recipe.paths.emplace_back();
    origin.place = {.number = static_cast<std::uint8_t>(recipe.paths.size() - 1),
                    .rail = path.rail,
                    .peer_rail = path.peer_rail};
    origin.device = path.device;
    if (!path.is_missing()) origin.note_queues(path);
    origin.has_memory = memory.has_rail(path.rail);
    if (!origin.has_memory) continue;
    origin.scratch = {.addr = memory.address(), .length = 1, .lkey = memory.lkey(path.rail)};
    if (plan.window_bytes != 0) origin.window_key = memory.rkey(path.rail);
  }
}

void PathRemaker::Origin::note_queues(const PathResources& resources) noexcept {
  made[1] = made[0];
  made[0] = {.context = resources.device->context,
             .qpn = resources.queues.qp->qp_num,
             .cq = resources.queues.cq.get()};
}

std::optional<QueueFailed> PathRemaker::queue_failed(std::uint32_t comm,
                                                     const DeviceContext& context,
                                                     const verbs::AsyncEvent& event) const {
  const auto found = recipes_.find(comm);
  if (found == recipes_.end()) return std::nullopt;
  for (const Origin& path : found->second.paths) {
    for (const Origin::Made& made : path.made) {
      const bool is_its = event.cq != nullptr ? made.cq == event.cq : made.qpn == event.qp_num;
      if (made.context != &context || !is_its) continue;
      return QueueFailed{.path = path.place.number, .qpn = made.qpn, .event = event.text};
    }
  }
  return std::nullopt;
}

void PathRemaker::forget(std::uint32_t comm) {
  recipes_.erase(comm);
  std::erase_if(works_, [comm](const auto& entry) { return entry.first.first == comm; });
}

void PathRemaker::take(const std::shared_ptr<CommLink>& link, PathOrder order) {
  const Key key{link->numbers().ours, order.path};
  const auto found = recipes_.find(key.first);
  const PathNotMade which = {
      .path = order.path, .generation = order.generation, .prepares = order.prepares, .why = {}};
  if (found == recipes_.end() || order.path >= found->second.paths.size())
    return refuse(link, which, nullptr, "it cannot be made anew");
  const Recipe& recipe = found->second;
  if (const auto* const wanted = std::get_if<MakePath>(&order.what)) {
    works_.erase(key);
    Outcome<PathMade> made = make(link, recipe, order, *wanted);
    if (!made) {
      works_.erase(key);
      const Device* const first = wanted->devices.empty() ? nullptr : wanted->devices.front();
      return refuse(link, which, first, made.error());
    }
    if (wanted->offer && works_.at(key).cm == nullptr) return advance(key);
    return deliver(link, *std::move(made));
  }
  const auto work = works_.find(key);
  const bool is_its = work != works_.end() && work->second.generation == order.generation &&
                      work->second.prepares == order.prepares;
  if (!is_its) return;
  if (std::holds_alternative<DropPath>(order.what)) {
    works_.erase(work);
    return;
  }
  const auto& wanted = std::get<ConnectPath>(order.what);
  work->second.window_key = wanted.window_key;
  const Outcome<void> begun = connect(key, work->second, recipe, wanted.answer);
  const auto still_there = works_.find(key);
  if (still_there == works_.end()) return;  // the connection manager has refused at once
  if (begun && still_there->second.cm != nullptr) return;
  if (begun) return advance(key);
  const Device& device = work->second.path.device();
  works_.erase(work);
  refuse(link, which, &device, begun.error());
}

Outcome<void> PathRemaker::prepare(CommLink& link, const Recipe& recipe, std::uint8_t path,
                                   const Device& device) {
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return fail(problem_of(facts.error()));
  if (!(*facts)->is_active()) {
    return fail(Problem(Errc::kSystem,
                        std::string("its port is ") + verbs::port_state_text((*facts)->state)));
  }
  // A device that stands in does so for all paths of the comm, so it must take every buffer, as
  // must that of the only rail.
  const bool stands_in = device.index != recipe.paths[path].device->index;
  const std::uint8_t rail = recipe.paths[path].place.rail;
  const bool is_only = std::ranges::all_of(
      recipe.paths, [rail](const Origin& other) { return other.place.rail == rail; });
  const std::shared_ptr<RailBuffers> buffers = link.rail_buffers();
  if (buffers == nullptr) return fail("the connection is being closed");
  return buffers->prepare(rail, device, stands_in || is_only);
}

Outcome<const Device*> PathRemaker::choose_device(CommLink& link, const Recipe& recipe,
                                                  std::uint8_t path,
                                                  const std::vector<const Device*>& devices) {
  Problem first("none of its devices can be used now");
  for (const Device* const device : devices) {
    const Outcome<void> prepared = prepare(link, recipe, path, *device);
    if (prepared) {
      link.add_device(*device);
      return device;
    }
    if (device == devices.front()) first = prepared.error();
  }
  return fail(std::move(first));
}

// The result is for the sending end. That of the receiving end follows when it is connected.
Outcome<PathMade> PathRemaker::make(const std::shared_ptr<CommLink>& link, const Recipe& recipe,
                                    const PathOrder& order, const MakePath& wanted) {
  const Device& device = *BL_TRY(choose_device(*link, recipe, order.path, wanted.devices));
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return fail(problem_of(facts.error()));
  const PortSide ours{device, **facts, recipe.qp};
  std::optional<Agreement> agreement;
  if (wanted.offer) {
    const FlowLabels labels = random_flow_labels();
    agreement = BL_TRY(context_.cm == nullptr ? agree(ours, *wanted.offer, recipe.peer_host, labels)
                                              : agree_on_path(*context_.cm, ours, *wanted.offer,
                                                              recipe.peer_host, labels));
    if (agreement->answer.cm && !order.prepares) return fail("it has to be prepared first");
  }
  const Origin& origin = recipe.paths[order.path];
  ibv_sge scratch = origin.scratch;
  std::uint32_t window_key = origin.window_key;
  verbs::Mr control;
  if (&device != origin.device || !origin.has_memory) {
    Result<verbs::Mr> registered =
        verbs::reg_mr(device.api(), BL_TRY(device.context->pd()), recipe.memory,
                      recipe.memory_bytes, recipe.access, verbs::Ordering::kStrict);
    if (!registered) return fail(problem_of(registered.error()));
    control = *std::move(registered);
    scratch.lkey = control->lkey;
    if (recipe.plan->window_bytes != 0) window_key = control->rkey;
  }
  Result<PathSetup> path =
      PathSetup::create(origin.place, device, *recipe.plan, recipe.qp, scratch);
  if (!path) return fail(problem_of(path.error()));
  Work work = {.link = link,
               .number = ++last_number_,
               .generation = order.generation,
               .prepares = order.prepares,
               .control = std::move(control),
               .window_key = wanted.window_key,
               .own_window_key = window_key,
               .path = *std::move(path),
               .has_loopback = wanted.has_loopback,
               .deadline_ns = now_ns() + kMostNs};
  PathMade made = {.path = order.path, .generation = order.generation, .prepares = order.prepares};
  if (agreement) {
    work.answer = std::move(agreement->answer);
    work.answer.qp = qp_facts(ours, work.path);
    work.path.set_route(std::move(agreement->route));
  } else {
    made.offer = BL_TRY(make_offer(ours));
    made.offer.qp = qp_facts(ours, work.path);
    made.window_key = window_key;
    if (context_.cm != nullptr) BL_TRY(add_cm_addresses(*context_.cm, ours, made.offer));
  }
  const Key key(link->numbers().ours, order.path);
  Work& placed = works_.insert_or_assign(key, std::move(work)).first->second;
  if (placed.answer.cm) {
    BL_TRY(listen(key, placed, recipe, *wanted.offer));
    made.answer = placed.answer;
    made.window_key = window_key;
  }
  return made;
}

Outcome<void> PathRemaker::listen(const Key& key, Work& work, const Recipe& recipe,
                                  const wire::PathOffer& offer) {
  const auto setup = std::make_shared<CmPassiveSetup>(*context_.cm, work.path, recipe.qp,
                                                      recipe.peer_host + " " + offer.qp.device,
                                                      on_cm_done(key, work.number));
  work.cm = setup;
  work.answer.cm = BL_TRY(setup->listen(offer.cm.addresses));
  limit_cm(key, work.number);
  return {};
}

CmSetup::Done PathRemaker::on_cm_done(const Key& key, std::uint64_t number) {
  return [this, key, number](const Outcome<void>& connected) {
    const auto found = works_.find(key);
    if (found != works_.end() && found->second.number == number) conclude(key, connected);
  };
}

void PathRemaker::limit_cm(const Key& key, std::uint64_t number) {
  context_.timers->at(now_ns() + kMostByCmNs, [this, key, number] {
    const auto found = works_.find(key);
    if (found == works_.end() || found->second.number != number) return;
    conclude(key, fail(found->second.cm->timeout_text("")));
  });
}

Outcome<void> PathRemaker::connect(const Key& key, Work& work, const Recipe& recipe,
                                   const wire::PathAnswer& answer) {
  const Device& device = work.path.device();
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return fail(problem_of(facts.error()));
  work.path.set_route(BL_TRY(route_of({device, **facts, recipe.qp}, answer)));
  if (answer.cm && context_.cm != nullptr) {
    const auto setup = std::make_shared<CmActiveSetup>(
        *context_.cm, work.path, recipe.qp,
        CmActiveSetup::Target{.destination = *answer.cm,
                              .peer = recipe.peer_host + " " + answer.qp.device,
                              .reads = work.path.route().reads,
                              .traffic_class = answer.traffic_class},
        on_cm_done(key, work.number));
    work.cm = setup;
    limit_cm(key, work.number);
    setup->start();  // may fail at once, and the work with it
    return {};
  }
  work.is_probed = true;
  work.deadline_ns = now_ns() + kMostNs;
  return {};
}

void PathRemaker::advance(const Key& key) {
  const auto found = works_.find(key);
  BL_ASSERT(found != works_.end(), "the path is being made");
  Work& work = found->second;
  const Recipe& recipe = recipes_.at(key.first);
  const std::shared_ptr<CommLink> link = work.link.lock();
  if (link == nullptr) {
    works_.erase(found);
    return;
  }
  const Outcome<bool> is_there = try_connect(work, recipe);
  if (is_there && !*is_there) {
    return advance_later(
        key, now_ns() + (work.path.is_connected() ? kPollNs : PathSetup::kResolveAgainNs));
  }
  conclude(key, is_there ? Outcome<void>() : Outcome<void>(fail(is_there.error())));
}

void PathRemaker::conclude(const Key& key, const Outcome<void>& connected) {
  const auto found = works_.find(key);
  Work& work = found->second;
  const std::shared_ptr<CommLink> link = work.link.lock();
  Recipe& recipe = recipes_.at(key.first);
  Outcome<PathMade> made =
      connected ? finish(work, recipe) : Outcome<PathMade>(fail(connected.error()));
  const PathNotMade which = {
      .path = key.second, .generation = work.generation, .prepares = work.prepares, .why = {}};
  const Device& device = work.path.device();
  works_.erase(found);
  if (link == nullptr) return;
  if (!made) return refuse(link, which, &device, made.error());
  made->path = key.second;
  recipe.paths[key.second].note_queues(*made->resources);
  deliver(link, *std::move(made));
}

// True: the path can be used.
Outcome<bool> PathRemaker::try_connect(Work& work, const Recipe& recipe) const {
  const bool is_late = now_ns() > work.deadline_ns;
  if (!work.path.is_connected()) {
    const Status connected = work.path.connect(recipe.qp);
    if (!connected && connected.error().code == Errc::kTimeout && !is_late) return false;
    if (!connected) return fail(problem_of(connected.error()));
    if (!work.is_probed) return true;
    if (const Status begun = work.path.start_probe(); !begun) return fail(Problem(begun.error()));
    work.deadline_ns = now_ns() + kMostNs;
    return false;
  }
  const bool is_probed = BL_TRY(work.path.poll_probe());
  if (!is_probed && is_late) {
    return fail(Problem(Errc::kTimeout, "a write of 0 bytes is not acknowledged"));
  }
  return is_probed;
}

Outcome<PathMade> PathRemaker::finish(Work& work, const Recipe& recipe) const {
  const Device& device = work.path.device();
  PathMade made = {.generation = work.generation,
                   .prepares = work.prepares,
                   .answer = work.answer,
                   .window_key = work.own_window_key};
  const std::optional<ibv_ece> agreed = work.path.agreed_ece();
  made.answer.qp.ece = agreed ? std::optional(to_wire(*agreed)) : std::nullopt;
  made.resources = std::make_unique<PathResources>(std::move(work.path).finish());
  PathResources& resources = *made.resources;
  resources.control = std::move(work.control);
  resources.window_key = work.window_key;
  if (!work.has_loopback) return made;
  ibv_pd* const pd = resources.domain ? resources.domain.pd() : BL_TRY(device.context->pd());
  resources.queues.loopback = BL_TRY(Loopback::make(device, {.pd = pd,
                                                             .cq = resources.queues.cq.get(),
                                                             .depth = recipe.plan->flush_depth,
                                                             .gid = recipe.qp.gid,
                                                             .pkey = recipe.qp.pkey}));
  return made;
}

void PathRemaker::advance_later(const Key& key, std::int64_t when_ns) {
  context_.timers->at(when_ns, [this, key, number = works_.at(key).number] {
    const auto found = works_.find(key);
    if (found != works_.end() && found->second.number == number) advance(key);
  });
}

void PathRemaker::deliver(const std::shared_ptr<CommLink>& link, PathMail result) {
  link->on_result(std::move(result));
  on_mail_(link);
}

void PathRemaker::refuse(const std::shared_ptr<CommLink>& link, PathNotMade which,
                         const Device* device, const Problem& why) {
  which.why = device == nullptr ? why.text : port_text(*device) + ": " + why.text;
  deliver(link, std::move(which));
}

}  // namespace beeline
