// SPDX-License-Identifier: Apache-2.0
//
// A device that is removed while it is in use, and has no other to stand in for it; networks that
// lose or delay packets: the error at both ends of a connection, their logs, and what works
// afterwards.
#include <cstdlib>
#include <thread>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/levels.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

constexpr size_t kRemovalSize = 100000;
constexpr uint32_t kBefore = 20;  // messages that arrive before anything happens

// The sender is on the first device of h0, the receiver on the last of h1.
std::string device_of(size_t rank) {
  const std::vector<std::string>& devices = fabric_facts().devices;
  return rank == kSenderRank ? devices.front() : devices.back();
}
std::string address_of(size_t rank) {
  return (rank == kSenderRank ? "h0/" : "h1/") + device_of(rank);
}

// Devices do not stand in for each other, and nobody waits for one.
struct NoStandby {
  Variable none{"BEELINE_STANDBY", "0"};
  Variable wait{"BEELINE_DEVICE_WAIT", "0s"};
  NoTimeouts unlimited;
};

size_t warnings(const std::vector<std::string>& parts) {
  return find_log_lines(NCCL_LOG_WARN, parts).size();
}

// Checks for one warning about the connection, and one more about the device at the end that has
// lost it.
void must_say_removed(size_t mine, size_t removed) {
  const std::string device = device_of(removed);
  if (mine == removed) {
    BL_MUST(warnings({"port " + device + ":1 of this host is gone (its device was removed"}) == 1);
    BL_MUST(warnings({device, device_of(1 - removed), "the device was removed"}) == 1);
    BL_MUST(warnings({}) == 2);
  } else {
    BL_MUST(warnings({device, device_of(mine), "the device was removed from its host"}) == 1);
    BL_MUST(warnings({}) == 1);
  }
}

int place_of(const Session& session, const std::string& device) {
  for (int dev = 0; dev < session.devices(); ++dev) {
    if (session.properties(dev).name == "beeline_" + device) return dev;
  }
  return -1;
}

// The number of devices must not change during a process's life, and the other device must work.
void must_live_on(const Session& session, int gone) {
  BL_MUST(session.devices() == static_cast<int>(fabric_facts().devices.size()));
  const int other = gone == 0 ? session.devices() - 1 : 0;
  const Link link = link_to_self(session, other, other);
  must_carry(session.net(), link, 4);
}

// As long as there is a listener, the control thread runs.
Comm listen_anywhere(const Session& session) {
  Handle handle{};
  return listen(session, session.devices() - 1, &handle);
}

// The device is still in this process's list, but connect must fail on it.
void must_refuse(const Session& session, int gone) {
  Handle handle{};
  const Comm listener = listen(session, gone == 0 ? session.devices() - 1 : 0, &handle);
  Attempt attempt{ncclSuccess, nullptr};
  wait_until(
      [&] {
        attempt = try_connect(session, gone, handle);
        return attempt.result != ncclSuccess || attempt.comm != nullptr;
      },
      "an error");
  BL_MUST(attempt.result == ncclSystemError);
  BL_MUST(log_has(NCCL_LOG_WARN, {device_of(kSenderRank), "this end could not be made",
                                  "removed from this host"}));
}

}  // namespace

TEST_CASE("removal: both ends notice at once, and say which device it is",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const NoStandby alone;
  const size_t removed = GENERATE(kSenderRank, kReceiverRank);
  // A device that fails for good, and works again at once: the driver has reset it.
  const std::string fault = GENERATE("remove", "event=device_fatal");
  CAPTURE(removed, fault);
  const std::string target = address_of(removed);
  const UndoneFaults undone(target);
  const auto must_end = [&](End& end, ncclResult_t result) {
    const size_t mine = end.peer.rank();
    BL_MUST(result == (mine == removed ? ncclSystemError : ncclRemoteError));
    must_say_removed(mine, removed);
    end.comm.close();
    if (mine == removed) must_live_on(end.session, removed == 0 ? 0 : last_device(end.session));
  };
  run_flow(
      [&](Sender& end) {
        send_messages(end, kRemovalSize, kBefore);
        Buffer memory(end, kRemovalSize);
        end.peer.meet();  // the receiver has registered its buffer
        disturb(target, fault);
        const ncclResult_t result = send_until_error(end, memory.all());
        memory.drop();
        must_end(end, result);
      },
      [&](Receiver& end) {
        receive_messages(end, kRemovalSize, kBefore);
        Buffer memory(end, kRemovalSize);
        end.peer.meet();
        const ncclResult_t result = receive_until_error(end, memory.all());
        memory.drop();
        must_end(end, result);
      });
}

TEST_CASE("removal: an end whose comm nobody calls tells its waiting peer",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const NoStandby alone;
  const std::string target = address_of(kSenderRank);
  const UndoneFaults undone(target);
  run_flow([&](Sender&) { disturb(target, "remove"); },
           [&](Receiver& end) {
             const Buffer memory(end, kRemovalSize);
             BL_MUST(receive_until_error(end, memory.all()) == ncclRemoteError);
             must_say_removed(kReceiverRank, kSenderRank);
             memory.must_hold();
           });
}

