// SPDX-License-Identifier: Apache-2.0
//
// Memory regions: bounds to the byte, access rights and protection domains.
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

constexpr std::uint32_t kLen = 5000;  // more than a page, but not a multiple

// A place relative to a registered region of kLen bytes.
struct Place {
  const char* what;
  std::int64_t offset;
  std::uint32_t length;
  bool inside;
};

const std::initializer_list<Place> kPlaces = {
    {"all of it", 0, kLen, true},
    {"first byte", 0, 1, true},
    {"last byte", kLen - 1, 1, true},
    {"one byte before", -1, 1, false},
    {"one byte behind", kLen, 1, false},
    {"all and one before", -1, kLen + 1, false},
    {"all and one behind", 0, kLen + 1, false},
    {"the end and one behind", kLen - 8, 9, false},
    {"far before", -(std::int64_t{1} << 40), 8, false},
    {"far behind", std::int64_t{1} << 40, 8, false},
};

enum class Operation { kWrite, kRead, kWriteImm };

SendWork make(Operation operation, const Region& local, const Region& remote) {
  switch (operation) {
    case Operation::kWrite: return write_work(local, remote, 1);
    case Operation::kRead: return read_work(local, remote, 1);
    case Operation::kWriteImm: break;
  }
  return write_imm_work(local, remote, 7, 1);
}

}  // namespace

TEST_CASE("memory: remote access is bounded to the byte", "[softnic][memory]") {
  const Place place = GENERATE(values<Place>(kPlaces));
  const Operation operation = GENERATE(Operation::kWrite, Operation::kRead, Operation::kWriteImm);
  INFO(place.what << ", operation " << static_cast<int>(operation));
  Pair pair;
  Buffer local = pair.a.buffer(kLen + 16);
  Buffer remote = pair.b.buffer(kLen);
  local.fill(1);
  remote.fill(2);
  REQUIRE(post(pair.b.qp, RecvWork{.wr_id = 9}) == 0);
  REQUIRE(post(pair.a.qp, make(operation, local.part(0, place.length),
                               remote.all().moved(place.offset, place.length))) == 0);
  const ibv_wc wc = poll_one(pair.a.send_cq.get());
  CHECK(wc.status == (place.inside ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR));
  CHECK(remote.guards_intact());
  if (!place.inside) {
    CHECK(local.has(1));   // no byte was read out
    CHECK(remote.has(2));  // and none was written
  } else {
    const auto at = static_cast<std::size_t>(place.offset);
    const bool reading = operation == Operation::kRead;
    CHECK(has_pattern((reading ? local.bytes(0, place.length) : remote.bytes(at, place.length)),
                      reading ? 2 : 1, reading ? at : 0));
  }
}

TEST_CASE("memory: local reads are bounded to the byte", "[softnic][memory]") {
  const Place place = GENERATE(values<Place>(kPlaces));
  const Operation operation = GENERATE(Operation::kWrite, Operation::kRead);
  INFO(place.what << ", operation " << static_cast<int>(operation));
  Pair pair;
  Buffer local = pair.a.buffer(kLen);
  Buffer remote = pair.b.buffer(kLen + 16);
  local.fill(1);
  remote.fill(2);
  REQUIRE(post(pair.a.qp, make(operation, local.all().moved(place.offset, place.length),
                               remote.part(0, place.length))) == 0);
  const ibv_wc wc = poll_one(pair.a.send_cq.get());
  CHECK(wc.status == (place.inside ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR));
  CHECK(local.guards_intact());
  if (!place.inside) {
    CHECK(local.has(1));
    CHECK(state_of(pair.b.qp) == IBV_QPS_RTS);  // the peer is not affected
  }
}

TEST_CASE("memory: received data is bounded to the byte", "[softnic][memory]") {
  const Place place = GENERATE(values<Place>(kPlaces));
  INFO(place.what);
  Pair pair;
  Buffer from = pair.a.buffer(kLen + 16);
  Buffer into = pair.b.buffer(kLen);
  from.fill(1);
  REQUIRE(post(pair.b.qp, recv_work(into.all().moved(place.offset, place.length), 5)) == 0);
  REQUIRE(post(pair.a.qp, send_work(from.part(0, place.length), 6)) == 0);
  const ibv_wc received = poll_one(pair.b.recv_cq.get());
  const ibv_wc sent = poll_one(pair.a.send_cq.get());
  CHECK(received.wr_id == 5);
  CHECK(received.status == (place.inside ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR));
  CHECK(sent.status == (place.inside ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR));
  CHECK(into.guards_intact());
  if (!place.inside) CHECK(into.is_zero(0, kLen));
}

