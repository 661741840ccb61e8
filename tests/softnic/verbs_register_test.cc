// SPDX-License-Identifier: Apache-2.0
//
// Registering and deregistering: what is refused, other base addresses, and keys after their death.
#include <unistd.h>

#include <set>

#include "tests/support/pages.h"
#include "tests/support/verbs_fixture.h"

using namespace beeline::test;

namespace {

struct Refusal {
  MrPtr mr;
  int error;
};

Refusal try_register(ibv_pd* pd, void* addr, size_t length, int access) {
  errno = 0;
  MrPtr mr(ibv_reg_mr(pd, addr, length, access));
  return {std::move(mr), errno};
}

}  // namespace

TEST_CASE("register: a region says what it is", "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  std::vector<uint8_t> bytes(777);
  const int access = IBV_ACCESS_LOCAL_WRITE;
  const MrPtr mr(ibv_reg_mr(nic.pd.get(), bytes.data(), bytes.size(), access));
  REQUIRE(mr != nullptr);
  CHECK(mr->context == nic.context.get());
  CHECK(mr->pd == nic.pd.get());
  CHECK(mr->addr == bytes.data());
  CHECK(mr->length == bytes.size());
  CHECK(mr->lkey != 0);
}

TEST_CASE("register: remote write or atomic without local write is EINVAL", "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  uint8_t byte = 0;
  const int access = GENERATE(int{IBV_ACCESS_REMOTE_WRITE}, int{IBV_ACCESS_REMOTE_ATOMIC},
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  const Refusal refusal = try_register(nic.pd.get(), &byte, 1, access);
  CHECK(refusal.mr == nullptr);
  CHECK(refusal.error == EINVAL);
}

TEST_CASE("register: memory that is not there is EFAULT", "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const Pages pages(4 * page);

  SECTION("none of it") {
    pages.unmap(0, 4 * page);
    const Refusal refusal = try_register(nic.pd.get(), pages.data(), page, kAllAccess);
    CHECK(refusal.mr == nullptr);
    CHECK(refusal.error == EFAULT);
  }
  SECTION("the last byte") {
    pages.unmap(3 * page, page);
    CHECK(try_register(nic.pd.get(), pages.data(), 3 * page, kAllAccess).mr != nullptr);
    const Refusal refusal = try_register(nic.pd.get(), pages.data(), 3 * page + 1, kAllAccess);
    CHECK(refusal.mr == nullptr);
    CHECK(refusal.error == EFAULT);
  }
  SECTION("a hole") {
    pages.unmap(page, page);
    const Refusal refusal = try_register(nic.pd.get(), pages.data(), 3 * page, kAllAccess);
    CHECK(refusal.mr == nullptr);
    CHECK(refusal.error == EFAULT);
  }
  SECTION("the null page") {
    const Refusal refusal = try_register(nic.pd.get(), nullptr, page, kAllAccess);
    CHECK(refusal.mr == nullptr);
    CHECK(refusal.error == EFAULT);
  }
  SECTION("around the end of the address space") {
    CHECK(try_register(nic.pd.get(), pages.data(), ~size_t{0} - 100, kAllAccess).mr == nullptr);
  }
}

TEST_CASE("register: read-only memory can be read from but not opened for writing",
          "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const Pages pages(4096, PROT_READ);
  CHECK(try_register(nic.pd.get(), pages.data(), 4096, IBV_ACCESS_REMOTE_READ).mr != nullptr);
  const Refusal refusal = try_register(nic.pd.get(), pages.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
  CHECK(refusal.mr == nullptr);
  CHECK(refusal.error == EFAULT);
}

TEST_CASE("register: with a base of its own a region is addressed by that", "[softnic][register]") {
  const uint64_t iova = GENERATE(uint64_t{0}, uint64_t{0x1234'5678'9000});
  Pair pair;
  Buffer a_bytes = pair.a.buffer(4096);
  Buffer b_bytes = pair.b.buffer(4096);
  a_bytes.fill(1);
  const MrPtr a_mr(ibv_reg_mr_iova2(pair.a.pd.get(), a_bytes.data(), 4096, iova, kAllAccess));
  const MrPtr b_mr(ibv_reg_mr_iova2(pair.b.pd.get(), b_bytes.data(), 4096, iova, kAllAccess));
  REQUIRE(a_mr != nullptr);
  REQUIRE(b_mr != nullptr);
  const Region local{iova + 10, 100, a_mr->lkey, a_mr->rkey};
  const Region remote{iova + 20, 100, b_mr->lkey, b_mr->rkey};
  REQUIRE(post(pair.a.qp, write_work(local, remote, 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(has_pattern(b_bytes.bytes(20, 100), 1, 10));
  CHECK(b_bytes.is_zero(0, 20));
  CHECK(b_bytes.is_zero(120, 4096 - 120));
  // The bound is the base plus the length, and the memory's own address means nothing.
  Region outside{iova + 4096 - 99, 100, 0, b_mr->rkey};
  if (iova != 0) outside.addr = reinterpret_cast<uint64_t>(b_bytes.data());
  REQUIRE(post(pair.a.qp, write_work(local, outside, 2)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("register: shared memory receives through one mapping what another shows",
          "[softnic][register]") {
  Pair pair;
  const beeline::UniqueFd file(memfd_create("shared", MFD_CLOEXEC));
  REQUIRE(ftruncate(file.get(), 8192) == 0);
  const Pages here(8192, PROT_READ | PROT_WRITE, file.get());
  const Pages there(8192, PROT_READ, file.get());
  Buffer from = pair.a.buffer(8192);
  from.fill(1);
  const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), here.data(), 8192, kAllAccess));
  REQUIRE(mr != nullptr);
  const Region to{reinterpret_cast<uint64_t>(here.data()), 8192, mr->lkey, mr->rkey};
  REQUIRE(post(pair.a.qp, write_work(from.all(), to, 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(has_pattern({there.data(), 8192}, 1));
}

TEST_CASE("register: relaxed ordering is accepted as a hint", "[softnic][register]") {
  Pair pair;
  Buffer from = pair.a.buffer(64, kAllAccess | IBV_ACCESS_RELAXED_ORDERING);
  Buffer into = pair.b.buffer(64, kAllAccess | IBV_ACCESS_RELAXED_ORDERING);
  from.fill(1);
  REQUIRE(post(pair.a.qp, write_work(from.all(), into.all(), 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(into.has(1));
}

TEST_CASE("register: a deregistered key no longer works", "[softnic][register]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  Buffer remote = pair.b.buffer(64);
  local.fill(1);
  const Region old_local = local.all();
  const Region old_remote = remote.all();
  SECTION("rkey") {
    remote.deregister();
    REQUIRE(post(pair.a.qp, write_work(old_local, old_remote)) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
    CHECK(remote.is_zero(0, 64));
  }
  SECTION("lkey") {
    local.deregister();
    REQUIRE(post(pair.a.qp, write_work(old_local, old_remote)) == 0);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_LOC_PROT_ERR);
    CHECK(remote.is_zero(0, 64));
  }
  SECTION("lkey of a receive that is posted already") {
    REQUIRE(post(pair.b.qp, recv_work(old_remote)) == 0);
    remote.deregister();
    REQUIRE(post(pair.a.qp, send_work(old_local)) == 0);
    CHECK(poll_one(pair.b.recv_cq.get()).status == IBV_WC_LOC_PROT_ERR);
    CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_OP_ERR);
    CHECK(remote.is_zero(0, 64));
  }
}

TEST_CASE("register: a new region does not revive an old key", "[softnic][register]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  std::vector<uint8_t> bytes(64);
  std::set<uint32_t> recent;
  Region old{reinterpret_cast<uint64_t>(bytes.data()), 64, 0, 0};
  for (int i = 0; i < 100; ++i) {
    const MrPtr mr(ibv_reg_mr(pair.b.pd.get(), bytes.data(), bytes.size(), kAllAccess));
    REQUIRE(mr != nullptr);
    CHECK(recent.insert(mr->rkey).second);
    if (i == 0) old.rkey = mr->rkey;
  }
  const MrPtr living(ibv_reg_mr(pair.b.pd.get(), bytes.data(), bytes.size(), kAllAccess));
  REQUIRE(post(pair.a.qp, write_work(local.all(), old)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("register: no bytes are EINVAL", "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  uint8_t byte = 0;
  const Refusal refusal = try_register(nic.pd.get(), &byte, 0, kAllAccess);
  CHECK(refusal.mr == nullptr);
  CHECK(refusal.error == EINVAL);
}
