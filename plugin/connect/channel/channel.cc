// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/channel.h"

#include <algorithm>
#include <vector>

#include "common/base/host.h"
#include "common/check/assert.h"

namespace beeline {

namespace {

std::vector<const Device*> devices_of(std::span<const PathResources> paths) {
  std::vector<const Device*> devices;
  for (const PathResources& path : paths) {
    if (std::ranges::find(devices, path.device) == devices.end()) devices.push_back(path.device);
  }
  return devices;
}

// "mlx5_0:1+mlx5_1:1".
std::string peer_devices_of(std::span<const PathResources> paths) {
  std::vector<std::string> names;
  std::string text;
  for (const PathResources& path : paths) {
    if (path.is_missing() || std::ranges::find(names, path.peer_device) != names.end()) continue;
    names.push_back(path.peer_device);
    text += (text.empty() ? "" : "+") + path.peer_device;
  }
  return text;
}

}  // namespace

std::shared_ptr<CommLink> Channel::make_link(std::uint32_t ours, std::uint32_t theirs,
                                             std::span<const PathResources> paths,
                                             std::shared_ptr<ControlMailbox> mailbox) {
  const std::vector<const Device*> devices = devices_of(paths);
  auto link = std::make_shared<CommLink>(
      PeerName{
          .host = peer_.host, .pid = peer_.pid, .device = peer_devices_of(paths), .clock = clock_},
      CommNumbers{.channel = id_, .ours = ours, .theirs = theirs}, devices, outbox_,
      std::move(mailbox), resume_.has_value());
  links_.add(link);
  for (const Device* const device : devices) {
    if (!device->context->is_gone()) continue;
    link->lose_device(*device->context);  // it went away during the handshake
    link->alert();
  }
  return link;
}

void Channel::on_link_gone(const GoneLink& link) {
  const bool is_kept = links_.close(link, resume_.has_value());
  // The goodbyes of either end may have been lost with the connection.
  if (is_kept && was_lost_) links_.say_closed(link.numbers.ours, *outbox_);
}

void Channel::on_still_open(const wire::StillOpen& message) const {
  if (links_.answer_for(message.comm, *outbox_)) return;
  send(wire::Reject{.comm = message.our_comm,
                    .code = wire::RejectCode::kAbandoned,
                    .text = host_name() +
                            " has no such connection: it was given up, or not made, " +
                            "when the control channel was lost"});
}

void Channel::lose() noexcept {
  BL_ASSERT(resume_ && !lost_, "a channel that cannot be resumed ends when it is lost");
  lost_ = true;
  was_lost_ = true;
  input_ = {};
  outbox_->close();
}

void Channel::go_on(NewStream stream, Poller::Key key) {
  BL_ASSERT(lost_, "a channel gets another connection when it has lost its own");
  lost_ = false;
  input_ = std::move(stream.input);
  outbox_->reopen(std::move(stream.fd), key);
  links_.say_again(*outbox_);
}

void Channel::start_closing() noexcept {
  closing_ = true;
  if (outbox_->is_empty()) outbox_->shut_down();
}

}  // namespace beeline