TEST_CASE("removal: nothing of it stays open, and the device is used again when it is back",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const NoStandby alone;
  const std::string target = "h0/" + device_of(kSenderRank);
  const UndoneFaults undone(target);
  run_alone([&] {
    const Session session;
    const int last = last_device(session);
    for (const int dev : {0, last, 0, last})
      must_carry(session.net(), link_to_self(session, dev, dev), 1);
    const Levels before = levels();
    {
      const Link link = link_to_self(session, 0, last);
      must_carry(session.net(), link, 2);
      Memory memory(kRemovalSize);
      const Mr from(session.net(), link.send, memory);
      const Mr to(session.net(), link.recv, memory);
      Request receive =
          irecv(session.net(), link.recv, Part{memory.at(), kRemovalSize, 0, to.raw()});
      disturb(target, "remove");
      BL_MUST(poll_until_error(receive) == ncclRemoteError);
      BL_MUST(
          any_isend(session.net(), link.send, {memory.at(), kRemovalSize, 0, from.raw()}).first ==
          ncclSystemError);
    }
    must_return_to(before);
    must_refuse(session, 0);
    must_live_on(session, 0);
    const Comm keeps_looking = listen_anywhere(session);
    disturb(target, "return");
    wait_until([] { return log_has(NCCL_LOG_WARN, {" of this host was opened again"}); },
               "the device");
    must_carry(session.net(), link_to_self(session, 0, 0), 2);
  });
}

TEST_CASE("removal: connect notices a device that was removed while nothing was connected",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const std::string target = "h0/" + device_of(kSenderRank);
  const UndoneFaults undone(target);
  run_alone([&] {
    const Session session;
    disturb(target, "remove");
    must_refuse(session, 0);
    must_live_on(session, 0);
  });
}

TEST_CASE("removal: a process that starts later is not offered the device until it is back",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const std::string target = "h0/" + device_of(kSenderRank);
  const UndoneFaults undone(target);
  const auto all = static_cast<int>(fabric_facts().devices.size());
  disturb(target, "remove");
  run_alone([&] {
    const Session session;
    BL_MUST(session.devices() == all - 1);
    BL_MUST(place_of(session, device_of(kSenderRank)) == -1);
    must_carry(session.net(), link_to_self(session), 1);
  });
  disturb(target, "return");
  run_alone([&] {
    const Session session;
    BL_MUST(session.devices() == all);
    const int back = place_of(session, device_of(kSenderRank));
    BL_MUST(back >= 0);
    must_carry(session.net(), link_to_self(session, back, back), 2);
  });
}

TEST_CASE(
    "removal: without recovery, a black hole ends both ends, as nothing completes or by an error",
    "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  // The device itself gives up after minutes, or soon.
  const auto [stall, retries, cause] = GENERATE(table<const char*, const char*, std::string>(
      {{"1s", "7", "nothing has completed for 1.0 s"}, {"3600s", "0", "status 12"}}));
  CAPTURE(stall);
  const Variable recovery("BEELINE_RECOVERY", "0");
  const Variable limit("BEELINE_STALL_TIMEOUT", stall);
  const Variable attempts("BEELINE_RETRY_CNT", retries);
  const Variable timeout("BEELINE_TIMEOUT", *retries == '0' ? "14" : nullptr);
  const std::string target = address_of(kSenderRank);
  const UndoneFaults undone(target);
  run_flow(
      [&, &cause = cause](Sender& end) {
        send_messages(end, kRemovalSize, kBefore);
        const Buffer memory(end, kRemovalSize);
        disturb(target, "blackhole");
        BL_MUST(send_until_error(end, memory.all()) == ncclRemoteError);
        BL_MUST(warnings({device_of(kSenderRank), cause}) == 1);
      },
      [&, &cause = cause](Receiver& end) {
        receive_messages(end, kRemovalSize, kBefore);
        const Buffer memory(end, kRemovalSize);
        BL_MUST(receive_until_error(end, memory.all()) == ncclRemoteError);
        BL_MUST(warnings({device_of(kReceiverRank), cause}) == 1);
      });
}

TEST_CASE("removal: queue pairs that cannot be moved to the error state close like others",
          "[contract][removal][softnic]") {
  if (!kProcessesWork) return;
  const std::string target = address_of(kSenderRank);
  const UndoneFaults undone(target);
  run_flow(
      [&](Sender& end) {
        disturb(target, "refuse-err=on");
        send_messages(end, kRemovalSize, kBefore);
        end.peer.meet();
        end.comm.close();
        end.peer.meet();
        must_carry(end.net(), link_to_self(end.session, 0, 0), 3);
        BL_MUST(warnings({}) == 0);
      },
      [&](Receiver& end) {
        receive_messages(end, kRemovalSize, kBefore);
        const Buffer memory(end, kRemovalSize);
        Request request = end.receive(memory.all());  // in flight when the sender closes
        end.peer.meet();
        BL_MUST(poll_until_error(request) == ncclRemoteError);
        end.peer.meet();
      });
}
