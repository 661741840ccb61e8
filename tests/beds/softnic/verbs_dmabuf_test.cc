// SPDX-License-Identifier: Apache-2.0
//
// Memory that is registered by a dma-buf descriptor, as GPU memory is. Data that a device writes is
// visible in every mapping of the descriptor.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/support/peer_group.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr std::size_t kSize = 64u << 10;
constexpr std::size_t kPage = 4096;
constexpr std::uint64_t kIova = 0x7000'0000'0000;
constexpr Wire kDmabufWire{.access = kAtomicAccess};

// The memory of a descriptor, registered from an offset on.
struct Exported {
  Exported(ibv_pd* pd, std::size_t offset, std::size_t length, std::uint64_t iova,
           int access = kAtomicAccess)
      : fd(make_memfd(kSize)),
        from(offset),
        mr(ibv_reg_dmabuf_mr(pd, offset, length, iova, fd.get(), access)) {
    BL_MUST(mr != nullptr);
    region = {iova, static_cast<std::uint32_t>(length), mr->lkey, mr->rkey};
  }

  // As the descriptor shows it, at an offset from where the registration begins.
  std::vector<std::uint8_t> look(std::size_t at, std::size_t length) const {
    std::vector<std::uint8_t> bytes(length);
    BL_MUST(pread(fd.get(), bytes.data(), length, static_cast<off_t>(from + at)) ==
            static_cast<ssize_t>(length));
    return bytes;
  }
  void put(std::size_t at, const std::vector<std::uint8_t>& bytes) const {
    BL_MUST(pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(from + at)) ==
            static_cast<ssize_t>(bytes.size()));
  }
  Region part(std::size_t at, std::size_t length) const {
    return region.moved(static_cast<std::int64_t>(at), static_cast<std::uint32_t>(length));
  }

  UniqueFd fd;
  std::size_t from;
  MrPtr mr;
  Region region;
};

std::vector<std::uint8_t> pattern(std::size_t length, std::uint32_t seed) {
  std::vector<std::uint8_t> bytes(length);
  fill_pattern(bytes, seed);
  return bytes;
}

