// SPDX-License-Identifier: Apache-2.0
//
// Tests of the rendezvous of ranks: its file, its token, and the connections to rank 0.
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp, setenv
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/ranks/admission.h"
#include "tools/ranks/rendezvous.h"
#include "tools/ranks/rendezvous_socket.h"
#include "tools/ranks/token_proof.h"

namespace beeline::ranks {
namespace {

namespace fs = std::filesystem;

class Meeting {
 public:
  Meeting() { REQUIRE(::mkdtemp(folder_.data()) != nullptr); }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  ~Meeting() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string file() const { return folder_ + "/rendezvous"; }

 private:
  std::string folder_ = fs::temp_directory_path() / "beeline-meeting-XXXXXX";
};

RendezvousListener opened(const std::string& file) {
  auto listener = RendezvousListener::open(file);
  REQUIRE(listener);
  return *std::move(listener);
}

RendezvousConnection dialled(const std::string& file) {
  auto made = dial(file, now_ns() + 60 * kNsPerSec);
  REQUIRE(made);
  return *std::move(made);
}

// As a rank of the command "perf" that has read the token in the file.
void speak(LineStream& stream, const std::string& token, std::size_t rank) {
  Exchange exchange = {.command = "perf", .of_other_rank = std::string(kChallengeDigits, 'c')};
  CHECK(stream.send(exchange.of_other_rank));
  const Outcome<std::string> answer = stream.receive(now_ns() + 60 * kNsPerSec);
  REQUIRE(answer);
  exchange.of_rank_0 = answer->substr(0, kChallengeDigits);
  const std::string hello = text_of(Hello{.rank = rank});
  CHECK(stream.send(proof_of_other_rank(token, exchange, hello) + hello));
}

TEST_CASE("meeting: a run removes its own file, not that of a later run", "[tools][meeting]") {
  const Meeting meeting;
  std::optional<RendezvousListener> first = opened(meeting.file());
  std::optional<RendezvousListener> second = opened(meeting.file());
  first.reset();
  CHECK(dialled(meeting.file()).token == second->token());
  second.reset();
  CHECK_FALSE(fs::exists(meeting.file()));
}

TEST_CASE("meeting: a file that its own user cannot read is not left behind", "[tools][meeting]") {
  const Meeting meeting;
  const fs::path folder = fs::path(meeting.file()).parent_path();
  const bool is_root = ::geteuid() == 0;  // and could read it
  if (is_root) {
    REQUIRE(::chown(folder.c_str(), 65534, 65534) == 0);
    REQUIRE(::seteuid(65534) == 0);
  }
  const mode_t before = ::umask(0400);
  const auto listener = RendezvousListener::open(meeting.file());
  ::umask(before);
  if (is_root) REQUIRE(::seteuid(0) == 0);
  REQUIRE_FALSE(listener);
  CHECK(listener.error().text.find("cannot be opened: Permission denied") != std::string::npos);
  CHECK(fs::is_empty(folder));
}

TEST_CASE("meeting: ranks may all connect before the first of them speaks", "[tools][meeting]") {
  const Meeting meeting;
  const Expected expected = {
      .command = "perf", .rendezvous = meeting.file(), .ranks = 80, .timeout_seconds = 60};
  RendezvousListener listener = opened(meeting.file());
  std::vector<LineStream> streams;
  std::string token;
  for (int rank = 1; rank < expected.ranks; ++rank) {
    RendezvousConnection made = dialled(meeting.file());
    token = made.token;
    streams.emplace_back(std::move(made.fd));
  }
  LineStream stranger(dialled(meeting.file()).fd);
  Admission admission(expected, std::move(listener));
  auto members = std::async(std::launch::async, [&admission] { return admission.gather(); });
  // Connections are accepted in order, so once the last is refused, all are.
  CHECK(stranger.send("{}"));
  CHECK_FALSE(stranger.receive());
  for (std::size_t i = 0; i < streams.size(); ++i) speak(streams[i], token, i + 1);
  CHECK(members.get());
}

// The soft limit on descriptors, until this object's end.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit fewer = {.rlim_cur = most, .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &fewer) == 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("meeting: silent strangers do not take the last descriptor", "[tools][meeting]") {
  const Meeting meeting;
  RendezvousListener listener = opened(meeting.file());
  std::vector<UniqueFd> strangers;
  strangers.reserve(20);
  for (int i = 0; i < 20; ++i) strangers.push_back(dialled(meeting.file()).fd);
  RendezvousConnection made = dialled(meeting.file());
  LineStream rank(std::move(made.fd));
  const auto next = static_cast<rlim_t>(UniqueFd(::dup(rank.fd())).get());
  std::vector<UniqueFd> others;
  rlim_t most = 70;
  SECTION("of a low limit, some descriptors stay free") {}
  SECTION("when none is left, the oldest connection is closed") {
    most = 200;  // of which other files take most
    while (next + others.size() + 3 < most) others.emplace_back(::dup(rank.fd()));
  }
  const DescriptorLimit limit(most);
  Admission admission({.command = "perf", .rendezvous = meeting.file(), .timeout_seconds = 60},
                      std::move(listener));
  auto ranks = std::async(std::launch::async, [&admission] { return admission.gather(); });
  // The oldest connection is closed before the rank speaks.
  pollfd oldest = {.fd = strangers.front().get(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&oldest, 1, 60'000) == 1);
  speak(rank, made.token, 1);
  CHECK(ranks.get());
}

TEST_CASE("meeting: a proof holds for one end, one token and one exchange", "[tools][meeting]") {
  const Exchange exchange = {.command = "perf",
                             .address = "node1:4000",
                             .of_rank_0 = std::string(kChallengeDigits, 'a'),
                             .of_other_rank = std::string(kChallengeDigits, 'b')};
  const std::string token = "a token of the ranks";
  const std::string hello = "the hello";
  std::vector<Exchange> others(5, exchange);
  std::swap(others[0].of_rank_0, others[0].of_other_rank);
  others[1].command = "doctor";
  others[2].address = "node2:4000";
  others[3].address.clear();
  others[4].command = "per";  // the same text without the lengths
  others[4].address = "fnode1:4000";
  const std::string of_rank_0 = proof_of_rank_0(token, exchange);
  const std::string of_other_rank = proof_of_other_rank(token, exchange, hello);
  CHECK(of_rank_0.size() == kProofDigits);
  CHECK(of_rank_0 == proof_of_rank_0(token, exchange));
  CHECK(of_rank_0 != proof_of_other_rank(token, exchange, ""));
  CHECK(of_rank_0 != proof_of_rank_0(token + "2", exchange));
  CHECK(of_other_rank == proof_of_other_rank(token, exchange, hello));
  CHECK(of_other_rank != proof_of_other_rank(token, exchange, hello + "2"));
  CHECK(of_other_rank != proof_of_other_rank(token + "2", exchange, hello));
  for (const Exchange& other : others) {
    CHECK(of_rank_0 != proof_of_rank_0(token, other));
    CHECK(of_other_rank != proof_of_other_rank(token, other, hello));
  }
  CHECK(are_equal(of_rank_0, of_rank_0));
  CHECK_FALSE(are_equal(of_rank_0, of_other_rank));
  CHECK_FALSE(are_equal(of_rank_0.substr(1), of_rank_0));
  CHECK_FALSE(are_equal("", of_rank_0));
  CHECK(*random_digits(kChallengeDigits) != *random_digits(kChallengeDigits));
}

// The words of an error that no later attempt can mend.
std::string refusal_of(const std::string& file) {
  const auto made = dial(file, now_ns() + 60 * kNsPerSec);
  REQUIRE_FALSE(made);
  CHECK(made.error().code == Errc::kDenied);
  return made.error().text;
}

TEST_CASE("meeting: a file that another user could have written does not count",
          "[tools][meeting]") {
  const Meeting meeting;
  const auto write = [&meeting](const std::string& text) {
    std::ofstream(meeting.file()) << text;
    REQUIRE(::chmod(meeting.file().c_str(), 0600) == 0);
  };
  // Port 1 of this host: nothing listens there, which is another error.
  write("127.0.0.1:1 0123456789abcdef\n");
  const auto good = dial(meeting.file(), now_ns() + 60 * kNsPerSec);
  REQUIRE_FALSE(good);
  CHECK(good.error().text.find("cannot reach rank 0 at 127.0.0.1:1") == 0);
  for (const mode_t mode : {0640U, 0620U, 0604U, 0602U, 0644U}) {
    REQUIRE(::chmod(meeting.file().c_str(), mode) == 0);
    CHECK(refusal_of(meeting.file()).find("is open to other users") != std::string::npos);
  }
  REQUIRE(::chmod(meeting.file().c_str(), 0600) == 0);
  const std::string link = meeting.file() + "-link";
  fs::create_symlink(meeting.file(), link);
  CHECK(refusal_of(link).find("is a symbolic link") != std::string::npos);
  const std::string pipe = meeting.file() + "-pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal_of(pipe).find("is no regular file") != std::string::npos);
  write(std::string(5000, 'x'));
  CHECK(refusal_of(meeting.file()).find("is longer than") != std::string::npos);
  // Root gives its file away; anybody else takes one of root's.
  write("127.0.0.1:1 0123456789abcdef\n");
  const bool is_root = ::chown(meeting.file().c_str(), 65534, 65534) == 0;
  CHECK(refusal_of(is_root ? meeting.file() : "/etc/passwd").find("belongs to user") !=
        std::string::npos);
}

TEST_CASE("meeting: at HOST:PORT there must be a token", "[tools][meeting]") {
  ::unsetenv(kRendezvousTokenVariable);
  CHECK(check_rendezvous("no-port"));
  for (const char* const token : {"", "0123456789abcde"}) {
    ::setenv(kRendezvousTokenVariable, token, 1);
    const Outcome<bool> checked = check_rendezvous("127.0.0.1:7000");
    REQUIRE_FALSE(checked);
    CHECK(checked.error().text.find("export BEELINE_RENDEZVOUS_TOKEN=") != std::string::npos);
    CHECK_FALSE(RendezvousListener::open("127.0.0.1:7000"));
    CHECK_FALSE(dial("127.0.0.1:7000", now_ns() + 60 * kNsPerSec));
  }
  ::setenv(kRendezvousTokenVariable, "0123456789abcdef", 1);
  CHECK(check_rendezvous("127.0.0.1:7000"));
  RendezvousListener listener = opened("127.0.0.1:0");
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  ::getsockname(listener.fd(), reinterpret_cast<sockaddr*>(&bound), &length);
  const std::string where = "127.0.0.1:" + std::to_string(ntohs(bound.sin_port));
  const auto joined = std::async(std::launch::async, [&where] {
    return join("perf", where, Hello{.rank = 1, .about = "the terms"}, 60);
  });
  Admission admission({.command = "perf", .rendezvous = where}, std::move(listener));
  const auto ranks = admission.gather();
  REQUIRE(ranks);
  CHECK(ranks->at(1).about == "the terms");
  ::unsetenv(kRendezvousTokenVariable);
}

TEST_CASE("meeting: a rank tells nothing to a process without the token", "[tools][meeting]") {
  const Meeting meeting;
  const RendezvousListener impostor = opened(meeting.file());
  const auto joined = std::async(std::launch::async, [&meeting] {
    return join("perf", meeting.file(), Hello{.rank = 1, .about = "the terms"}, 1);
  });
  // The first attempt, to which rank 0 without the token answers with what it was sent.
  UniqueFd fd;
  while (!fd) fd = UniqueFd(::accept(impostor.fd(), nullptr, nullptr));
  LineStream stream(std::move(fd));
  const Outcome<std::string> challenge = stream.receive(now_ns() + 60 * kNsPerSec);
  REQUIRE(challenge);
  CHECK(challenge->size() == kChallengeDigits);
  CHECK(stream.send(*challenge + *challenge));
  const Outcome<std::string> more = stream.receive(now_ns() + 60 * kNsPerSec);
  REQUIRE_FALSE(more);
  CHECK(more.error().text == "has ended");
}

}  // namespace
}  // namespace beeline::ranks
