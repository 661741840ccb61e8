// SPDX-License-Identifier: Apache-2.0
//
// The channel, its events and the listeners.
#include "plugin/connect/cm/cm_hub.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/base/host.h"
#include "common/base/log.h"
#include "plugin/connect/cm/cm_words.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/fork_guard.h"

namespace beeline {
namespace {

constexpr int kBacklog = 1024;
// The connection manager chooses a port without asking TCP, which iWARP devices share it with.
constexpr int kListenAttempts = 16;
// Then others have their turn; what is left is told again.
constexpr int kEventsAtOnce = 64;

// Whoever drops it last closes the descriptor.
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

Result<void, std::string> CmHub::open() {
  if (channel_ != nullptr) return {};
  if (library_ == nullptr) return fail(std::string("there is no librdmacm here"));
  const auto library = library_->get();
  if (!library) return fail(library.error().text);
  const verbs::CmApi* const api = *library;
  auto channel = verbs::CmChannel::create(*api);
  if (!channel) return fail(no_channel_text(channel.error()));
  const auto shared = share(std::move(*channel));
  const auto key = poller_->add(shared->fd(), EPOLLIN, [this](std::uint32_t) { read_events(); });
  if (!key) return fail(describe(key.error()));
  channel_ = shared;
  key_ = *key;
  return {};
}

Result<std::vector<NetdevAddress>, std::string> CmHub::addresses(const Device& device) {
  BL_TRY(open());
  if (device.netdev.empty()) return fail(no_netdev_text(device));
  auto found = addresses_of(device.netdev);
  if (!found) return fail(describe(found.error()));
  if (found->empty()) return fail(no_address_text(device));
  return *std::move(found);
}

Result<verbs::CmId, std::string> CmHub::make_id() {
  BL_TRY(open());
  auto id = channel_->make_id();
  if (!id) return fail(describe(id.error()));
  return *std::move(id);
}

Result<wire::SocketAddress, std::string> CmHub::listen(const Device& device,
                                                       const wire::SocketAddress& address) {
  wire::SocketAddress place = address;
  const std::string name = ip_text(address);
  const auto known = listeners_.find(name);
  if (known != listeners_.end()) {
    place.port = known->second.port();
    if (const auto right = check_device(known->second, device, address); !right) {
      return fail(right.error());
    }
    return place;
  }
  place.port = 0;
  const KernelAddress kernel = to_kernel(place);
  for (int attempt = 1;; ++attempt) {
    verbs::CmId id = BL_TRY(make_id());
    const Status listening = id.listen(kernel.get(), kBacklog);
    if (!listening) {
      if (listening.error().sys_errno == EADDRINUSE && attempt < kListenAttempts) continue;
      return fail(listen_failure_text(listening.error(), device, address));
    }
    BL_TRY(check_device(id, device, address));
    place.port = id.port();
    BL_INFO(kLogNet, "%s: connections of queue pairs come in on %s %s", label(device).c_str(),
            device.netdev.c_str(), text(place).c_str());
    listeners_.emplace(name, std::move(id));
    return place;
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
      BL_WARN("no more events come from librdmacm: %s", describe(event.error()).c_str());
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
  const std::shared_ptr<EventHandler> handler = found->second;  // it may forget itself
  (*handler)(event);
}

// Devices may hand over more bytes than were sent.
void CmHub::on_request(verbs::CmEvent& event) {
  wire::Token cookie{};
  const bool is_long_enough = event.private_bytes >= cookie.size();
  for (std::size_t i = 0; i < cookie.size() && is_long_enough; ++i) {
    cookie[i] = std::to_integer<std::uint8_t>(event.private_data[i]);
  }
  const auto found = expected_.find(cookie);
  if (!is_long_enough || found == expected_.end()) {
    BL_WARN_LIMITED(5, "a queue pair's connection that nobody waits for is turned down");
    return event.request.reject();
  }
  const RequestHandler handler = std::move(found->second);
  expected_.erase(found);  // one cookie, one connection
  handler(std::move(event.request));
}

}  // namespace beeline
