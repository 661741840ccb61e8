// SPDX-License-Identifier: Apache-2.0
//
// Tests of the rendezvous of ranks: its file, and the connections to rank 0.
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp
#include <unistd.h>

#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "tests/support/catch.h"
#include "tools/perf/admission.h"
#include "tools/perf/json.h"
#include "tools/perf/rendezvous_socket.h"

namespace beeline::perf {
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

TEST_CASE("meeting: a run removes its own file, not that of a later run", "[tools][meeting]") {
  const Meeting meeting;
  std::optional<RendezvousListener> first = opened(meeting.file());
  std::optional<RendezvousListener> second = opened(meeting.file());
  first.reset();
  CHECK(dialled(meeting.file()).token == second->token());
  second.reset();
  CHECK_FALSE(fs::exists(meeting.file()));
}

TEST_CASE("meeting: ranks may all connect before the first of them speaks", "[tools][meeting]") {
  const Meeting meeting;
  Options options;
  options.ranks = 80;
  options.timeout_seconds = 60;
  options.rendezvous = meeting.file();
  RendezvousListener listener = opened(meeting.file());
  std::vector<FrameSocket> sockets;
  std::string token;
  for (int rank = 1; rank < options.ranks; ++rank) {
    RendezvousConnection made = dialled(meeting.file());
    token = made.token;
    sockets.emplace_back(std::move(made.fd));
  }
  FrameSocket stranger(dialled(meeting.file()).fd);
  Admission admission(options, std::move(listener));
  auto members = std::async(std::launch::async, [&admission] { return admission.gather(); });
  // Connections are accepted in order, so once the last is refused, all are.
  stranger.send(FrameKind::kStatus, "{}");
  CHECK_FALSE(stranger.receive());
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    options.rank = static_cast<int>(i) + 1;
    CHECK(sockets[i].send(FrameKind::kHello, encode_hello(options, token)));
  }
  CHECK(members.get());
}

}  // namespace
}  // namespace beeline::perf
