// SPDX-License-Identifier: Apache-2.0
//
// Messages whose lists of paths do not fit. The listener has one rail, and the peer asks for two
// queue pairs on it, so that the comm has the paths 0 and 1.
#include "tests/plugin/component/connect_listener_rig.h"

using namespace beeline;
using namespace beeline::test;

namespace {

struct TwoPathRig : ListenerRig {
  TwoPathRig() : connect(connect_of_real_peer()), client(handle_of(ticket)) {
    connect.counts.qps_per_rail = 2;
    connect.paths.push_back(connect.paths[0]);
    connect.paths[1].number = 1;
    client.introduce(hello_for(handle_of(ticket)));
  }

  // The listener's number of the comm, of which it has these paths.
  std::uint32_t be_accepted(std::size_t paths) {
    client.send(wire::encode(connect));
    const auto accept = client.receive_message<wire::Accept>();
    BL_MUST(accept.paths.size() == paths && accept.missing.size() == 2 - paths);
    return accept.our_comm;
  }

  // The listener's sentence, which is also in its log. accept() fails: this peer has been invited.
  std::string refusal() {
    const auto reject = client.receive_message<wire::Reject>();
    CHECK(log.count(reject.text) == 1);
    wait_for([&] { return !a.accept(listener); }, "an accept that fails");
    return reject.text;
  }

  wire::Connect connect;
  RawPeer client;
};

bool ends_with(const std::string& text, const std::string& end) {
  INFO(text);
  CHECK(text.ends_with(end));
  return text.ends_with(end);
}

}  // namespace

TEST_CASE("hostile: a CONNECT whose paths do not fit the listener is refused",
          "[component][connect]") {
  TwoPathRig rig;
  std::string end;
  SECTION("too few") {
    rig.connect.paths.pop_back();
    end = "it names 1 path instead of 2";
  }
  SECTION("too many") {
    rig.connect.missing = {{.number = 7, .why = "down"}};
    end = "it names 3 paths instead of 2";
  }
  SECTION("a number too large") {
    rig.connect.paths[1].number = 2;
    end = "it names path 2, and the last one is path 1";
  }
  SECTION("a missing one with a number too large") {
    rig.connect.paths.pop_back();
    rig.connect.missing = {{.number = 5, .why = "down"}};
    end = "it names path 5, and the last one is path 1";
  }
  rig.client.send(wire::encode(rig.connect));
  CHECK(ends_with(rig.refusal(), end));
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a READY whose paths do not fit is refused", "[component][connect]") {
  TwoPathRig rig;
  const std::uint32_t comm = rig.be_accepted(2);
  wire::Ready ready{.comm = comm, .paths = {0, 1}};
  std::string end;
  SECTION("too few") {
    ready.paths = {1};
    end = "it names 1 path instead of 2";
  }
  SECTION("too many") {
    ready.missing = {{.number = 2, .why = "down"}};
    end = "it names 3 paths instead of 2";
  }
  SECTION("a number too large") {
    ready.paths = {0, 6};
    end = "it names path 6, and the last one is path 1";
  }
  rig.client.send(wire::encode(ready));
  CHECK(ends_with(rig.refusal(), end));
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: a READY with a path that this end could not make is refused",
          "[component][connect]") {
  TwoPathRig rig;
  rig.connect.paths[1].pkeys.clear();
  const std::uint32_t comm = rig.be_accepted(1);
  rig.client.send(wire::encode(wire::Ready{.comm = comm, .paths = {0, 1}}));
  CHECK(rig.refusal().find("it has path 1, which this end could not make: no partition") !=
        std::string::npos);
  rig.must_accept_real_peer();
}

TEST_CASE("hostile: the paths that a READY leaves out are destroyed", "[component][connect]") {
  TwoPathRig rig;
  const std::uint32_t comm = rig.be_accepted(2);
  wire::Ready ready{.comm = comm, .paths = {1}};
  ready.missing = {{.number = 0, .why = "it was on fire"}};
  rig.client.send(wire::encode(ready));
  const ConnectionPtr made = rig.a.wait_accept(rig.listener);
  CHECK(made->paths.size() == 1);
  CHECK(rig.log.has(" over 1 of 2 paths, qp "));
  CHECK(rig.log.has("path 0 (it was on fire)"));
  rig.must_accept_real_peer();
}
