// SPDX-License-Identifier: Apache-2.0
//
// The paths of the accepting end: what it makes of those that CONNECT offers, and what READY
// leaves.
#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/log.h"
#include "plugin/connect/handshake/acceptor.h"
#include "plugin/device/memlock.h"

namespace beeline {

Checked Acceptor::make(std::uint32_t comm, PendingAccept& pending) {
  for (const wire::MissingPath& path : pending.connect.missing) leave_out_for_peer(pending, path);
  Result<CommEnd> end = CommEnd::create(context_.options->receiver.of(pending.layout.count));
  if (!end) {
    return fail(HandshakeFailure{
        .text = pending.own_name() + ": " + describe(end.error()) + memlock_advice(end.error()),
        .error = end.error()});
  }
  pending.end = *std::move(end);
  const RailPorts ports(pending, numbers_of(pending.connect.paths), *context_.ports);
  for (const wire::PathOffer& offer : pending.connect.paths) {
    Checked made = make_path(comm, pending, ports, offer);
    if (!made) pending.leave_out(offer.number, made.error());
  }
  if (!pending.has_paths()) return fail(pending.no_path_left());
  return {};
}

Checked Acceptor::make_path(std::uint32_t comm, PendingAccept& pending, const RailPorts& ports,
                            const wire::PathOffer& offer) {
  const Device& device = pending.device_of(offer.number);
  const PortSide ours{device, *BL_TRY(ports.facts(offer.number)), pending.qp};
  Outcome<Agreement> agreement = agree_on_path(*context_.cm, ours, offer, pending.peer_host,
                                               flow_labels_of(pending.flow_labels, offer.number));
  if (!agreement) {
    return fail(HandshakeFailure{wire::RejectCode::kIncompatible, agreement.error().text,
                                 accept_error(Errc::kUnsupported)});
  }
  const Status added =
      pending.end->add_path(pending.layout.place(offer.number), device, pending.qp);
  if (!added) {
    const Error& error = added.error();
    return fail(
        HandshakeFailure{.text = port_text(device) + ": " + describe(error) + memlock_advice(error),
                         .error = error});
  }
  PathSetup& path = pending.end->paths().at(offer.number);
  agreement->answer.number = offer.number;
  agreement->answer.qp = qp_facts(ours, path);
  path.set_route(std::move(agreement->route));
  wire::PathAnswer& answer = pending.answers[offer.number] = std::move(agreement->answer);
  if (!answer.cm) return {};
  const Outcome<void> listening = listen_with_cm(comm, pending, offer);
  if (listening) return {};
  return fail(
      HandshakeFailure{.text = listening.error().text, .error = accept_error(Errc::kSystem)});
}

Outcome<void> Acceptor::listen_with_cm(std::uint32_t comm, PendingAccept& pending,
                                       const wire::PathOffer& offer) {
  const auto setup = std::make_shared<CmPassiveSetup>(
      *context_.cm, pending.end->paths().at(offer.number), context_.options->qp,
      pending.peer_host + " " + offer.qp.device, on_cm_done(comm, offer.number));
  pending.cm[offer.number] = setup;
  pending.answers.at(offer.number).cm = BL_TRY(setup->listen(offer.cm.addresses));
  return {};
}

void Acceptor::leave_out_for_peer(PendingAccept& pending, const wire::MissingPath& path) {
  pending.leave_out(path.number, {.code = wire::RejectCode::kAbandoned,
                                  .text = path.why,
                                  .error = accept_error(Errc::kPeerClosed)});
}

Checked Acceptor::take_ready(PendingAccept& pending, const wire::Ready& ready) {
  const auto misfit = [&](const std::string& text) {
    return fail(HandshakeFailure{wire::RejectCode::kAbandoned,
                                 "the READY of " + pending.peer + " does not fit what " +
                                     pending.own_name() + " has accepted: " + text,
                                 accept_error(Errc::kProtocol)});
  };
  const Outcome<void> numbers = check_path_numbers(pending.layout, ready.paths, ready.missing);
  if (!numbers) return misfit(numbers.error().text);
  for (const std::uint8_t path : ready.paths) {
    if (pending.has_path(path)) continue;
    const HandshakeFailure& why = pending.missing.at(path);
    if (std::ranges::find(pending.accepted, path) != pending.accepted.end()) {
      return fail(pending.lost_path(path, why));
    }
    return misfit("it has path " + std::to_string(path) +
                  ", which this end could not make: " + why.text);
  }
  for (const wire::MissingPath& path : ready.missing) leave_out_for_peer(pending, path);
  return {};
}

}  // namespace beeline
