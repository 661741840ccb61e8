// SPDX-License-Identifier: Apache-2.0
//
// listen, connect, accept, close: what NCCL's threads do themselves is to lay down orders and to
// pick up results.
#include "plugin/connect/control_plane.h"

#include <unistd.h>

#include <mutex>
#include <thread>

#include "plugin/base/clock.h"
#include "plugin/base/log.h"
#include "plugin/connect/address.h"
#include "plugin/connect/control_loop.h"
#include "plugin/connect/control_thread.h"
#include "plugin/connect/interface.h"
#include "plugin/connect/socket.h"

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

// All that belongs to one process; a forked child starts anew.
struct Incarnation {
  int pid = 0;
  ProcessName self;
  std::shared_ptr<Desk> desk;
  std::thread thread;
  wire::SocketAddress door;  // where we listen; port 0: nowhere
};

Result<std::unique_ptr<Incarnation>> make_incarnation() {
  auto made = std::make_unique<Incarnation>();
  made->pid = ::getpid();
  made->self = BL_TRY(make_process_name());
  made->desk = BL_TRY(Desk::create());
  return made;
}

class ControlPlaneImpl final : public ControlPlane {
 public:
  ControlPlaneImpl(ControlOptions options, const DeviceTable& devices, ControlHooks hooks)
      : options_(std::move(options)), hooks_(std::move(hooks)), devices_(&devices) {}
  ControlPlaneImpl(const ControlPlaneImpl&) = delete;
  ControlPlaneImpl& operator=(const ControlPlaneImpl&) = delete;
  ~ControlPlaneImpl() override;

  Result<Listener*> listen(const Device& device, HandleBytes handle) override;
  Result<std::unique_ptr<Connection>> connect(const Device& device, HandleBytes handle) override;
  Result<std::unique_ptr<Connection>> accept(Listener& listener) override;
  void close(Listener* listener) noexcept override;

 private:
  bool is_ours() const noexcept { return life_->pid == ::getpid(); }
  // The caller holds mutex_ for these.
  Status live_locked();
  Status serve_locked();
  Status start_thread_locked();
  Result<wire::SocketAddress> open_door_locked();

  const ControlOptions options_;
  const ControlHooks hooks_;
  const DeviceTable* const devices_;
  std::mutex mutex_;
  std::unique_ptr<Incarnation> life_;
};

ControlPlaneImpl::~ControlPlaneImpl() {
  if (life_ == nullptr) return;
  if (life_->pid != ::getpid()) {
    static_cast<void>(life_.release());  // its thread is not here to be joined
    return;
  }
  life_->desk->stop();
  if (life_->thread.joinable()) life_->thread.join();
  life_->desk->clear();
}

Status ControlPlaneImpl::live_locked() {
  if (life_ != nullptr && life_->pid == ::getpid()) return {};
  // What a fork copied is not ours: its thread runs in the parent, and its locks may be held for
  // ever. It is left as it is.
  static_cast<void>(life_.release());
  life_ = BL_TRY(make_incarnation());
  return {};
}

Status ControlPlaneImpl::serve_locked() {
  if (life_->desk->is_served()) return {};
  // It has left already, and needs no more than a moment.
  if (life_->thread.joinable()) life_->thread.join();
  life_->door = {};
  Status started = start_thread_locked();
  if (!started) life_->desk->fail_all(started.error());
  return started;
}

Status ControlPlaneImpl::start_thread_locked() {
  auto loop = BL_TRY(ControlLoop::create({.options = &options_,
                                          .hooks = &hooks_,
                                          .devices = devices_,
                                          .self = life_->self,
                                          .desk = life_->desk}));
  life_->desk->start_serving();
  life_->thread = BL_TRY(start_control_thread(std::move(loop)));
  return {};
}

Result<wire::SocketAddress> ControlPlaneImpl::open_door_locked() {
  if (life_->door.port != 0) return life_->door;
  const std::vector<Interface> interfaces = BL_TRY(list_interfaces());
  const Result<Interface, std::string> chosen =
      choose_interface(interfaces, options_.interface, options_.family);
  if (!chosen) {
    BL_WARN("%s", chosen.error().c_str());
    return fail(Errc::kNotFound, "choose a network interface");
  }
  UniqueFd listening = BL_TRY(open_listening_socket(chosen->address));
  life_->door = BL_TRY(local_address(listening.get()));
  life_->desk->open_door(std::move(listening));
  BL_INFO(kLogNet, "control channels come in on %s %s", chosen->name.c_str(),
          text(life_->door).c_str());
  return life_->door;
}

Result<Listener*> ControlPlaneImpl::listen(const Device& device, HandleBytes handle) {
  const std::lock_guard lock(mutex_);
  BL_TRY(live_locked());
  const wire::Token token = BL_TRY(make_token());
  // A listener at the desk keeps the control thread from leaving.
  Listener* const listener = life_->desk->add_listener(token, device);
  const Status served = serve_locked();
  const Result<wire::SocketAddress> door = served ? open_door_locked() : fail(served.error());
  if (!door) {
    life_->desk->close_listener(listener);
    return fail(door.error());
  }
  wire::encode({.process = life_->self.id,
                .listener = listener->number(),
                .token = token,
                .address = *door,
                .host = life_->self.host,
                .device = device.ibdev + ":" + std::to_string(device.port)},
               handle);
  return listener;
}

Result<std::unique_ptr<Connection>> ControlPlaneImpl::connect(const Device& device,
                                                              HandleBytes handle) {
  Result<wire::Handle> decoded = wire::decode_handle(handle);
  if (!decoded) {
    explain_handle(handle, decoded.error());
    return fail(decoded.error());
  }
  const std::lock_guard lock(mutex_);
  BL_TRY(live_locked());
  const auto known = life_->desk->find_attempt(wire::attempt_in(handle), decoded->token);
  if (known) return life_->desk->take_connected(*known);
  if (needs_scope(decoded->address)) {
    decoded->address.scope = BL_TRY(local_scope(options_.interface));
  }
  const std::int64_t deadline = now_ns() + options_.connect_timeout.count() * kNsPerMs;
  // An order at the desk keeps the control thread from leaving.
  wire::remember_attempt(
      handle,
      life_->desk->add_attempt({.handle = *decoded, .device = &device, .deadline_ns = deadline}));
  BL_TRY(serve_locked());
  return std::unique_ptr<Connection>{};
}

Result<std::unique_ptr<Connection>> ControlPlaneImpl::accept(Listener& listener) {
  if (!is_ours()) return fail(Errc::kInvalid, "accept on a listener of the parent process");
  return life_->desk->take_accepted(listener);
}

void ControlPlaneImpl::close(Listener* listener) noexcept {
  if (listener != nullptr && is_ours()) life_->desk->close_listener(listener);
}

}  // namespace

std::unique_ptr<ControlPlane> make_control_plane(ControlOptions options, const DeviceTable& devices,
                                                 ControlHooks hooks) {
  return std::make_unique<ControlPlaneImpl>(std::move(options), devices, std::move(hooks));
}

}  // namespace beeline
