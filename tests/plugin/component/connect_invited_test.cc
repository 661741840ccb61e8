// SPDX-License-Identifier: Apache-2.0
//
// A peer with a valid token that asks for too many connections, channels or descriptors is refused.
// Each refusal names its limit, and the next peer can still connect.
#include <fcntl.h>
#include <sys/resource.h>

#include <vector>

#include "tests/plugin/component/connect_listener_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

constexpr rlim_t kFew = 256;

// A copy of the descriptor with a number beyond the limit of FewDescriptors256, so that it does not
// count.
UniqueFd beyond_few(const UniqueFd& fd) {
  UniqueFd high(fcntl(fd.get(), F_DUPFD_CLOEXEC, static_cast<int>(kFew)));
  BL_MUST(high);
  return high;
}

class FewDescriptors256 {
 public:
  FewDescriptors256() {
    BL_MUST(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit few{.rlim_cur = kFew, .rlim_max = before_.rlim_max};
    BL_MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  FewDescriptors256(const FewDescriptors256&) = delete;
  FewDescriptors256& operator=(const FewDescriptors256&) = delete;
  ~FewDescriptors256() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

struct Answers {
  std::size_t accepted = 0;
  std::size_t rejected = 0;
  std::string text;  // of the last rejection
};

void count_answer(RawPeer& client, Answers& answers) {
  const wire::Frame frame = client.receive_frame();
  if (frame.type == wire::MessageType::kAccept) {
    ++answers.accepted;
    return;
  }
  BL_MUST(frame.type == wire::MessageType::kReject);
  answers.text = must(wire::decode<wire::Reject>(frame.body)).text;
  ++answers.rejected;
}

}  // namespace

TEST_CASE("limits: of thousands of connections that one channel begins, few are kept",
          "[component][connect]") {
  ListenerRig rig;
  wire::Connect connect = rig.connect_of_real_peer();
  RawPeer client(handle_of(rig.ticket));
  client.introduce(hello_for(handle_of(rig.ticket)));
  Answers answers;
  for (std::uint32_t comm = 0; comm < 3000; ++comm) {
    connect.comm = comm;
    client.send(wire::encode(connect));
    count_answer(client, answers);
  }
  CHECK(answers.accepted == 32);
  CHECK(answers.rejected == 3000 - 32);
  CHECK(answers.text.starts_with("32 connections of one process on "));
  CHECK(rig.log.has("32 connections of one process on "));
  CHECK(rig.log.count("accept on") <= 20 + 12);
  rig.must_accept_real_peer();
}

TEST_CASE("limits: of many connections at one listener, the oldest is dropped",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Connect connect = rig.connect_of_real_peer();
  const wire::Handle handle = handle_of(rig.ticket);
  std::vector<RawPeer> clients;
  for (std::uint32_t i = 0; i < 80; ++i) {
    clients.emplace_back(handle).introduce(hello_for(handle, i));
    clients.back().send(wire::encode(connect));
    clients.back().receive_message<wire::Accept>();
  }
  const auto reject = clients.front().receive_message<wire::Reject>();
  CHECK(reject.text.find("keeps no more than 64 waiting") != std::string::npos);
  CHECK(rig.log.count("keeps no more than 64 waiting") == 16);
  rig.must_accept_real_peer();
}

TEST_CASE("limits: a listener keeps few connections that nobody accepts", "[component][connect]") {
  ControlOptions options = control_options();
  options.limits.unaccepted = 8;
  ListenerRig rig(options);
  wire::Connect connect = rig.connect_of_real_peer();
  RawPeer client(handle_of(rig.ticket));
  client.introduce(hello_for(handle_of(rig.ticket)));
  for (std::uint32_t comm = 0; comm < 8; ++comm) {
    connect.comm = comm;
    client.send(wire::encode(connect));
    const std::uint32_t ours = client.receive_message<wire::Accept>().our_comm;
    client.send(wire::encode(wire::Ready{.comm = ours, .paths = {0}}));
  }
  client.send(wire::encode(connect));
  CHECK(client.receive_message<wire::Reject>().text.starts_with(
      "8 connections wait for accept() on "));
  // Each connection that is accepted makes room for another.
  const ConnectionPtr made = rig.a.wait_accept(rig.listener);
  client.send(wire::encode(connect));
  client.receive_message<wire::Accept>();
}

TEST_CASE("limits: a process has a few channels, and keeps the newest", "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  const std::size_t before = open_descriptors();
  std::vector<RawPeer> clients;
  for (int i = 0; i < 1500; ++i) clients.emplace_back(handle).introduce(hello_for(handle));
  wait_for([&] { return open_descriptors() <= before + 1500 + 4; }, "all but four channels to go");
  CHECK(rig.log.has("4 control channels with this process, and may have no more"));
  CHECK(rig.log.count("may have no more") <= 5 + 12);
  clients.back().sync();
  clients.front().must_be_dropped();
  rig.must_accept_real_peer();
}

TEST_CASE("limits: channels in use stay, and a peer that is refused is told why",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.limits.channels = 2;
  ListenerRig rig(options);
  const wire::Connect connect = rig.connect_of_real_peer();
  const wire::Handle handle = handle_of(rig.ticket);
  {
    std::vector<RawPeer> clients;
    for (std::uint32_t i = 0; i < 2; ++i) {
      clients.emplace_back(handle).introduce(hello_for(handle, i));
      clients.back().send(wire::encode(connect));
      clients.back().receive_message<wire::Accept>();
    }
    RawPeer third(handle);
    third.send(wire::encode(hello_for(handle, 3)));
    const auto refusal = third.receive_message<wire::Refuse>();
    CHECK(refusal.text.starts_with("this process has 2 control channels, which is the limit"));
    CHECK(rig.log.has("is refused: this process has 2 control channels"));
    for (RawPeer& one : clients) one.sync();
  }
  rig.must_accept_real_peer();
}

TEST_CASE("limits: a peer whose first message may be on the way keeps its channel",
          "[component][connect]") {
  ControlOptions options = control_options();
  options.limits.channels = 2;
  ListenerRig rig(options);
  const wire::Connect connect = rig.connect_of_real_peer();
  const wire::Handle handle = handle_of(rig.ticket);
  RawPeer fresh(handle);
  fresh.introduce(hello_for(handle, 0));
  RawPeer idle(handle);
  idle.introduce(hello_for(handle, 1));
  idle.sync();  // it has sent a message, and uses its channel for nothing
  RawPeer third(handle);
  third.introduce(hello_for(handle, 2));
  idle.must_be_dropped();
  fresh.send(wire::encode(connect));
  fresh.receive_message<wire::Accept>();
}

TEST_CASE("limits: channels leave a quarter of the descriptors, and the next peer connects",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  std::vector<UniqueFd> sockets;
  sockets.reserve(300);
  for (int i = 0; i < 300; ++i) sockets.push_back(beyond_few(idle_socket()));
  const FewDescriptors256 few;
  std::vector<RawPeer> clients;
  for (std::uint32_t i = 0; i < 300; ++i) {
    dial(sockets[i], handle);
    clients.emplace_back(std::move(sockets[i])).introduce(hello_for(handle, i));
  }
  CHECK(rig.log.has("this process has 192 control channels"));
  rig.must_accept_real_peer();
}

TEST_CASE("limits: where the program has used up the descriptors, idle channels are closed",
          "[component][connect]") {
  ListenerRig rig;
  const wire::Handle handle = handle_of(rig.ticket);
  std::vector<UniqueFd> sockets;
  sockets.reserve(100);
  for (int i = 0; i < 100; ++i) sockets.push_back(beyond_few(idle_socket()));
  const FewDescriptors256 few;
  std::vector<UniqueFd> of_others;
  while (open_descriptors() < 100 + kFew - 40) {
    of_others.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  std::vector<RawPeer> clients;
  for (std::uint32_t i = 0; i < 100; ++i) {
    dial(sockets[i], handle);
    clients.emplace_back(std::move(sockets[i])).introduce(hello_for(handle, i));
  }
  CHECK(rig.log.has("this process has no descriptors left"));
  of_others.resize(of_others.size() - 12);  // room for the real peer and its device
  rig.must_accept_real_peer();
}
