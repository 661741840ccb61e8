// SPDX-License-Identifier: Apache-2.0
//
// Registration: refusals, other base addresses, and keys of deregistered regions.
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

Refusal try_register(ibv_pd* pd, void* addr, std::size_t length, int access) {
  errno = 0;
  MrPtr mr(ibv_reg_mr(pd, addr, length, access));
  return {std::move(mr), errno};
}

}  // namespace

TEST_CASE("register: memory that is not mapped is EFAULT", "[softnic][register]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Pages pages(4 * page);

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
}

TEST_CASE("register: a region with an iova is addressed by it", "[softnic][register]") {
  const std::uint64_t iova = GENERATE(std::uint64_t{0}, std::uint64_t{0x1234'5678'9000});
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
  // The end is the iova plus the length; the address of the memory is not a valid address.
  Region outside{iova + 4096 - 99, 100, 0, b_mr->rkey};
  if (iova != 0) outside.addr = reinterpret_cast<std::uint64_t>(b_bytes.data());
  REQUIRE(post(pair.a.qp, write_work(local, outside, 2)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("register: data that arrives in shared memory is visible in all its mappings",
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
  const Region to{reinterpret_cast<std::uint64_t>(here.data()), 8192, mr->lkey, mr->rkey};
  REQUIRE(post(pair.a.qp, write_work(from.all(), to, 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(has_pattern({there.data(), 8192}, 1));
}

TEST_CASE("register: a new region does not revive an old key", "[softnic][register]") {
  Pair pair;
  Buffer local = pair.a.buffer(64);
  std::vector<std::uint8_t> bytes(64);
  std::set<std::uint32_t> recent;
  Region old{reinterpret_cast<std::uint64_t>(bytes.data()), 64, 0, 0};
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
