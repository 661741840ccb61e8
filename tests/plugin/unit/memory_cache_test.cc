// SPDX-License-Identifier: Apache-2.0
//
// The registration cache: hits, misses, and the registrations that are left.
#include <cerrno>
#include <optional>
#include <utility>

#include "plugin/memory/mr_cache.h"
#include "tests/support/catch.h"
#include "tests/support/verbs_fake.h"

namespace beeline {
namespace {

using test::FakeVerbs;

constexpr std::uintptr_t kBase = 0x10000000;
constexpr std::size_t kPage = 4096;

MrRequest pages(std::size_t first, std::size_t count) {
  return {.address = reinterpret_cast<void*>(kBase + first * kPage), .length = count * kPage};
}

struct CacheRig {
  FakeVerbs fake;
  MrCache cache{fake.api, nullptr};

  MrRef take(const MrRequest& request) {
    auto ref = cache.acquire(request);
    REQUIRE(ref);
    return *std::move(ref);
  }
  std::size_t made() const { return fake.registrations().size(); }
};

TEST_CASE("mr cache: whole pages are registered", "[unit][memory]") {
  CacheRig rig;
  const MrRef ref = rig.take({.address = reinterpret_cast<void*>(kBase + 100), .length = 4000});
  const auto made = rig.fake.registrations().at(0);
  CHECK(made.start == kBase);
  CHECK(made.length == 2 * kPage);
  CHECK(ref.lkey() == ref.mr()->lkey);
}

TEST_CASE("mr cache: the same pages are a hit and take a reference", "[unit][memory]") {
  CacheRig rig;
  MrRef whole = rig.take(pages(0, 8));
  MrRef same = rig.take({.address = reinterpret_cast<void*>(kBase + 7), .length = 8 * kPage - 9});
  CHECK(same.mr() == whole.mr());
  CHECK(rig.made() == 1);
  CHECK(rig.cache.stats().hits == 1);
  CHECK(rig.cache.stats().misses == 1);
  whole.reset();
  CHECK(rig.fake.live_mrs() == 1);
  same.reset();
  CHECK(rig.fake.live_mrs() == 0);
  CHECK(rig.cache.stats().regions == 0);
  CHECK(rig.cache.stats().bytes == 0);
}

// The owner of the larger one may give it up and unmap the rest, which must not stay reachable.
TEST_CASE("mr cache: an overlapping range is registered again, whichever is larger",
          "[unit][memory]") {
  CacheRig rig;
  const MrRef middle = rig.take(pages(4, 4));
  const MrRef before = rig.take(pages(3, 2));
  const MrRef behind = rig.take(pages(7, 2));
  MrRef around = rig.take(pages(3, 6));
  const MrRef inside = rig.take(pages(5, 2));
  const MrRef start = rig.take(pages(4, 3));
  CHECK(rig.made() == 6);
  CHECK(rig.cache.stats().bytes == (4 + 2 + 2 + 6 + 2 + 3) * kPage);
  around.reset();
  CHECK(rig.cache.stats().bytes == (4 + 2 + 2 + 2 + 3) * kPage);
}

TEST_CASE("mr cache: after the first of three is dropped, the others are still found",
          "[unit][memory]") {
  CacheRig rig;
  MrRef a = rig.take(pages(0, 2));
  const MrRef b = rig.take(pages(10, 2));
  const MrRef c = rig.take(pages(20, 2));
  a.reset();
  CHECK(rig.take(pages(10, 2)).mr() == b.mr());
  CHECK(rig.take(pages(20, 2)).mr() == c.mr());
  CHECK(rig.made() == 3);
}

TEST_CASE("mr cache: other rights, ordering or kind are another registration", "[unit][memory]") {
  CacheRig rig;
  const MrRef first = rig.take(pages(0, 4));
  MrRequest other = pages(0, 4);
  SECTION("fewer rights") { other.access = IBV_ACCESS_LOCAL_WRITE; }
  SECTION("more rights") { other.access |= IBV_ACCESS_REMOTE_READ; }
  SECTION("ordering") { other.ordering = verbs::Ordering::kRelaxed; }
  SECTION("kind") { other.kind = MemoryKind::kCuda; }
  const MrRef second = rig.take(other);
  CHECK(second.mr() != first.mr());
  CHECK(rig.made() == 2);
}

TEST_CASE("mr cache: relaxed ordering reaches the library, unless it is switched off",
          "[unit][memory]") {
  FakeVerbs fake;
  MrRequest request = pages(0, 1);
  request.ordering = verbs::Ordering::kRelaxed;
  MrCache on(fake.api, nullptr);
  CHECK(on.acquire(request));
  CHECK((fake.registrations().back().access & IBV_ACCESS_RELAXED_ORDERING) != 0);
  MrCache off(fake.api, nullptr, false);
  CHECK(off.acquire(request));
  CHECK((fake.registrations().back().access & IBV_ACCESS_RELAXED_ORDERING) == 0);
}

TEST_CASE("mr cache: an empty range and one that wraps around are refused", "[unit][memory]") {
  CacheRig rig;
  CHECK(rig.cache.acquire(pages(0, 0)).error().code == Errc::kInvalid);
  CHECK(rig.cache.acquire({.address = reinterpret_cast<void*>(kBase), .length = SIZE_MAX})
            .error()
            .code == Errc::kInvalid);
  CHECK(rig.cache.acquire({.address = reinterpret_cast<void*>(UINTPTR_MAX - 10), .length = 5})
            .error()
            .code == Errc::kInvalid);
  CHECK(rig.made() == 0);
  CHECK(rig.cache.stats().misses == 0);
}

TEST_CASE("mr cache: a failed registration leaves nothing", "[unit][memory]") {
  CacheRig rig;
  rig.fake.on_register = [](const FakeVerbs::Registration&) { return ENOMEM; };
  const auto failed = rig.cache.acquire(pages(0, 4));
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == Errc::kNoMemory);
  CHECK(failed.error().sys_errno == ENOMEM);
  CHECK(rig.cache.stats().regions == 0);
  CHECK(rig.cache.stats().failed == 1);
  rig.fake.on_register = nullptr;
  const MrRef ref = rig.take(pages(0, 4));
  CHECK(rig.made() == 2);
}

TEST_CASE("mr cache: a range that was dropped is registered again", "[unit][memory]") {
  CacheRig rig;
  rig.take(pages(0, 4)).reset();
  const MrRef again = rig.take(pages(0, 4));
  CHECK(rig.made() == 2);
  CHECK(rig.fake.live_mrs() == 1);
}

TEST_CASE("mr ref: can be moved, and drops its registration when it is assigned another",
          "[unit][memory]") {
  CacheRig rig;
  MrRef one = rig.take(pages(0, 1));
  MrRef two = rig.take(pages(5, 1));
  one = std::move(two);
  CHECK_FALSE(two);  // NOLINT(bugprone-use-after-move)
  CHECK(rig.fake.live_mrs() == 1);
  const MrRef three(std::move(one));
  CHECK_FALSE(one);  // NOLINT(bugprone-use-after-move)
  CHECK(rig.fake.live_mrs() == 1);
  CHECK(rig.cache.stats().regions == 1);
}

MrRequest dmabuf(std::uintptr_t address, std::size_t length, std::uint64_t offset) {
  return {.address = reinterpret_cast<void*>(address),
          .length = length,
          .kind = MemoryKind::kDmabuf,
          .dmabuf_fd = 42,
          .dmabuf_offset = offset};
}

TEST_CASE("mr cache: a dma-buf's offset follows the rounding", "[unit][memory]") {
  CacheRig rig;
  const MrRef ref = rig.take(dmabuf(kBase + 100, 50, 2 * kPage + 100));
  const auto made = rig.fake.registrations().at(0);
  CHECK(made.fd == 42);
  CHECK(made.start == kBase);
  CHECK(made.offset == 2 * kPage);
  CHECK(made.length == kPage);
}

TEST_CASE("mr cache: a dma-buf that begins in mid-page is not registered from before its beginning",
          "[unit][memory]") {
  CacheRig rig;
  const MrRef ref = rig.take(dmabuf(kBase + 100, 50, 0));
  const auto made = rig.fake.registrations().at(0);
  CHECK(made.start == kBase + 100);
  CHECK(made.offset == 0);
  CHECK(made.length == kPage - 100);
  // The same range again is a hit, whatever the descriptor's number is by now.
  MrRequest again = dmabuf(kBase + 100, 50, 0);
  again.dmabuf_fd = 7;
  CHECK(rig.take(again).mr() == ref.mr());
}

}  // namespace
}  // namespace beeline
