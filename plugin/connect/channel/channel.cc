// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/channel/channel.h"

#include <algorithm>
#include <vector>

namespace beeline {

namespace {

std::vector<const DeviceContext*> devices_of(std::span<const PathResources> paths) {
  std::vector<const DeviceContext*> devices;
  for (const PathResources& path : paths) {
    const DeviceContext* const device = path.device->context;
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  return devices;
}

// "mlx5_0:1+mlx5_1:1".
std::string peer_devices_of(std::span<const PathResources> paths) {
  std::vector<std::string> names;
  std::string text;
  for (const PathResources& path : paths) {
    if (std::ranges::find(names, path.peer_device) != names.end()) continue;
    names.push_back(path.peer_device);
    text += (text.empty() ? "" : "+") + path.peer_device;
  }
  return text;
}

}  // namespace

std::shared_ptr<CommLink> Channel::make_link(std::uint32_t ours, std::uint32_t theirs,
                                             std::span<const PathResources> paths,
                                             std::shared_ptr<ControlMailbox> mailbox) {
  const std::vector<const DeviceContext*> devices = devices_of(paths);
  auto link = std::make_shared<CommLink>(
      PeerName{.host = peer_.host, .pid = peer_.pid, .device = peer_devices_of(paths)},
      CommNumbers{.channel = id_, .ours = ours, .theirs = theirs}, devices, outbox_,
      std::move(mailbox));
  links_[ours] = link;
  for (const DeviceContext* const device : devices) {
    if (device->is_gone()) link->lose_device(*device);  // it went away during the handshake
  }
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
    if (link != nullptr && link->is_on(device)) link->lose_device(device);
  }
}

void Channel::start_closing() noexcept {
  closing_ = true;
  if (outbox_->is_empty()) outbox_->shut_down();
}

}  // namespace beeline
