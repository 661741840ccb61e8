// SPDX-License-Identifier: Apache-2.0
//
// The buffers of a comm when one of its rails gets another device.
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "plugin/transfer/registered_buffers.h"
#include "tests/support/catch.h"
#include "tests/support/verbs_fake.h"

namespace beeline {
namespace {

using test::FakeVerbs;

constexpr std::size_t kNics = 3;
constexpr std::uint64_t kStart = 0x10000000;
constexpr std::size_t kBytes = 8192;

// Rail 0 begins with NIC 0, rail 1 with NIC 1. NIC 2 can replace either.
struct BuffersRig final : MrCaches {
  BuffersRig() {
    for (std::size_t i = 0; i < kNics; ++i) {
      contexts[i] = std::make_unique<DeviceContext>(verbs::Context{}, "nic", static_cast<int>(i));
      nics[i].index = static_cast<int>(i);
      nics[i].context = contexts[i].get();
      caches[i] = std::make_unique<MrCache>(fake.api, &domains[i]);
    }
    buffers = std::make_shared<RegisteredBuffers>(RegisteredBuffers::RailDevice{&nics[0], &nics[1]},
                                                  means);
  }
  Result<MrCache*> cache(const Device& device) override {
    return caches[static_cast<std::size_t>(device.index)].get();
  }

  std::unique_ptr<MemoryHandle> make() {
    auto made =
        buffers->make({.data = reinterpret_cast<void*>(kStart), .size = kBytes, .dmabuf_fd = 77});
    REQUIRE(made);
    return *std::move(made);
  }
  // The key that this NIC has given last; 0: none.
  std::uint32_t key_of(std::size_t nic) const { return keys[nic]; }

  FakeVerbs fake;
  std::array<std::uint32_t, kNics> keys{};
  std::array<ibv_pd, kNics> domains{};
  std::array<std::unique_ptr<DeviceContext>, kNics> contexts;
  std::array<Device, kNics> nics;
  std::array<std::unique_ptr<MrCache>, kNics> caches;
  LeftOutRails left_out;
  const RegistrationMeans means{.caches = this, .left_out = &left_out, .has_recovery = true};
  std::shared_ptr<RegisteredBuffers> buffers;
  std::uint32_t last_key = 100;

  void note_keys() {
    fake.choose_key = [this](const FakeVerbs::Registration& asked) {
      return keys[static_cast<std::size_t>(asked.pd - domains.data())] = ++last_key;
    };
  }
};

TEST_CASE("registered buffers: a rail gets another device, and all handles its keys",
          "[component][gdr]") {
  BuffersRig rig;
  rig.note_keys();
  MemoryHandle* const first = rig.buffers->add(rig.make());
  MemoryHandle* const second = rig.buffers->add(rig.make());
  const std::uint32_t of_other_rail = first->rkeys[1];
  REQUIRE(first->rkeys[0] == rig.key_of(0));

  REQUIRE(rig.buffers->prepare(0, rig.nics[2], true));
  CHECK(first->rkeys[0] == rig.key_of(0));  // the rail may still be in use
  MemoryHandle* const between = rig.buffers->add(rig.make());
  CHECK(between->rkeys[0] == rig.key_of(0));

  REQUIRE(rig.buffers->use_device(0, rig.nics[2], true));
  for (const MemoryHandle* const handle : {first, second, between}) {
    CHECK(handle->rails == 0b11);
    CHECK(handle->rkeys[0] == rig.key_of(2));
    CHECK(handle->lkeys[0] == rig.key_of(2));
    CHECK(handle->rkeys[1] == of_other_rail);
  }
  CHECK(rig.buffers->remote_key(0, kStart + 1, kBytes - 1) == rig.key_of(2));
  CHECK(rig.buffers->remote_key(0, kStart + 1, kBytes) == std::nullopt);

  // Back again: what the former device had is registered anew.
  REQUIRE(rig.buffers->prepare(0, rig.nics[0], true));
  REQUIRE(rig.buffers->use_device(0, rig.nics[0], true));
  CHECK(first->rkeys[0] == rig.key_of(0));
  for (MemoryHandle* const handle : {first, second, between}) RegisteredBuffers::remove(handle);
  CHECK(rig.fake.live_mrs() == 0);
}

TEST_CASE("registered buffers: a device that refuses one", "[component][gdr]") {
  BuffersRig rig;
  rig.note_keys();
  MemoryHandle* const handle = rig.buffers->add(rig.make());
  bool refuses = true;
  rig.fake.on_register = [&](const FakeVerbs::Registration& asked) {
    return refuses && asked.pd == &rig.domains[2] ? EFAULT : 0;
  };
  const Outcome<void> all = rig.buffers->prepare(0, rig.nics[2], true);
  REQUIRE(!all);
  CHECK(all.error().text.find("failed: Bad address") != std::string::npos);
  SECTION("as long as it refuses, the buffer does not use the rail") {
    REQUIRE(rig.buffers->prepare(0, rig.nics[2], false));
    REQUIRE(rig.buffers->use_device(0, rig.nics[2], true));
    CHECK(handle->rails == 0b10);
    CHECK(handle->rkeys[0] == 0);
    CHECK(rig.buffers->remote_key(0, kStart, 1) == std::nullopt);
  }
  SECTION("it is asked again") {
    refuses = false;
    REQUIRE(rig.buffers->prepare(0, rig.nics[2], true));
    REQUIRE(rig.buffers->use_device(0, rig.nics[2], true));
    CHECK(handle->rkeys[0] == rig.key_of(2));
  }
  RegisteredBuffers::remove(handle);
}

TEST_CASE("registered buffers: a buffer that is registered while devices are gone",
          "[component][gdr]") {
  BuffersRig rig;
  rig.note_keys();
  rig.contexts[0]->set_gone();
  auto with_one = rig.make();
  CHECK(with_one->rails == 0b10);
  rig.contexts[1]->set_gone();
  auto with_none = rig.make();
  CHECK(with_none->rails == 0);
  REQUIRE(rig.buffers->prepare(0, rig.nics[2], true));
  REQUIRE(rig.buffers->use_device(0, rig.nics[2], true));
  // The rail has got its device since they were made.
  for (auto* const made : {&with_one, &with_none}) {
    MemoryHandle* const handle = rig.buffers->add(std::move(*made));
    CHECK(handle->rkeys[0] == rig.key_of(2));
    RegisteredBuffers::remove(handle);
  }
}

TEST_CASE("registered buffers: memory that cannot be flushed does not use the rail",
          "[component][gdr]") {
  BuffersRig rig;
  rig.note_keys();
  MemoryHandle* const handle = rig.buffers->add(rig.make());
  handle->flush.any = true;
  const bool can_flush = GENERATE(true, false);
  REQUIRE(rig.buffers->prepare(0, rig.nics[2], true));
  REQUIRE(rig.buffers->use_device(0, rig.nics[2], can_flush));
  CHECK(handle->rails == (can_flush ? 0b11 : 0b10));
  RegisteredBuffers::remove(handle);
}

}  // namespace
}  // namespace beeline
