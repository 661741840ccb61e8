// SPDX-License-Identifier: Apache-2.0
//
// The messages of the control channel. encode() and decode() of message_frame.h are made from their
// fields(), which message_bytes.h explains.
//
// Each process numbers its own ends of comms. `comm` in a message is the number that the receiver
// of the message has given; the numbers in CONNECT and `our_comm` in ACCEPT are the sender's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugin/wire/handle.h"
#include "plugin/wire/limits.h"
#include "plugin/wire/message_frame.h"
#include "plugin/wire/message_path.h"
#include "plugin/wire/message_version.h"

namespace beeline::wire {

inline constexpr std::size_t kMaxNameBytes = 64;   // of a host or a device
inline constexpr std::size_t kMaxTextBytes = 400;  // of an explanation
inline constexpr std::size_t kMaxResumeAddresses = 8;

// Where the sender of a HELLO or HELLO_ACK can be dialed if the channel is lost, and the secret by
// which it recognizes the peer then.
struct ResumeOffer {
  Token token{};
  std::vector<SocketAddress> addresses = {};  // with their ports; at least one

  static void fields(auto& io, auto& offer) {
    io(offer.token);
    io.count(offer.addresses, kMaxResumeAddresses);
    for (auto& address : offer.addresses) {
      io(address);
      io.within(address.port, 1, UINT16_MAX);
    }
    io.require(!offer.addresses.empty());
  }
  bool operator==(const ResumeOffer&) const = default;
};

struct Hello {
  static constexpr MessageType kType = MessageType::kHello;
  static constexpr const char* kOtherVersion =
      "read a HELLO: it is from another version of Beeline";
  VersionRange versions = kOurVersions;
  ProcessId process{};
  std::string host;
  std::uint32_t pid = 0;
  std::uint32_t listener = 0;  // of the handle that the dialing process has
  Token token{};
  std::optional<ResumeOffer> resume = {};  // none: the channel ends when it is lost

  static void fields(auto& io, auto& hello) {
    io(hello.versions, hello.process);
    io.text(hello.host, kMaxNameBytes);
    io(hello.pid, hello.listener, hello.token, hello.resume);
  }
  bool operator==(const Hello&) const = default;
};

struct HelloAck {
  static constexpr MessageType kType = MessageType::kHelloAck;
  std::uint16_t version = 0;
  ProcessId process{};
  std::string host;
  std::uint32_t pid = 0;
  std::uint64_t clock_ns = 0;  // the sender's CLOCK_MONOTONIC as it sends
  std::optional<ResumeOffer> resume = {};

  static void fields(auto& io, auto& ack) {
    io.within(ack.version, kOurVersions.least, kOurVersions.most);
    io(ack.process);
    io.text(ack.host, kMaxNameBytes);
    io(ack.pid, ack.clock_ns, ack.resume);
  }
  bool operator==(const HelloAck&) const = default;
};

enum class RefuseCode : std::uint8_t {
  kVersion,          // no version in common
  kUnknownListener,  // no such listener, or another token; it may have been closed since
  kDuplicate,        // the sender's own dial goes first, or there are enough channels: try again
  kUnknownChannel,   // no such channel of this process, or another token; it may have ended since
};

struct Refuse {
  static constexpr MessageType kType = MessageType::kRefuse;
  RefuseCode code = RefuseCode::kUnknownListener;
  VersionRange versions = kOurVersions;
  std::string text = {};

  static void fields(auto& io, auto& refuse) {
    io(refuse.versions);
    io.choice(refuse.code, RefuseCode::kUnknownChannel);
    io.text(refuse.text, kMaxTextBytes);
  }
  bool operator==(const Refuse&) const = default;
};

// Memory that the receiver of the message may write to.
struct Window {
  std::uint64_t address = 0;
  std::uint64_t length = 0;                      // 0: no such memory
  std::array<std::uint32_t, kMaxRails> rkeys{};  // by rail of the end that has the memory

  static void fields(auto& io, auto& window) {
    io(window.address, window.length, window.rkeys);
    io.require(window.length <= UINT64_MAX - window.address);
  }
  bool operator==(const Window&) const = default;
};

// CONNECT, ACCEPT and READY list the paths that the sender of the message has, at least one, and
// those that it could not make. A CONNECT may have no path: then its sender has given up, and says
// why. In a message that was decoded, no number is there twice.
struct Connect {
  static constexpr MessageType kType = MessageType::kConnect;
  std::uint32_t listener = 0;
  Token token{};
  std::uint32_t comm = 0;  // the sender's number
  RailCounts counts = {};
  Window window = {};
  std::vector<PathOffer> paths = {};
  std::vector<MissingPath> missing = {};

