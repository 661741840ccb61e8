// SPDX-License-Identifier: Apache-2.0
//
// Addresses and partitions that change while a program still uses the old ones.
#include "tests/beds/softnic/fault_data.h"

using namespace beeline::test;

namespace {

constexpr std::size_t kSize = 4096;
const char* const kNewGid = "gid=3:::ffff:192.0.2.77";

struct Scene {
  Scene()
      : pair({.clock_scale = kFastClock, .wire = kImpatientWire}),
        from(pair.a.buffer(kSize)),
        into(pair.b.buffer(kSize)) {
    from.fill(1);
  }

  ibv_wc_status write_once() {
    BL_MUST_OK(post(pair.a.qp, write_work(from.all(), into.all(), 1)));
    return poll_one(pair.a.send_cq.get()).status;
  }
  void connect_to(const QpAddress& address_b) {
    connect(pair.a.qp, address_b, kImpatientWire);
    connect(pair.b.qp, address_of(pair.a.qp), kImpatientWire);
  }

  Pair pair;
  Buffer from;
  Buffer into;
};

// Reconnects to the address that worked before.
bool naive_remembers_the_gid(Scene& scene, const QpAddress& remembered) {
  scene.connect_to(remembered);
  return scene.write_once() == IBV_WC_SUCCESS;
}

// Queries the address each time.
bool careful_asks_for_the_gid(Scene& scene) {
  scene.connect_to(address_of(scene.pair.b.qp));
  return scene.write_once() == IBV_WC_SUCCESS && scene.into.has(1);
}

std::uint16_t pkey_of(ibv_context* context) {
  __be16 pkey = 0;
  BL_MUST_OK(ibv_query_pkey(context, 1, 0, &pkey));
  return be16toh(pkey);
}

// Assumes that the first entry of the table is usable.
bool naive_takes_the_first_pkey(Scene& scene) {
  connect_both(scene.pair.a.qp, scene.pair.b.qp, kImpatientWire);
  return scene.write_once() == IBV_WC_SUCCESS;
}

// Both ends exchange their keys and so know whether they can connect.
bool careful_compares_pkeys(Scene& scene) {
  const std::uint16_t ours = pkey_of(scene.pair.a.context.get());
  const std::uint16_t theirs = pkey_of(scene.pair.b.context.get());
  const bool may_talk = (ours & 0x7fff) == (theirs & 0x7fff) && ((ours | theirs) & 0x8000) != 0;
  if (!may_talk) return true;  // it fails at once instead of waiting for a timeout
  return naive_takes_the_first_pkey(scene);
}

}  // namespace

TEST_CASE("address: a GID that has changed must be queried again", "[softnic][address]") {
  Scene scene;
  const QpAddress before = address_of(scene.pair.b.qp);
  CHECK(scene.write_once() == IBV_WC_SUCCESS);
  scene.pair.fabric.command("h0/softnic1", kNewGid);
  CHECK(scene.write_once() == IBV_WC_RETRY_EXC_ERR);  // the existing connection
  CHECK_FALSE(naive_remembers_the_gid(scene, before));
  CHECK(careful_asks_for_the_gid(scene));
}

TEST_CASE("address: a sender whose own GID has changed gets no answer", "[softnic][address]") {
  Scene scene;
  scene.pair.fabric.command("h0/softnic0", kNewGid);
  CHECK(scene.write_once() == IBV_WC_RETRY_EXC_ERR);
  CHECK(careful_asks_for_the_gid(scene));
}

TEST_CASE("address: ports of different partitions do not reach each other", "[softnic][address]") {
  Scene scene;
  scene.pair.fabric.command("h0/softnic1", "pkey=0x8005");
  CHECK(scene.write_once() == IBV_WC_RETRY_EXC_ERR);  // the connection that was there
  CHECK_FALSE(naive_takes_the_first_pkey(scene));
  CHECK(careful_compares_pkeys(scene));
  scene.pair.fabric.command("h0/softnic0", "pkey=0x8005");
  CHECK(careful_compares_pkeys(scene));
  CHECK(scene.into.has(1));
}

TEST_CASE("address: limited members of a partition reach full members only", "[softnic][address]") {
  struct Keys {
    const char* ours;
    const char* theirs;
    bool talk;
  };
  const Keys keys = GENERATE(values<Keys>({{"0x0005", "0x0005", false},
                                           {"0x8005", "0x0005", true},
                                           {"0x0005", "0x8005", true},
                                           {"0x8005", "0x8006", false}}));
  INFO(keys.ours << " and " << keys.theirs);
  Scene scene;
  scene.pair.fabric.command("h0/softnic0", std::string("pkey=") + keys.ours);
  scene.pair.fabric.command("h0/softnic1", std::string("pkey=") + keys.theirs);
  CHECK((scene.write_once() == IBV_WC_SUCCESS) == keys.talk);
}
