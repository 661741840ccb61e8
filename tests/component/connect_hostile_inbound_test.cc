// SPDX-License-Identifier: Apache-2.0
//
// Who means ill at the door: cut introductions, floods, descriptors used up. What it costs is
// bounded, the log stays readable, and the peer that is waited for comes in.
#include <sys/resource.h>

#include <vector>

#include "tests/component/connect_house.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// As BL_WARN_LIMITED speaks: the first few, then at powers of two.
constexpr std::size_t kLinesOfThousands = 5 + 12;

ControlOptions impatient_options(int ms) {
  ControlOptions options = control_options();
  options.half_open_timeout = std::chrono::milliseconds(ms);
  return options;
}

// Nobody goes because its time is up.
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
    few.rlim_cur = open_descriptors() + spare;  // the numbers are given out from below
    BL_MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("hostile: a HELLO cut at any byte, and a hang-up, leave nothing behind",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  const std::size_t before = open_descriptors();
  for (std::size_t size = 0; size < hello.size(); ++size) {
    Stranger stranger(handle);
    stranger.say(first_bytes(hello, size));
  }
  wait_for([&] { return open_descriptors() == before; }, "the strangers' descriptors");
  CHECK(house.log.count("is dropped") <= kLinesOfThousands);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: a HELLO cut at any byte, and silence, end at the deadline",
          "[component][connect]") {
  House house(impatient_options(200));
  const wire::Handle handle = handle_of(house.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  const std::size_t before = open_descriptors();
  std::vector<Stranger> strangers;
  for (std::size_t size = 0; size < hello.size(); ++size) {
    strangers.emplace_back(handle).say(first_bytes(hello, size));
  }
  for (Stranger& stranger : strangers) stranger.must_be_dropped();
  CHECK(house.log.has("did not introduce itself in time"));
  CHECK(house.log.count("is dropped") <= kLinesOfThousands);
  strangers.clear();
  wait_for([&] { return open_descriptors() == before; }, "the strangers' descriptors");
  house.real_peer_still_comes();
}

TEST_CASE("hostile: who says a byte now and then gains no time by it", "[component][connect]") {
  House house(impatient_options(300));
  const wire::Handle handle = handle_of(house.ticket);
  const wire::Bytes hello = wire::encode(hello_for(handle));
  Stranger stranger(handle);
  // It would take four times the deadline.
  const timespec pause{.tv_sec = 0, .tv_nsec = 1'200'000'000 / static_cast<long>(hello.size())};
  std::size_t said = 0;
  while (said < hello.size() && !stranger.is_dropped() && stranger.try_say({hello[said]})) {
    ++said;
    nanosleep(&pause, nullptr);
  }
  CHECK(said > 0);
  CHECK(said < hello.size());
  CHECK(house.log.count("did not introduce itself in time") == 1);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: a flood of half-open connections costs little, and lets the peer in",
          "[component][connect]") {
  House house(patient_options());
  const wire::Handle handle = handle_of(house.ticket);
  const std::size_t before = open_descriptors();
  constexpr std::size_t kCrowd = 3000;
  std::vector<Stranger> crowd;
  crowd.reserve(kCrowd);
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.emplace_back(handle);
    if (i % 2 == 0) (void)crowd.back().try_say({std::byte{0}});
  }
  house.real_peer_still_comes();
  // Ours are still open; of those of the house, no more than a few hundred.
  wait_for([&] { return open_descriptors() < before + kCrowd + 300; }, "the oldest to go");
  CHECK(house.log.count("is dropped") >= 5);
  CHECK(house.log.count("is dropped") <= kLinesOfThousands);
  crowd.clear();
  house.real_peer_still_comes();
  wait_for([&] { return open_descriptors() <= before + 4; }, "the strangers' descriptors");
}

TEST_CASE("hostile: strangers do not use up the last descriptors", "[component][connect]") {
  House house(patient_options());
  const wire::Handle handle = handle_of(house.ticket);
  constexpr std::size_t kCrowd = 1000;
  std::vector<UniqueFd> crowd(kCrowd);
  for (UniqueFd& stranger : crowd) stranger = idle_socket();
  const FewDescriptors few(24);
  for (const UniqueFd& stranger : crowd) dial(stranger, handle);
  house.real_peer_still_comes();
  CHECK(house.log.has("Too many open files"));
  CHECK(house.log.count(LogLevel::kWarn) <= kLinesOfThousands + 5);
}

TEST_CASE("hostile: thousands without an invitation are refused in a few lines",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  wire::Hello hello = hello_for(handle);
  hello.token[3] ^= 1;
  const wire::Bytes bytes = wire::encode(hello);
  for (int i = 0; i < 2000; ++i) {
    Stranger stranger(handle);
    stranger.say(bytes);
    if (i % 100 == 0) {
      CHECK(stranger.hear_message<wire::Refuse>().code == wire::RefuseCode::kNotInvited);
    }
  }
  house.real_peer_still_comes();
  CHECK(house.log.count("is refused") >= 5);
  CHECK(house.log.count("is refused") <= kLinesOfThousands);
}

TEST_CASE("hostile: thousands that come and go without a word leave a few lines",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  for (int i = 0; i < 2000; ++i) Stranger stranger(handle);
  house.real_peer_still_comes();
  CHECK(house.log.count("closed before its first message") >= 1);
  CHECK(house.log.count("closed before its first message") <= kLinesOfThousands);
}

TEST_CASE("hostile: nobody is let in under the name of the process that it dials",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  wire::Hello hello = hello_for(handle);
  hello.process = handle.process;
  Stranger stranger(handle);
  stranger.say(wire::encode(hello));
  CHECK(stranger.hear_message<wire::Refuse>().code == wire::RefuseCode::kNotInvited);
  stranger.must_be_dropped();
  // The process itself may connect to its own listener.
  Comm2 comm = join(house.a, house.a);
  prove_write(*comm.receiver, *comm.sender);
  comm.receiver->link->send_goodbye(0);
  comm.sender->link->send_goodbye(0);
  house.real_peer_still_comes();
}

TEST_CASE("hostile: two under one name are two channels, and neither harms the peer",
          "[component][connect]") {
  House house;
  const wire::Handle handle = handle_of(house.ticket);
  Stranger one(handle);
  Stranger other(handle);
  one.enter(hello_for(handle));
  other.enter(hello_for(handle));
  one.sync();
  other.sync();
  house.real_peer_still_comes();
  one.sync();
}
