// SPDX-License-Identifier: Apache-2.0
//
// plugin/verbs and plugin/memory on softnic: loading the library, the states of queue pairs, and
// memory that the peer writes.
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "plugin/memory/mr_cache.h"
#include "plugin/verbs/check.h"
#include "tests/plugin/component/device_rig.h"
#include "tests/support/verbs_work.h"

namespace beeline::test {
namespace {

TEST_CASE("load: the given library is taken, with all that it has", "[component][verbs]") {
  const auto loaded = verbs::load(SOFTNIC_LIBIBVERBS);
  REQUIRE(loaded);
  CHECK(loaded->notes.empty());
  CHECK(loaded->api.library == SOFTNIC_LIBIBVERBS);
  CHECK(loaded->api.can_relax_ordering());
  CHECK(loaded->api.can_register_dmabuf());
  CHECK(loaded->api.query_gid_table != nullptr);
  CHECK(loaded->api.get_device_list == &ibv_get_device_list);  // softnic's: this program's own
}

TEST_CASE("load: a library that cannot be loaded is reported, also if another is used",
          "[component][verbs]") {
  const std::string absent = "/nonexistent/libibverbs.so.1";
  const auto loaded = verbs::load(absent);
  if (loaded) {
    REQUIRE(loaded->notes.size() == 1);
    CHECK(loaded->notes[0].find(absent) != std::string::npos);
    CHECK(loaded->api.library != absent);
  } else {
    CHECK(loaded.error().text.find(absent) != std::string::npos);
    CHECK(loaded.error().text.find("BEELINE_IBVERBS_LIB") != std::string::npos);
  }
}

TEST_CASE("load: a library without verbs is no libibverbs", "[component][verbs]") {
  const auto loaded = verbs::load("libm.so.6");
  const std::string told = loaded ? loaded->notes.at(0) : loaded.error().text;
  CHECK(told.find("libm.so.6: has no ibv_get_device_list") != std::string::npos);
}

struct ConnectedPair {
  explicit ConnectedPair(const TestFabric& fabric)
      : table(scan(fabric)),
        a(find_device(*table, "softnic0")),
        b(find_device(*table, "softnic1")) {}

