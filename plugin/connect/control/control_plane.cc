// SPDX-License-Identifier: Apache-2.0
//
// The part that runs on NCCL's threads: it leaves orders in the mailbox and picks up results.
#include "plugin/connect/control/control_plane.h"

#include <pthread.h>
#include <unistd.h>

#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "common/base/blocked_signals.h"
#include "common/base/log.h"
#include "plugin/connect/control/control_loop.h"
#include "plugin/connect/control/near_cpus.h"
#include "plugin/connect/socket/address.h"
#include "plugin/connect/socket/interface.h"
#include "plugin/connect/socket/lock_without_sleeping.h"
#include "plugin/connect/socket/socket.h"

namespace beeline {

// The state of one process. A forked child makes its own.
struct ProcessState {
  int pid = 0;
  ProcessName self;
  std::shared_ptr<ControlMailbox> mailbox;
  std::mutex mutex;  // guards the members below. The control thread does not use it
  std::thread thread;
  wire::SocketAddress listening_address;  // port 0: there is no listening socket yet
};

namespace {

// NCCL sees only that the handle is bad, so the log says what is wrong with it.
void explain_handle(wire::ConstHandleBytes handle, const Error& error) {
  const Result<wire::VersionRange> versions = wire::versions_of(handle);
  if (error.code == Errc::kUnsupported && versions) {
    BL_WARN("connect: %s", wire::version_mismatch(*versions, wire::kOurVersions).c_str());
  } else {
    BL_WARN("connect: %s; NCCL_NET_PLUGIN must be the same on all hosts", describe(error).c_str());
  }
}

// NCCL gets an error code only, so the log says the reason.
const Error& explain(const Error& error) {
  BL_WARN_LIMITED(3, "no connection can be made: %s%s", describe(error).c_str(),
                  fd_advice(error).c_str());
  return error;
}

const Error& explain_no_listening(const Interface& interface, const Error& error) {
  const bool is_full = error.sys_errno == EADDRINUSE;
  BL_WARN_LIMITED(3, "no connection can come in on %s %s: %s%s", interface.name.c_str(),
                  text(interface.address).c_str(), describe(error).c_str(),
                  is_full ? "; all ports of BEELINE_LISTEN_PORTS are in use: give it more"
                          : fd_advice(error).c_str());
  return error;
}

const Error& explain_no_thread(const Error& error) {
  const bool at_limit = error.sys_errno == EAGAIN;
  const std::string advice =
      at_limit ? "; this user may run no more threads (ulimit -u, or the container's pids limit)"
               : fd_advice(error);
  BL_WARN_LIMITED(3, "no connection can be made: %s%s", describe(error).c_str(), advice.c_str());
  return error;
}

// An exception that leaves a thread ends the application.
void run_without_throwing(ControlLoop& loop) noexcept {
  try {
    loop.run();
  } catch (const std::exception& error) {
    BL_WARN("the control thread ends, and with it all connections: %s", error.what());
    loop.give_up();
  }
}

// The thread has a name, blocks all signals, which are for the application's own threads, and runs
// on the processors of the list as far as it may (near_cpus.h). `before` is the previous control
// thread, if any: the new thread joins it, so that the caller does not wait.
Result<std::thread> start_control_thread(std::unique_ptr<ControlLoop> loop, std::thread before,
                                         const std::string& near_cpus) {
  const BlockedSignals blocked;
  // Shared, so that it survives a failure to start: the destructor of a joinable std::thread ends
  // the program.
  const auto last = std::make_shared<std::thread>(std::move(before));
  try {
    std::thread thread([running = std::move(loop), last, near_cpus]() mutable {
      pthread_setname_np(pthread_self(), "beeline-ctl");
      run_near(near_cpus);
      if (last->joinable()) last->join();
      run_without_throwing(*running);
      running.reset();
    });
    return thread;
  } catch (const std::system_error& error) {
    if (last->joinable()) last->join();
    return fail(Errc::kSystem, "start the control thread", error.code().value());
  }
}

Result<std::unique_ptr<ProcessState>> make_process_state() {
  auto made = std::make_unique<ProcessState>();
  made->pid = ::getpid();
  made->self = BL_TRY(make_process_name());
  made->mailbox = BL_TRY(ControlMailbox::create());
  return made;
}

}  // namespace

ControlPlane::~ControlPlane() {
  const std::unique_ptr<ProcessState> process(own_process());  // a child has no thread to join
  if (process == nullptr) return;
  process->mailbox->stop();
  if (process->thread.joinable()) process->thread.join();
  process->mailbox->clear();
}

ProcessState* ControlPlane::own_process() const noexcept {
  ProcessState* const process = process_.load(std::memory_order_acquire);
  return process != nullptr && process->pid == ::getpid() ? process : nullptr;
}

// A child does not use its parent's state: the thread runs in the parent, and the locks may be held
// for ever. The copy is never freed.
Result<ProcessState*> ControlPlane::get_process() {
  ProcessState* before = process_.load(std::memory_order_acquire);
  if (before != nullptr && before->pid == ::getpid()) return before;
  auto made = make_process_state();
  if (!made) return fail(explain(made.error()));
  // Another thread may have made one in the meantime.
  if (!process_.compare_exchange_strong(before, made->get())) return before;
  if (options_.slots != nullptr) options_.slots->set_identity(identity_of((*made)->self.id));
  return made->release();
}

Status ControlPlane::serve_locked(ProcessState& process) {
  if (process.mailbox->is_served()) return {};
  process.listening_address = {};
  Status started = start_thread_locked(process);
  if (!started) process.mailbox->fail_all(explain_no_thread(started.error()));
  return started;
}

Status ControlPlane::start_thread_locked(ProcessState& process) {
  auto loop = BL_TRY(ControlLoop::create({.options = &options_,
                                          .port_events = port_events_,
                                          .devices = devices_,
                                          .self = process.self,
                                          .mailbox = process.mailbox}));
  process.mailbox->start_serving();
  process.thread =
      BL_TRY(start_control_thread(std::move(loop), std::move(process.thread), options_.near_cpus));
  return {};
}

Result<wire::SocketAddress> ControlPlane::listen_locked(ProcessState& process) {
  if (process.listening_address.port != 0) return process.listening_address;
  const Result<std::vector<Interface>> interfaces = list_interfaces();
  if (!interfaces) return fail(explain(interfaces.error()));
  const Outcome<Interface> chosen =
      choose_interface(*interfaces, options_.interface, options_.family);
  if (!chosen) {
    BL_WARN("%s", chosen.error().text.c_str());
    return fail(Errc::kNotFound, "choose a network interface");
  }
  Result<UniqueFd> listening = open_listening_socket(chosen->address, options_.ports);
  if (!listening) return fail(explain_no_listening(*chosen, listening.error()));
  const Result<wire::SocketAddress> address = local_address(listening->get());
  if (!address) return fail(explain_no_listening(*chosen, address.error()));
  process.listening_address = *address;
  process.mailbox->listen_on(std::move(*listening));
  BL_INFO(kLogNet, "listening for control channels on %s %s", chosen->name.c_str(),
          text(process.listening_address).c_str());
  return process.listening_address;
}

Result<Listener*> ControlPlane::listen(RailDevices devices, HandleBytes handle,
                                       const CommSettings& settings) {
  ProcessState& process = *BL_TRY(get_process());
  const Result<wire::Token> token = make_token();
  if (!token) return fail(explain(token.error()));
  const auto lock = lock_without_sleeping(process.mutex);
  // While the mailbox has a listener, the control thread does not end.
  Listener* const listener = process.mailbox->add_listener(*token, devices, settings);
  const Status served = serve_locked(process);
  const Result<wire::SocketAddress> address =
      served ? listen_locked(process) : fail(served.error());
  if (!address) {
    process.mailbox->close_listener(listener);
    return fail(address.error());
  }
  wire::encode({.process = process.self.id,
                .listener = listener->number(),
                .token = *token,
                .address = *address,
                .counts = rail_counts(devices, options_for(settings, options_.qp)),
                .host = process.self.host,
                .device = devices.front()->ibdev + ":" + std::to_string(devices.front()->port)},
               handle);
  return listener;
}

Result<std::unique_ptr<Connection>> ControlPlane::connect(RailDevices devices, HandleBytes handle,
                                                          const CommSettings& settings) {
  Result<wire::Handle> decoded = wire::decode_handle(handle);
  if (!decoded) {
    explain_handle(handle, decoded.error());
    return fail(decoded.error());
  }
  ProcessState& process = *BL_TRY(get_process());
  ControlMailbox::AttemptState known =
      BL_TRY(process.mailbox->poll_attempt(wire::attempt_in(handle), decoded->token));
  if (known.is_known) {
    if (known.made == nullptr) process.mailbox->yield_to_control_thread();
    return std::move(known.made);
  }
  if (needs_scope(decoded->address)) {
    const Outcome<std::uint32_t> scope = local_scope(options_.interface);
    if (!scope) {
      BL_WARN_LIMITED(
          3,
          "connect: the peer's address %s is link-local, and this host has no interface for it: %s",
          text(decoded->address).c_str(), scope.error().text.c_str());
      return fail(Errc::kNotFound, "choose a network interface");
    }
    decoded->address.scope = *scope;
  }
  BL_TRY(begin(process, {.handle = *decoded, .devices = devices, .settings = settings}, handle));
  return std::unique_ptr<Connection>{};
}

// If another thread has the lock, the next call of connect() tries again.
Status ControlPlane::begin(ProcessState& process, AttemptOrder order, HandleBytes handle) {
  const std::unique_lock lock(process.mutex, std::try_to_lock);
  if (!lock) return {};
  // While the mailbox has an order, the control thread does not end.
  const std::optional<std::uint64_t> remember = process.mailbox->add_attempt(std::move(order));
  if (!remember) return {};
  wire::set_attempt(handle, *remember);
  return serve_locked(process);
}

Result<std::unique_ptr<Connection>> ControlPlane::accept(Listener& listener) {
  ProcessState* const process = own_process();
  if (process == nullptr) return fail(Errc::kInvalid, "accept on a listener of the parent process");
  Result<MadeConnection> made = process->mailbox->take_accepted(listener);
  if (made && *made == nullptr) process->mailbox->yield_to_control_thread();
  return made;
}

void ControlPlane::close(Listener* listener) noexcept {
  ProcessState* const process = own_process();
  if (listener == nullptr || process == nullptr) return;
  try {
    process->mailbox->close_listener(listener);
  } catch (const std::exception&) {
    // Out of memory for the order: the rest ends with the process.
  }
}

void ControlPlane::take_back(CommMemory memory) noexcept {
  ProcessState* const process = own_process();
  if (process != nullptr) process->mailbox->take_back(std::move(memory));
}

void ControlPlane::reclaim(OwnerId owner) noexcept {
  ProcessState* const process = own_process();
  if (process == nullptr) return;
  try {
    process->mailbox->reclaim(owner);
  } catch (const std::exception&) {
    // Out of memory, as above.
  }
}

}  // namespace beeline
