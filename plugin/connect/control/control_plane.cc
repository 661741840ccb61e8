// SPDX-License-Identifier: Apache-2.0
//
// listen, connect, accept, close: what NCCL's threads do themselves is to lay down orders and to
// pick up results.
#include "plugin/connect/control/control_plane.h"

#include <unistd.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "plugin/connect/control/control_loop.h"
#include "plugin/connect/control/control_thread.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/fd_limit.h"
#include "plugin/connect/socket/interface.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {
namespace {

// The log tells what is wrong with a handle; the error only that something is.
void explain_handle(wire::ConstHandleBytes handle, const Error& error) {
  const Result<wire::VersionRange> versions = wire::versions_of(handle);
  if (error.code == Errc::kUnsupported && versions) {
    BL_WARN("connect: %s", wire::version_mismatch(*versions, wire::kOurVersions).c_str());
  } else {
    BL_WARN("connect: %s: NCCL_NET_PLUGIN must be the same on all hosts", describe(error).c_str());
  }
}

// NCCL gets an error code without a reason, so the reason is logged.
const Error& explain(const Error& error) {
  BL_WARN_LIMITED(3, "no connection can be made: %s%s", describe(error).c_str(),
                  fd_advice(error).c_str());
  return error;
}

const Error& explain_no_listening(const Interface& interface, const Error& error) {
  BL_WARN_LIMITED(3, "no connection can come in on %s %s: %s%s", interface.name.c_str(),
                  text(interface.address).c_str(), describe(error).c_str(),
                  fd_advice(error).c_str());
  return error;
}

// There is no control plane without its thread.
const Error& explain_no_thread(const Error& error) {
  const bool at_limit = error.sys_errno == EAGAIN;
  const std::string advice =
      at_limit ? "; this user may run no more threads (ulimit -u, or the container's pids limit)"
               : fd_advice(error);
  BL_WARN_LIMITED(3, "no connection can be made: %s%s", describe(error).c_str(), advice.c_str());
  return error;
}

// All that belongs to one process; a forked child starts anew.
struct Incarnation {
  int pid = 0;
  ProcessName self;
  std::shared_ptr<ControlMailbox> mailbox;
  std::mutex mutex;  // of what follows; not the control thread's
  std::thread thread;
  wire::SocketAddress listening_address;  // where we listen; port 0: nowhere
};

Result<std::unique_ptr<Incarnation>> make_incarnation() {
  auto made = std::make_unique<Incarnation>();
  made->pid = ::getpid();
  made->self = BL_TRY(make_process_name());
  made->mailbox = BL_TRY(ControlMailbox::create());
  return made;
}

class ControlPlaneImpl final : public ControlPlane {
 public:
  ControlPlaneImpl(ControlOptions options, const DeviceTable& devices, PortEvents* port_events)
      : options_(std::move(options)), port_events_(port_events), devices_(&devices) {}
  ControlPlaneImpl(const ControlPlaneImpl&) = delete;
  ControlPlaneImpl& operator=(const ControlPlaneImpl&) = delete;
  ~ControlPlaneImpl() override;

  Result<Listener*> listen(const Device& device, HandleBytes handle,
                           const CommSettings& settings) override;
  Result<std::unique_ptr<Connection>> connect(const Device& device, HandleBytes handle,
                                              const CommSettings& settings) override;
  Result<std::unique_ptr<Connection>> accept(Listener& listener) override;
  void close(Listener* listener) noexcept override;
  void take_back(CommMemory memory) noexcept override;
  void reclaim(OwnerId owner) noexcept override;

 private:
  // Null: there is none yet, or it is the parent's.
  Incarnation* ours() const noexcept;
  Result<Incarnation*> live();
  Status begin(Incarnation& life, AttemptOrder order, HandleBytes handle);
  // The caller holds the incarnation's mutex for these.
  Status serve_locked(Incarnation& life);
  Status start_thread_locked(Incarnation& life);
  // Logs the cause of a failure.
  Result<wire::SocketAddress> listen_locked(Incarnation& life);

  const ControlOptions options_;
  PortEvents* const port_events_;
  const DeviceTable* const devices_;
  std::atomic<Incarnation*> life_{nullptr};
};

ControlPlaneImpl::~ControlPlaneImpl() {
  const std::unique_ptr<Incarnation> life(ours());  // the parent's thread is not here to be joined
  if (life == nullptr) return;
  life->mailbox->stop();
  if (life->thread.joinable()) life->thread.join();
  life->mailbox->clear();
}

Incarnation* ControlPlaneImpl::ours() const noexcept {
  Incarnation* const life = life_.load(std::memory_order_acquire);
  return life != nullptr && life->pid == ::getpid() ? life : nullptr;
}

// What a fork copied is not ours: its thread runs in the parent, and its locks may be held for
// ever. It is left as it is.
Result<Incarnation*> ControlPlaneImpl::live() {
  Incarnation* before = life_.load(std::memory_order_acquire);
  if (before != nullptr && before->pid == ::getpid()) return before;
  auto made = make_incarnation();
  if (!made) return fail(explain(made.error()));
  // Another thread may have been quicker.
  return life_.compare_exchange_strong(before, made->get()) ? made->release() : before;
}

Status ControlPlaneImpl::serve_locked(Incarnation& life) {
  if (life.mailbox->is_served()) return {};
  life.listening_address = {};
  Status started = start_thread_locked(life);
  if (!started) life.mailbox->fail_all(explain_no_thread(started.error()));
  return started;
}

Status ControlPlaneImpl::start_thread_locked(Incarnation& life) {
  auto loop = BL_TRY(ControlLoop::create({.options = &options_,
                                          .port_events = port_events_,
                                          .devices = devices_,
                                          .self = life.self,
                                          .mailbox = life.mailbox}));
  life.mailbox->start_serving();
  life.thread =
      BL_TRY(start_control_thread(std::move(loop), std::move(life.thread), options_.near_cpus));
  return {};
}

Result<wire::SocketAddress> ControlPlaneImpl::listen_locked(Incarnation& life) {
  if (life.listening_address.port != 0) return life.listening_address;
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces) return fail(explain(interfaces.error()));
  const Result<Interface, std::string> chosen =
      choose_interface(*interfaces, options_.interface, options_.family);
  if (!chosen) {
    BL_WARN("%s", chosen.error().c_str());
    return fail(Errc::kNotFound, "choose a network interface");
  }
  Result<UniqueFd> listening = open_listening_socket(chosen->address);
  if (!listening) return fail(explain_no_listening(*chosen, listening.error()));
  const Result<wire::SocketAddress> address = local_address(listening->get());
  if (!address) return fail(explain_no_listening(*chosen, address.error()));
  life.listening_address = *address;
  life.mailbox->listen_on(std::move(*listening));
  BL_INFO(kLogNet, "control channels come in on %s %s", chosen->name.c_str(),
          text(life.listening_address).c_str());
  return life.listening_address;
}