TEST_CASE("memory: each access right allows its operations and no others", "[softnic][memory]") {
  struct Case {
    Operation operation;
    int local;   // rights of the requester's memory
    int remote;  // and of the responder's
    ibv_wc_status status;
  };
  constexpr int kLocal = IBV_ACCESS_LOCAL_WRITE;
  constexpr int kWrite = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  constexpr int kRead = IBV_ACCESS_REMOTE_READ;
  const Case c = GENERATE_COPY(values<Case>({
      {Operation::kWrite, 0, kWrite, IBV_WC_SUCCESS},
      {Operation::kWriteImm, 0, kWrite, IBV_WC_SUCCESS},
      {Operation::kRead, kLocal, kRead, IBV_WC_SUCCESS},
      {Operation::kWrite, kAllAccess, kLocal, IBV_WC_REM_ACCESS_ERR},
      {Operation::kWrite, kAllAccess, kLocal | kRead, IBV_WC_REM_ACCESS_ERR},
      {Operation::kWriteImm, kAllAccess, kLocal | kRead, IBV_WC_REM_ACCESS_ERR},
      {Operation::kRead, kAllAccess, kWrite, IBV_WC_REM_ACCESS_ERR},
      {Operation::kRead, kAllAccess, 0, IBV_WC_REM_ACCESS_ERR},
      {Operation::kRead, kRead, kAllAccess, IBV_WC_LOC_PROT_ERR},
      {Operation::kRead, 0, kAllAccess, IBV_WC_LOC_PROT_ERR},
  }));
  INFO("operation " << static_cast<int>(c.operation) << ", local rights " << c.local
                    << ", remote rights " << c.remote);
  Pair pair;
  Buffer local = pair.a.buffer(64, c.local);
  Buffer remote = pair.b.buffer(64, c.remote);
  local.fill(1);
  remote.fill(2);
  REQUIRE(post(pair.b.qp, RecvWork{}) == 0);
  REQUIRE(post(pair.a.qp, make(c.operation, local.all(), remote.all())) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == c.status);
  const bool moved = c.status == IBV_WC_SUCCESS;
  CHECK(local.has(moved && c.operation == Operation::kRead ? 2 : 1));
  CHECK(remote.has(moved && c.operation != Operation::kRead ? 1 : 2));
}

TEST_CASE("memory: a key of another protection domain is invalid", "[softnic][memory]") {
  Pair pair;
  Buffer own_a = pair.a.buffer(64);
  Buffer own_b = pair.b.buffer(64);

  SECTION("remote") {
    const PdPtr other(ibv_alloc_pd(pair.b.context.get()));
    Buffer foreign(other.get(), 64);
    REQUIRE(post(pair.a.qp, write_work(own_a.all(), foreign.all())) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("remote, of the requester's own device") {
    Buffer foreign = pair.a.buffer(64);
    REQUIRE(post(pair.a.qp, write_work(own_a.all(), foreign.all())) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
  }
  SECTION("local") {
    const PdPtr other(ibv_alloc_pd(pair.a.context.get()));
    Buffer foreign(other.get(), 64);
    REQUIRE(post(pair.a.qp, write_work(foreign.all(), own_b.all())) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_LOC_PROT_ERR);
  }
  SECTION("local, of another device") {
    REQUIRE(post(pair.a.qp, send_work(own_b.all())) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_LOC_PROT_ERR);
  }
  SECTION("receive") {
    const PdPtr other(ibv_alloc_pd(pair.b.context.get()));
    Buffer foreign(other.get(), 64);
    REQUIRE(post(pair.b.qp, recv_work(foreign.all())) == 0);
    REQUIRE(post(pair.a.qp, send_work(own_a.all())) == 0);
    CHECK(poll_one(pair.b.recv_cq.get()).status == IBV_WC_LOC_PROT_ERR);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_OP_ERR);
  }
}
