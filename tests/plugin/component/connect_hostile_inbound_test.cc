// SPDX-License-Identifier: Apache-2.0
//
// Attacks on the listening socket: truncated HELLOs, floods, exhausted descriptors. Memory and log
// lines stay bounded, and the real peer still connects.
#include <sys/resource.h>

#include <vector>

#include "tests/plugin/component/connect_listener_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// BL_WARN_LIMITED logs the first few, and then at powers of two.
constexpr std::size_t kLinesOfThousands = 5 + 12;

ControlOptions impatient_options(int ms) {
  ControlOptions options = control_options();
  options.half_open_timeout = std::chrono::milliseconds(ms);
  return options;
}

// So that no connection is dropped for its deadline.
ControlOptions patient_options() {
  ControlOptions options = control_options();
  options.half_open_timeout = 10 * kPatience;
  return options;
}

class FewDescriptors {
 public:
  explicit FewDescriptors(std::size_t spare) {
    BL_MUST(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    rlimit few = before_;
    few.rlim_cur = open_descriptors() + spare;  // the kernel uses the lowest free number
    BL_MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("hostile: a HELLO cut at any byte leaves nothing behind", "[component][connect]") {
  const bool hangs_up = GENERATE(true, false);  // or is silent, until the deadline
  ListenerRig rig(hangs_up ? control_options() : impatient_options(200));
  const wire::Handle handle = handle_of(rig.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  const std::size_t before = open_descriptors();
  std::vector<RawPeer> clients;
  for (std::size_t size = 0; size < hello.size(); ++size) {
    clients.emplace_back(handle).send(first_bytes(hello, size));
    if (hangs_up) clients.clear();
  }
  for (RawPeer& client : clients) client.must_be_dropped();
  CHECK(rig.log.has("did not introduce itself in time") == !hangs_up);
  CHECK(rig.log.count("is dropped") <= kLinesOfThousands);
  clients.clear();
  wait_for([&] { return open_descriptors() == before; }, "the clients' descriptors");
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a peer that sends byte by byte does not extend its deadline",
          "[component][connect]") {
  ListenerRig rig(impatient_options(300));
  const wire::Handle handle = handle_of(rig.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  RawPeer client(handle);
  // The whole HELLO would take four times the deadline.
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'200'000'000 / static_cast<long>(hello.size())};
  std::size_t said = 0;
  while (said < hello.size() && !client.is_dropped() && client.try_send({hello[said]})) {
    ++said;
    nanosleep(&pause, nullptr);
  }
  CHECK(said > 0);
  CHECK(said < hello.size());
  CHECK(rig.log.count("did not introduce itself in time") == 1);
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a flood of half-open connections costs little, and lets the peer in",
          "[component][connect]") {
  ListenerRig rig(patient_options());
  const wire::Handle handle = handle_of(rig.ticket);
  const std::size_t before = open_descriptors();
  constexpr std::size_t kCrowd = 3000;
  std::vector<RawPeer> crowd;
  crowd.reserve(kCrowd);
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.emplace_back(handle);
    if (i % 2 == 0) (void)crowd.back().try_send({std::byte{0}});
  }
  rig.must_accept_real_peer();
  // This side of all connections is still open, but only a few hundred of the rig's side.
  wait_for([&] { return open_descriptors() < before + kCrowd + 300; }, "the oldest to go");
  CHECK(rig.log.count("is dropped") >= 5);
  CHECK(rig.log.count("is dropped") <= kLinesOfThousands);
  crowd.clear();
  rig.must_accept_real_peer();
  wait_for([&] { return open_descriptors() <= before + 4; }, "the clients' descriptors");
}

TEST_CASE("hostile: strangers do not use up the last descriptors", "[component][connect]") {
  ListenerRig rig(patient_options());
  const wire::Handle handle = handle_of(rig.ticket);
  constexpr std::size_t kCrowd = 1000;
  std::vector<UniqueFd> crowd(kCrowd);
  for (UniqueFd& client : crowd) client = idle_socket();
  const FewDescriptors few(24);
  for (const UniqueFd& client : crowd) dial(client, handle);
  rig.must_accept_real_peer();
  CHECK(rig.log.has("Too many open files"));
  CHECK(rig.log.count(LogLevel::kWarn) <= kLinesOfThousands + 5);
}

TEST_CASE("hostile: a peer that uses the identity of the process that it dials is refused",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  wire::Hello hello = hello_for(handle);
  hello.process = handle.process;
  RawPeer client(handle);
  client.send(wire::encode(hello));
  CHECK(client.receive_message<wire::Refuse>().code == wire::RefuseCode::kUnknownListener);
  client.must_be_dropped();
  // The process itself may connect to its own listener.
  CommPair comm = join(rig.a, rig.a);
  prove_write(*comm.receiver, *comm.sender);
  comm.receiver->link->send_goodbye(0);
  comm.sender->link->send_goodbye(0);
  rig.must_accept_real_peer();
}

TEST_CASE(
    "hostile: two peers with one identity have two channels, and neither disturbs the real peer",
    "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer one(handle);
  RawPeer other(handle);
  one.introduce(hello_for(handle));
  other.introduce(hello_for(handle));
  one.sync();
  other.sync();
  rig.must_accept_real_peer();
  one.sync();
}
