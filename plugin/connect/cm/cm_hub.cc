// SPDX-License-Identifier: Apache-2.0
#include "plugin/connect/cm/cm_hub.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/cm/cm_text.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/fork_guard.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

constexpr int kBacklog = 1024;
// The connection manager chooses a port without asking TCP, which uses the same ports on iWARP
// devices.
constexpr std::uint32_t kLeastAttempts = 16;
// The poller reports the rest again, after other descriptors have had their turn.
constexpr int kEventsAtOnce = 64;

// The last owner closes the descriptor.
std::shared_ptr<verbs::CmChannel> share(std::unique_ptr<verbs::CmChannel> channel) {
  guard_from_fork(channel->fd());
  return {channel.release(), [](verbs::CmChannel* last) {
            unguard_from_fork(last->fd());
            delete last;
          }};
}

}  // namespace

CmHub::~CmHub() { stop_reading(); }

void CmHub::stop_reading() noexcept {
  if (key_ != 0) poller_->remove(channel_->fd(), std::exchange(key_, 0));
}

Outcome<void> CmHub::open() {
  if (channel_ != nullptr) return {};
  if (library_ == nullptr) return fail("librdmacm is not available on " + host_name());
  const verbs::CmApi* const api = BL_TRY(library_->get());
  auto channel = verbs::CmChannel::create(*api);
  if (!channel) return fail(no_channel_text(channel.error()));
  const auto shared = share(std::move(*channel));
  const auto key = poller_->add(shared->fd(), EPOLLIN, [this](std::uint32_t) { read_events(); });
  if (!key) return fail(key.error());
  channel_ = shared;
  key_ = *key;
  return {};
}

Outcome<std::vector<NetdevAddress>> CmHub::addresses(const Device& device) {
  BL_TRY(open());
  if (device.netdev.empty()) return fail(no_netdev_text(device));
  std::vector<NetdevAddress> found = BL_TRY(addresses_of(device.netdev));
  if (found.empty()) return fail(no_address_text(device));
  return found;
}

Outcome<verbs::CmId> CmHub::make_id() {
  BL_TRY(open());
  return BL_TRY(channel_->make_id());
}

Outcome<wire::SocketAddress> CmHub::listen(const Device& device,
                                           const wire::SocketAddress& address) {
  wire::SocketAddress bound = address;
  const std::string name = ip_text(address);
  const auto known = listeners_.find(name);
  if (known != listeners_.end()) {
    bound.port = known->second.port();
    BL_TRY(check_device(known->second, device, address));
    return bound;
  }
  const std::uint32_t attempts = std::max(ports_.size(), kLeastAttempts);
  for (std::uint32_t attempt = 0;; ++attempt) {
    verbs::CmId id = BL_TRY(make_id());
    bound.port = ports_.port(attempt, first_port_seed());
    const KernelAddress kernel = to_kernel(bound);
    const Status listening = id.listen(kernel.get(), kBacklog);
    if (!listening) {
      if (listening.error().sys_errno == EADDRINUSE && attempt + 1 < attempts) continue;
      return fail(listen_failure_text(listening.error(), device, address));
    }
    BL_TRY(check_device(id, device, address));
    bound.port = id.port();
    BL_INFO(kLogNet, "%s: librdmacm listens on %s %s", label(device).c_str(), device.netdev.c_str(),
            text(bound).c_str());
    listeners_.emplace(name, std::move(id));
    return bound;
  }
}

void CmHub::watch(const verbs::CmId& id, EventHandler handler) {
  watched_[id.key()] = std::make_shared<EventHandler>(std::move(handler));
}

void CmHub::expect(const wire::Token& cookie, RequestHandler handler) {
  expected_[cookie] = std::move(handler);
}

void CmHub::read_events() {
  const std::shared_ptr<verbs::CmChannel> channel = channel_;
  for (int i = 0; i < kEventsAtOnce; ++i) {
    auto event = channel->next_event();
    if (!event) {
      BL_WARN("librdmacm reports no more events, so connections through it will time out: %s",
              describe(event.error()).c_str());
      return stop_reading();
    }
    if (!*event) return;
    dispatch(**event);
  }
}

void CmHub::dispatch(verbs::CmEvent& event) {
  if (event.request) return on_request(event);
  const auto found = watched_.find(event.id);
  if (found == watched_.end()) return;
  const std::shared_ptr<EventHandler> handler = found->second;  // the handler may call forget()
  (*handler)(event);
}

// Some devices pad the private data, so there may be more bytes than were sent.
void CmHub::on_request(verbs::CmEvent& event) {
  wire::Token cookie{};
  const bool is_long_enough = event.private_bytes >= cookie.size();
  for (std::size_t i = 0; i < cookie.size() && is_long_enough; ++i) {
    cookie[i] = std::to_integer<std::uint8_t>(event.private_data[i]);
  }
  const auto found = expected_.find(cookie);
  if (!is_long_enough || found == expected_.end()) {
    BL_WARN_LIMITED(5, "a connection request of librdmacm is rejected: its cookie is unknown");
    return event.request.reject();
  }
  const RequestHandler handler = std::move(found->second);
  expected_.erase(found);  // one cookie, one connection
  handler(std::move(event.request));
}

}  // namespace beeline
