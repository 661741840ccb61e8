// SPDX-License-Identifier: Apache-2.0
//
// The paths of the connecting end: what it offers in CONNECT, and what it makes of the ACCEPT.
#include <numeric>
#include <utility>

#include "plugin/connect/handshake/cm_agreement.h"
#include "plugin/connect/handshake/connector.h"
#include "plugin/device/memlock.h"

namespace beeline {
namespace {

// The sentence about a path, or about a comm with one path.
std::string cannot_make_text(const PendingComm& comm, std::uint8_t path, const std::string& why) {
  if (comm.has_one_path()) return "this end could not be made: " + why;
  return port_text(comm.device_of(path)) + ": " + why;
}

}  // namespace

Checked Connector::make_end(PendingConnect& pending) {
  const auto failure = [&](const Error& error, std::uint8_t path) {
    const std::string why = describe(error) + memlock_advice(error);
    return HandshakeFailure{.text = cannot_make_text(pending, path, why), .error = error};
  };
  Result<CommEnd> end = CommEnd::create(context_.options->sender.of(pending.layout.count));
  if (!end) return fail(failure(end.error(), 0));
  pending.end = *std::move(end);
  std::vector<std::uint8_t> all(pending.layout.count);
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  const RailPorts ports(pending, all, *context_.ports);
  for (const std::uint8_t path : all) {
    if (const auto facts = ports.facts(path); !facts) {
      const bool is_alone = pending.has_one_path();
      pending.leave_out(path, is_alone ? failure(facts.error().error, path) : facts.error());
      continue;
    }
    const Status added =
        pending.end->add_path(pending.layout.place(path), pending.device_of(path), pending.qp);
    if (!added) pending.leave_out(path, failure(added.error(), path));
  }
  return {};
}

wire::Connect Connector::make_connect(PendingConnect& pending) {
  wire::Connect message{.listener = pending.order.handle.listener,
                        .token = pending.order.handle.token,
                        .comm = pending.order.comm,
                        .counts = rail_counts(pending.devices, pending.qp)};
  for (const std::uint8_t number : pending.path_numbers()) {
    Checked added = add_offer(pending, number, message);
    if (!added) pending.leave_out(number, added.error());
  }
  message.window = pending.end->window();
  message.missing = pending.missing_paths();
  return message;
}

Checked Connector::add_offer(PendingConnect& pending, std::uint8_t number, wire::Connect& message) {
  const PathSetup& path = pending.end->paths().at(number);
  const Device& device = path.device();
  const auto failure = [&](const Problem& problem) {
    return fail(HandshakeFailure{.text = cannot_make_text(pending, number, problem.text),
                                 .error = fail(problem.code, "connect", problem.sys_errno).error});
  };
  const Result<const PortFacts*> facts = context_.ports->facts(device);
  if (!facts) return failure(Problem(facts.error()));
  const PortSide ours{device, **facts, pending.qp};
  Outcome<wire::PathOffer> made = make_offer(ours);
  if (!made) return failure(made.error());
  wire::PathOffer& offer = *made;
  offer.number = number;
  offer.qp = qp_facts(ours, path);
  if (const auto added = add_cm_addresses(*context_.cm, ours, offer); !added)
    return failure(Problem(Errc::kUnsupported, added.error().text));
  message.paths.push_back(std::move(offer));
  return {};
}

HandshakeFailure Connector::misfit(const PendingComm& comm, const std::string& why) {
  return {.text = "the answer of " + comm.peer + " does not fit what " + comm.own_name() +
                  " offered: " + why,
          .error = fail(Errc::kProtocol, "take the peer's ACCEPT").error};
}

Outcome<void> Connector::take_accept(PendingConnect& pending) {
  const wire::Accept& accept = pending.accept;
  BL_TRY(check_path_numbers(pending.layout, numbers_of(accept.paths), accept.missing));
  if (accept.window.length < context_.options->receiver.of(pending.layout.count).window_bytes) {
    return fail("its window is too small");
  }
  for (const wire::PathAnswer& answer : accept.paths) {
    if (pending.has_path(answer.number)) continue;
    return fail("it has path " + std::to_string(answer.number) + ", which was not offered");
  }
  for (const wire::MissingPath& path : accept.missing) {
    const Error error = fail(Errc::kSystem, "connect: the peer could not make its end").error;
    pending.leave_out(path.number, {.code = wire::RejectCode::kAbandoned,  //
                                    .text = path.why,
                                    .error = error});
  }
  for (const wire::PathAnswer& answer : accept.paths) {
    const Outcome<void> taken = take_answer(pending, answer);
    if (!taken) pending.leave_out(answer.number, misfit(pending, taken.error().text));
  }
  return {};
}

Outcome<void> Connector::take_answer(PendingConnect& pending, const wire::PathAnswer& answer) {
  PathSetup& path = pending.end->paths().at(answer.number);
  const PortFacts* const facts = BL_TRY(context_.ports->facts(path.device()));
  path.set_route(BL_TRY(route_of({path.device(), *facts, pending.qp}, answer)));
  return {};
}

}  // namespace beeline