  static void fields(auto& io, auto& connect) {
    io(connect.listener, connect.token, connect.comm, connect.counts, connect.window);
    path_lists(io, connect, true);
  }
  bool operator==(const Connect&) const = default;
};

struct Accept {
  static constexpr MessageType kType = MessageType::kAccept;
  std::uint32_t comm = 0;
  std::uint32_t our_comm = 0;  // the sender's number
  Window window = {};
  std::vector<PathAnswer> paths = {};     // of those that were offered
  std::vector<MissingPath> missing = {};  // the others that were offered

  static void fields(auto& io, auto& accept) {
    io(accept.comm, accept.our_comm, accept.window);
    path_lists(io, accept);
  }
  bool operator==(const Accept&) const = default;
};

struct Ready {
  static constexpr MessageType kType = MessageType::kReady;
  std::uint32_t comm = 0;
  std::vector<std::uint8_t> paths = {};   // the numbers of those that are connected
  std::vector<MissingPath> missing = {};  // the others that were accepted

  static void fields(auto& io, auto& ready) {
    io(ready.comm);
    path_lists(io, ready);
  }
  bool operator==(const Ready&) const = default;
};

enum class RejectCode : std::uint8_t {
  kUnknownListener,  // no such listener, or another token
  kIncompatible,     // the two devices cannot be connected
  kFailed,           // the sender's end has failed, or could not be made
  kAbandoned,        // the sender does not want the comm any more
};

struct Reject {
  static constexpr MessageType kType = MessageType::kReject;
  std::uint32_t comm = 0;
  RejectCode code = RejectCode::kFailed;
  std::string text = {};

  static void fields(auto& io, auto& reject) {
    io(reject.comm);
    io.choice(reject.code, RejectCode::kAbandoned);
    io.text(reject.text, kMaxTextBytes);
  }
  bool operator==(const Reject&) const = default;
};

struct Goodbye {
  static constexpr MessageType kType = MessageType::kGoodbye;
  std::uint32_t comm = 0;
  std::uint32_t settled = 0;  // the first position that the sender has not finished

  static void fields(auto& io, auto& goodbye) { io(goodbye.comm, goodbye.settled); }
  bool operator==(const Goodbye&) const = default;
};

// The first message of a process that dials again because it has lost a channel.
struct Resume {
  static constexpr MessageType kType = MessageType::kResume;
  static constexpr const char* kOtherVersion =
      "read a RESUME: it is from another version of Beeline";
  VersionRange versions = kOurVersions;
  ProcessId process{};  // the sender's
  Token token{};        // from the ResumeOffer of the process that is dialed
  // Counts the sender's messages of this type for this channel. One that has been overtaken by a
  // later one, or by a dial in the other direction, is void.
  std::uint32_t attempt = 0;

  static void fields(auto& io, auto& resume) {
    io(resume.versions, resume.process, resume.token, resume.attempt);
  }
  bool operator==(const Resume&) const = default;
};

struct ResumeAck {
  static constexpr MessageType kType = MessageType::kResumeAck;
  ProcessId process{};        // the sender's
  Token token{};              // from the ResumeOffer of the process that has dialed
  std::uint32_t attempt = 0;  // the sender's own attempts up to this one are void

  static void fields(auto& io, auto& ack) { io(ack.process, ack.token, ack.attempt); }
  bool operator==(const ResumeAck&) const = default;
};

// Asks whether the receiver's end of a comm is still open. Sent for each comm when a channel goes
// on, since the news that it is not may have been lost. If it is open there is no answer; otherwise
// the answer is GOODBYE, or REJECT if the receiver knows no such comm.
struct StillOpen {
  static constexpr MessageType kType = MessageType::kStillOpen;
  std::uint32_t comm = 0;
  std::uint32_t our_comm = 0;  // the sender's number

  static void fields(auto& io, auto& still_open) { io(still_open.comm, still_open.our_comm); }
  bool operator==(const StillOpen&) const = default;
};

}  // namespace beeline::wire