Result<Listener*> ControlPlaneImpl::listen(const Device& device, HandleBytes handle,
                                           const CommSettings& settings) {
  Incarnation& life = *BL_TRY(live());
  const Result<wire::Token> token = make_token();
  if (!token) return fail(explain(token.error()));
  const auto lock = lock_without_sleeping(life.mutex);
  // A listener at the mailbox keeps the control thread from leaving.
  Listener* const listener = life.mailbox->add_listener(*token, device, settings);
  const Status served = serve_locked(life);
  const Result<wire::SocketAddress> address = served ? listen_locked(life) : fail(served.error());
  if (!address) {
    life.mailbox->close_listener(listener);
    return fail(address.error());
  }
  wire::encode({.process = life.self.id,
                .listener = listener->number(),
                .token = *token,
                .address = *address,
                .host = life.self.host,
                .device = device.ibdev + ":" + std::to_string(device.port)},
               handle);
  return listener;
}

Result<std::unique_ptr<Connection>> ControlPlaneImpl::connect(const Device& device,
                                                              HandleBytes handle,
                                                              const CommSettings& settings) {
  Result<wire::Handle> decoded = wire::decode_handle(handle);
  if (!decoded) {
    explain_handle(handle, decoded.error());
    return fail(decoded.error());
  }
  Incarnation& life = *BL_TRY(live());
  ControlMailbox::AttemptState known =
      BL_TRY(life.mailbox->poll_attempt(wire::attempt_in(handle), decoded->token));
  if (known.is_known) {
    if (known.made == nullptr) life.mailbox->yield_to_control_thread();
    return std::move(known.made);
  }
  if (needs_scope(decoded->address)) {
    const Result<std::uint32_t, std::string> scope = local_scope(options_.interface);
    if (!scope) {
      BL_WARN_LIMITED(3, "connect: the peer's address %s is good on one interface only: %s",
                      text(decoded->address).c_str(), scope.error().c_str());
      return fail(Errc::kNotFound, "choose a network interface");
    }
    decoded->address.scope = *scope;
  }
  BL_TRY(begin(life, {.handle = *decoded, .device = &device, .settings = settings}, handle));
  return std::unique_ptr<Connection>{};
}

// Who is in each other's way tries again with the next call.
Status ControlPlaneImpl::begin(Incarnation& life, AttemptOrder order, HandleBytes handle) {
  const std::unique_lock lock(life.mutex, std::try_to_lock);
  if (!lock) return {};
  // An order at the mailbox keeps the control thread from leaving.
  const std::optional<std::uint64_t> remember = life.mailbox->add_attempt(std::move(order));
  if (!remember) return {};
  wire::remember_attempt(handle, *remember);
  return serve_locked(life);
}

Result<std::unique_ptr<Connection>> ControlPlaneImpl::accept(Listener& listener) {
  Incarnation* const life = ours();
  if (life == nullptr) return fail(Errc::kInvalid, "accept on a listener of the parent process");
  Result<MadeConnection> made = life->mailbox->take_accepted(listener);
  if (made && *made == nullptr) life->mailbox->yield_to_control_thread();
  return made;
}

void ControlPlaneImpl::close(Listener* listener) noexcept {
  Incarnation* const life = ours();
  if (listener == nullptr || life == nullptr) return;
  try {
    life->mailbox->close_listener(listener);
  } catch (const std::exception&) {
    // No memory for the order: what is left of it ends with the process.
  }
}

void ControlPlaneImpl::take_back(CommMemory memory) noexcept {
  if (Incarnation* const life = ours(); life != nullptr)
    life->mailbox->take_back(std::move(memory));
}

void ControlPlaneImpl::reclaim(OwnerId owner) noexcept {
  Incarnation* const life = ours();
  if (life == nullptr) return;
  try {
    life->mailbox->reclaim(owner);
  } catch (const std::exception&) {
    // As above.
  }
}

}  // namespace

std::unique_ptr<ControlPlane> make_control_plane(ControlOptions options, const DeviceTable& devices,
                                                 PortEvents* port_events) {
  return std::make_unique<ControlPlaneImpl>(std::move(options), devices, port_events);
}

}  // namespace beeline
