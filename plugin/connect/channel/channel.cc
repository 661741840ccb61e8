// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/channel.h"

namespace beeline {

std::shared_ptr<CommLink> Channel::make_link(std::uint32_t ours, std::uint32_t theirs,
                                             const PathResources& path,
                                             std::shared_ptr<ControlMailbox> mailbox) {
  const DeviceContext& device = *path.device->context;
  auto link = std::make_shared<CommLink>(
      PeerName{.host = peer_.host, .pid = peer_.pid, .device = path.peer_device},
      CommNumbers{.channel = id_, .ours = ours, .theirs = theirs}, &device, outbox_,
      std::move(mailbox));
  links_[ours] = link;
  if (device.is_gone()) link->lose_device();  // it went away during the handshake
  return link;
}

std::shared_ptr<CommLink> Channel::find_link(std::uint32_t ours) const {
  const auto found = links_.find(ours);
  return found == links_.end() ? nullptr : found->second.lock();
}

std::size_t Channel::kill_links(const std::string& cause) {
  std::size_t killed = 0;
  for (const auto& [number, weak] : links_) {
    const std::shared_ptr<CommLink> link = weak.lock();
    if (link != nullptr && link->die(cause)) ++killed;
  }
  return killed;
}

void Channel::lose_device(const DeviceContext& device) {
  for (const auto& [number, weak] : links_) {
    const std::shared_ptr<CommLink> link = weak.lock();
    if (link != nullptr && link->is_on(device)) link->lose_device();
  }
}

void Channel::start_closing() noexcept {
  closing_ = true;
  if (outbox_->is_empty()) outbox_->shut_down();
}

}  // namespace beeline