  std::unique_ptr<DeviceTable> table;
  End a;
  End b;
};

ibv_qp_state state_of(const End& end) { return test::state_of(end.qp.get()); }

TEST_CASE("steps: from RESET to RTS, and data arrives", "[component][verbs]") {
  const TestFabric fabric;
  ConnectedPair pair(fabric);
  CHECK(state_of(pair.a) == IBV_QPS_RESET);
  connect(pair.a, pair.b);
  CHECK(state_of(pair.a) == IBV_QPS_RTS);
  std::memcpy(pair.a.memory.data(), "over the wire", 14);
  post_write(pair.a, pair.b, 14);
  CHECK(wait_completion(pair.a).status == IBV_WC_SUCCESS);
  CHECK(std::strcmp(pair.b.memory.at<char>(), "over the wire") == 0);
}

TEST_CASE("steps: InfiniBand connects by LID", "[component][verbs]") {
  const TestFabric fabric(fabric_file("ib-2x2.toml"));
  ConnectedPair pair(fabric);
  connect(pair.a, pair.b);
  *pair.a.memory.at<char>() = 'x';
  post_write(pair.a, pair.b, 1);
  CHECK(wait_completion(pair.a).status == IBV_WC_SUCCESS);
  CHECK(*pair.b.memory.at<char>() == 'x');
}

TEST_CASE("steps: a transition that the device refuses is an error", "[component][verbs]") {
  const TestFabric fabric;
  ConnectedPair pair(fabric);
  const Status early = verbs::to_rts(pair.a.qp, {});
  REQUIRE_FALSE(early);
  CHECK(early.error().code == Errc::kInvalid);
  CHECK(std::strcmp(early.error().what, "move the queue pair to RTS") == 0);
  CHECK_FALSE(verbs::to_init(pair.a.qp, {.port = 9}));
}

TEST_CASE("steps: ECE is queried and set, or unsupported", "[component][verbs]") {
  const TestFabric fabric;
  ConnectedPair pair(fabric);
  const auto ece = verbs::query_ece(pair.a.qp);
  if (ece) {
    CHECK(verbs::set_ece(pair.a.qp, *ece));
  } else {
    CHECK(ece.error().code == Errc::kUnsupported);
  }
}

TEST_CASE("create qp: an inline size beyond the device is reduced to what it grants",
          "[component][verbs]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const End modest(table->devices()[0], 128);
  CHECK(modest.granted.max_inline_data >= 128);
  const End greedy(table->devices()[0], 1 << 20);
  CHECK(greedy.granted.max_inline_data >= 512);
  CHECK(greedy.granted.max_inline_data < 1 << 20);
}

TEST_CASE("control block: zeroed pages with keys for every rail", "[component][memory]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  auto block = must(ControlBlock::create(5000));
  CHECK(block.size() == 8192);
  CHECK(block.address() % 4096 == 0);
  CHECK(block.at<char>(8191)[0] == '\0');
  for (const Device& device : table->devices()) {
    must(block.attach(device.api(), must(device.context->pd())));
  }
  REQUIRE(block.rails() == 2);
  ControlBlock moved;
  moved = std::move(block);
  CHECK(moved.rails() == 2);
  const ControlBlock last(std::move(moved));
  CHECK(last.rails() == 2);
  *last.at<char>(8191) = 'x';  // still mapped
  CHECK(ControlBlock::create(0).error().code == Errc::kInvalid);
  CHECK(ControlBlock::create(SIZE_MAX).error().code == Errc::kInvalid);
}

TEST_CASE("control block: without the right to be written the peer is refused",
          "[component][memory]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  End a(find_device(*table, "softnic0"));
  End b(find_device(*table, "softnic1"));
  b.memory = must(ControlBlock::create(4096));
  must(b.memory.attach(b.device.api(), must(b.device.context->pd()), IBV_ACCESS_LOCAL_WRITE));
  connect(a, b);
  *a.memory.at<char>() = 'x';
  post_write(a, b, 1);
  CHECK(wait_completion(a).status == IBV_WC_REM_ACCESS_ERR);
  CHECK(*b.memory.at<char>() == '\0');
}

TEST_CASE("mr cache: registers with a real device, and gives all back", "[component][memory]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const Device& device = table->devices()[0];
  MrCache cache(device.api(), must(device.context->pd()), device.caps.relaxed_ordering);
  alignas(4096) static char bytes[4 * 4096];
  {
    MrRequest request{.address = bytes, .length = sizeof bytes};
    request.ordering = verbs::Ordering::kRelaxed;
    const MrRef whole = must(cache.acquire(request));
    request.address = bytes + 10;
    request.length = sizeof bytes - 20;
    const MrRef same_pages = must(cache.acquire(request));
    CHECK(same_pages.rkey() == whole.rkey());
    CHECK(cache.stats().regions == 1);
  }
  CHECK(cache.stats().regions == 0);
}

TEST_CASE("mr cache: registering unmapped memory fails, and leaves nothing",
          "[component][memory]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const Device& device = table->devices()[0];
  MrCache cache(device.api(), must(device.context->pd()));
  void* const hole = ::mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(hole != MAP_FAILED);
  CHECK_FALSE(cache.acquire({.address = hole, .length = 1 << 20}));
  CHECK(cache.stats().regions == 0);
  CHECK(cache.stats().failed == 1);
  REQUIRE(::mprotect(hole, 1 << 20, PROT_READ | PROT_WRITE) == 0);
  CHECK(cache.acquire({.address = hole, .length = 1 << 20}));
  REQUIRE(::munmap(hole, 1 << 20) == 0);
}

TEST_CASE("mr cache: without dma-buf support, a dma-buf is unsupported", "[component][memory]") {
  const TestFabric fabric;
  const auto table = scan(fabric);
  const Device& device = table->devices()[0];
  MrCache cache(device.api(), must(device.context->pd()));
  static char bytes[64];
  MrRequest request{.address = bytes, .length = sizeof bytes, .kind = MemoryKind::kDmabuf};
  verbs::Api older = device.api();
  older.reg_dmabuf_mr = nullptr;
  MrCache old_cache(older, must(device.context->pd()));
  CHECK(old_cache.acquire(request).error().code == Errc::kUnsupported);
  CHECK(old_cache.stats().regions == 0);
}

}  // namespace
}  // namespace beeline::test