bool is_zero(const std::vector<std::uint8_t>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

TEST_CASE("dmabuf: all operations work on the memory of a descriptor", "[softnic][dmabuf]") {
  // Not at the start of a page, because drivers export allocations and not pages.
  const std::size_t offset =
      GENERATE(std::size_t{0}, std::size_t{2} * kPage, kPage + 904, std::size_t{8});
  Pair pair({.wire = kDmabufWire});
  const Exported there(pair.b.pd.get(), offset, 3 * kPage, kIova + offset % kPage);
  Buffer here = pair.a.buffer(2 * kPage);
  here.fill(1);
  SECTION("WRITE") {
    REQUIRE(post(pair.a.qp, write_work(here.all(), there.part(1000, 2 * kPage), 1)) == 0);
    must_complete(pair.a.send_cq.get(), 1);
    CHECK(has_pattern(there.look(1000, 2 * kPage), 1));
    CHECK(is_zero(there.look(0, 1000)));
    CHECK(is_zero(there.look(1000 + 2 * kPage, 96)));
  }
  SECTION("READ") {
    there.put(500, pattern(2 * kPage, 2));
    REQUIRE(post(pair.a.qp, read_work(here.all(), there.part(500, 2 * kPage), 1)) == 0);
    must_complete(pair.a.send_cq.get(), 1);
    CHECK(here.has(2));
  }
  SECTION("SEND into it") {
    REQUIRE(post(pair.b.qp, recv_work(there.part(8, 3 * kPage - 8), 5)) == 0);
    REQUIRE(post(pair.a.qp, send_work(here.all(), 1)) == 0);
    must_complete(pair.b.recv_cq.get(), 5);
    CHECK(has_pattern(there.look(8, 2 * kPage), 1));
  }
  SECTION("SEND out of it") {
    there.put(16, pattern(2 * kPage, 3));
    REQUIRE(post(pair.a.qp, recv_work(here.all(), 5)) == 0);
    REQUIRE(post(pair.b.qp, send_work(there.part(16, 2 * kPage), 1)) == 0);
    must_complete(pair.a.recv_cq.get(), 5);
    CHECK(here.has(3));
  }
  SECTION("READ into it") {
    REQUIRE(post(pair.b.qp, read_work(there.part(24, 2 * kPage), here.all(), 1)) == 0);
    must_complete(pair.b.send_cq.get(), 1);
    CHECK(has_pattern(there.look(24, 2 * kPage), 1));
  }
  SECTION("atomics") {
    const std::uint64_t before = 40;
    std::vector<std::uint8_t> bytes(8);
    std::memcpy(bytes.data(), &before, 8);
    there.put(2 * kPage, bytes);
    REQUIRE(post(pair.a.qp, fetch_add(here.part(0, 8), there.part(2 * kPage, 8), 2, 1)) == 0);
    must_complete(pair.a.send_cq.get(), 1);
    CHECK(std::memcmp(here.data(), &before, 8) == 0);
    const auto after = there.look(2 * kPage, 8);
    CHECK(after[0] == 42);
  }
}

TEST_CASE("dmabuf: the end of the region is checked", "[softnic][dmabuf]") {
  Pair pair;
  const Exported there(pair.b.pd.get(), 100, 1000, kIova + 100);
  Buffer here = pair.a.buffer(16);
  here.fill(1);
  REQUIRE(post(pair.a.qp, write_work(here.all(), there.part(984, 16), 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(has_pattern(there.look(984, 16), 1));
  const std::int64_t by = GENERATE(985, -1, -100, 65000);
  const Region outside = there.region.moved(by, 16);
  REQUIRE(post(pair.a.qp, write_work(here.all(), outside, 2)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
  CHECK(is_zero(there.look(0, 984)));
  CHECK(is_zero(there.look(1000, 100)));
}

TEST_CASE("dmabuf: two registrations of one descriptor are the same memory", "[softnic][dmabuf]") {
  Pair pair;
  const Exported one(pair.b.pd.get(), 0, 2 * kPage, kIova);
  const MrPtr two(ibv_reg_dmabuf_mr(pair.a.pd.get(), kPage, kPage, 0, one.fd.get(), kAllAccess));
  REQUIRE(two != nullptr);
  one.put(kPage, pattern(64, 1));
  const Region from{0, 64, two->lkey, two->rkey};  // an iova of 0 is valid
  REQUIRE(post(pair.a.qp, write_work(from, one.part(0, 64), 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(has_pattern(one.look(0, 64), 1));
}

TEST_CASE("dmabuf: address and offset must have the same offset in a page", "[softnic][dmabuf]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const UniqueFd fd = make_memfd(kSize);
  const auto [offset, iova] = GENERATE(table<std::uint64_t, std::uint64_t>(
      {{0, kIova + 1}, {8, kIova}, {kPage + 8, kIova + 16}, {100, kIova + kPage - 100}}));
  errno = 0;
  const MrPtr mr(ibv_reg_dmabuf_mr(nic.pd.get(), offset, 100, iova, fd.get(), kAllAccess));
  CHECK(mr == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("dmabuf: a range outside of the descriptor cannot be registered", "[softnic][dmabuf]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const UniqueFd fd = make_memfd(kSize);
  // The last byte is in, so that it is the length that is refused below.
  CHECK(MrPtr(ibv_reg_dmabuf_mr(nic.pd.get(), 0, kSize, kIova, fd.get(), kAllAccess)) != nullptr);
  CHECK(MrPtr(ibv_reg_dmabuf_mr(nic.pd.get(), kSize - 8, 8, kSize - 8, fd.get(), kAllAccess)) !=
        nullptr);
  const auto [offset, length] = GENERATE(table<std::uint64_t, std::size_t>(
      {{0, kSize + 1},
       {kPage, kSize},
       {kSize, 1},
       {kSize - 1, 2},
       {0, 0},
       {kPage, ~std::size_t{0} - kPage + 1},  // the end is at 0 again
       {~std::uint64_t{0} - kPage + 1, 2 * kPage}}));
  INFO(offset << " + " << length);
  errno = 0;
  const MrPtr mr(ibv_reg_dmabuf_mr(nic.pd.get(), offset, length, kIova + offset % kPage, fd.get(),
                                   kAllAccess));
  CHECK(mr == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE("dmabuf: a descriptor without memory cannot be registered", "[softnic][dmabuf]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  const auto try_fd = [&](int fd) {
    errno = 0;
    const MrPtr mr(ibv_reg_dmabuf_mr(nic.pd.get(), 0, 64, 0, fd, kAllAccess));
    return mr == nullptr ? errno : 0;
  };
  CHECK(try_fd(-1) == EBADF);
  CHECK(try_fd(9999) == EBADF);
  CHECK(try_fd(reader.get()) != 0);
  CHECK(try_fd(writer.get()) != 0);
}

TEST_CASE("dmabuf: rights are limited by the descriptor and by the caller", "[softnic][dmabuf]") {
  Pair pair;
  const UniqueFd whole = make_memfd(kSize);
  const std::string path = "/proc/self/fd/" + std::to_string(whole.get());
  const UniqueFd read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(read_only);
  const auto reg = [&](int fd, int access) {
    errno = 0;
    return MrPtr(ibv_reg_dmabuf_mr(pair.b.pd.get(), 0, kSize, 0, fd, access));
  };
  CHECK(reg(read_only.get(), IBV_ACCESS_LOCAL_WRITE) == nullptr);
  CHECK(errno != 0);
  CHECK(reg(read_only.get(), kAllAccess) == nullptr);
  CHECK(reg(whole.get(), IBV_ACCESS_REMOTE_WRITE) == nullptr);  // needs LOCAL_WRITE
  CHECK(errno == EINVAL);
  const auto bytes = pattern(64, 1);
  REQUIRE(pwrite(whole.get(), bytes.data(), 64, 0) == 64);
  const MrPtr mr = reg(read_only.get(), IBV_ACCESS_REMOTE_READ);
  REQUIRE(mr != nullptr);
  Buffer here = pair.a.buffer(64);
  const Region there{0, 64, mr->lkey, mr->rkey};
  REQUIRE(post(pair.a.qp, read_work(here.all(), there, 1)) == 0);
  must_complete(pair.a.send_cq.get(), 1);
  CHECK(here.has(1));
  REQUIRE(post(pair.a.qp, write_work(here.all(), there, 2)) == 0);
  CHECK(poll_one(pair.a.send_cq.get()).status == IBV_WC_REM_ACCESS_ERR);
}

TEST_CASE("dmabuf: registering and deregistering leave nothing behind", "[softnic][dmabuf]") {
  const TestFabric fabric;
  const Nic nic("softnic0");
  const UniqueFd fd = make_memfd(kSize);
  const UniqueFd before(dup(fd.get()));
  for (int i = 0; i < 2000; ++i) {
    const MrPtr mr(ibv_reg_dmabuf_mr(nic.pd.get(), 8, 64, 8, fd.get(), kAllAccess));
    REQUIRE(mr != nullptr);
  }
  const UniqueFd after(dup(fd.get()));
  CHECK(after.get() == before.get() + 1);  // no descriptor was kept
}

TEST_CASE("dmabuf: after a deregistration no byte of a running message arrives",
          "[softnic][dmabuf]") {
  constexpr std::size_t kBig = 4u << 20;
  bool cut = false;
  for (int round = 0; round < 8; ++round) {
    Pair pair({.clock_scale = 0.001, .wire = {.retry_cnt = 1}});
    const UniqueFd fd = make_memfd(kBig);
    auto* view = static_cast<std::uint8_t*>(
        mmap(nullptr, kBig, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    REQUIRE(view != MAP_FAILED);
    MrPtr mr(ibv_reg_dmabuf_mr(pair.b.pd.get(), 0, kBig, 0, fd.get(), kAllAccess));
    REQUIRE(mr != nullptr);
    Buffer from = pair.a.buffer(kBig);
    std::memset(from.data(), 0xFF, kBig);
    pair.fabric.command("h0/softnic0", "rate=100M");
    const Region there{0, kBig, mr->lkey, mr->rkey};
    REQUIRE(post(pair.a.qp, write_work(from.all(), there, 1)) == 0);
    wait_until([&] { return std::atomic_ref<std::uint8_t>(view[0]).load() == 0xFF; },
               "the message");
    mr.reset();
    std::memset(view, 0x5A, kBig);
    const ibv_wc_status status = poll_one(pair.a.send_cq.get()).status;
    // The message may have been complete before.
    CHECK((status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_SUCCESS));
    cut = cut || status == IBV_WC_REM_ACCESS_ERR;
    CHECK(std::all_of(view, view + kBig, [](std::uint8_t byte) { return byte == 0x5A; }));
    munmap(view, kBig);
  }
  CHECK(cut);
}

TEST_CASE("dmabuf: another process can write to it after the program has closed it",
          "[softnic][dmabuf]") {
  const PeerMode mode = GENERATE(from_range(peer_modes()));
  constexpr std::size_t kOffset = kPage + 904;
  const TestFabric fabric;
  run_peers(mode, {[](Peer& peer) {
                     Endpoint end("softnic0");
                     Buffer local = end.buffer(3 * kPage);
                     Buffer answer = end.buffer(8);
                     connect(end.qp, peer.exchange(address_of(end.qp)));
                     const auto there = peer.receive<Region>(1);
                     local.fill(1);
                     BL_MUST_OK(post(end.qp, write_work(local.all(), there, 1)));
                     must_complete(end.send_cq.get(), 1);
                     BL_MUST_OK(post(end.qp, read_work(local.all(), there, 2)));
                     must_complete(end.send_cq.get(), 2);
                     BL_MUST(local.has(1));
                     BL_MUST_OK(post(end.qp, fetch_add(answer.all(), there.moved(0, 8), 1, 3)));
                     must_complete(end.send_cq.get(), 3);
                     BL_MUST(std::memcmp(answer.data(), local.data(), 8) == 0);
                     local.fill(2);
                     BL_MUST_OK(post(end.qp, send_work(local.part(0, kPage), 4)));
                     must_complete(end.send_cq.get(), 4);
                     peer.meet();
                   },
                   [](Peer& peer) {
                     Endpoint end("softnic1");
                     UniqueFd fd = make_memfd(kSize);
                     void* view =
                         mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
                     BL_MUST(view != MAP_FAILED);
                     const std::uint64_t iova = kIova + kOffset % kPage;
                     const MrPtr mr(ibv_reg_dmabuf_mr(end.pd.get(), kOffset, 3 * kPage, iova,
                                                      fd.get(), kAtomicAccess));
                     BL_MUST(mr != nullptr);
                     const UniqueFd witness(dup(fd.get()));
                     fd.reset();
                     munmap(view, kSize);
                     connect(end.qp, peer.exchange(address_of(end.qp)), kDmabufWire);
                     const Region all{iova, 3 * kPage, mr->lkey, mr->rkey};
                     BL_MUST_OK(post(end.qp, recv_work(all.moved(2 * kPage, kPage), 9)));
                     peer.send(0, all);
                     must_complete(end.recv_cq.get(), 9);
                     std::vector<std::uint8_t> bytes(3 * kPage);
                     BL_MUST(pread(witness.get(), bytes.data(), bytes.size(), kOffset) ==
                             static_cast<ssize_t>(bytes.size()));
                     BL_MUST(has_pattern(std::span(bytes).subspan(8, 2 * kPage - 8), 1, 8));
                     BL_MUST(has_pattern(std::span(bytes).subspan(2 * kPage), 2));
                     std::uint64_t word = 0;
                     std::memcpy(&word, bytes.data(), 8);
                     const auto before = pattern(8, 1);
                     std::uint64_t expected = 0;
                     std::memcpy(&expected, before.data(), 8);
                     BL_MUST(word == expected + 1);
                     peer.meet();
                   }});
}
