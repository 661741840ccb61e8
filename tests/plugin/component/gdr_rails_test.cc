// SPDX-License-Identifier: Apache-2.0
//
// GPU memory on connections with several rails: a rail that cannot register a buffer is left out.
#include <array>
#include <cerrno>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tests/plugin/component/gdr_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

using namespace beeline;
using namespace beeline::test;

TEST_CASE("gdr: all rails are registered, and the handle deregisters them", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        auto handle = rig.enter(rig.gpu_buffer());
        BL_MUST(handle);
        BL_MUST(rig.fake.live_mrs() == kRails);
        BL_MUST((*handle)->registrations.size() == kRails);
        BL_MUST((*handle)->rails == 0xf);
        BL_MUST(rig.open_handles() == 0);  // the regions keep the memory, without a descriptor
        BL_MUST(((*handle)->short_send_flags & IBV_SEND_INLINE) == 0);
        handle->reset();
        BL_MUST(rig.fake.live_mrs() == 0);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a rail that refuses both ways is left out, and the log says so once",
          "[component][gdr]") {
  const std::size_t refusing = GENERATE(range<std::size_t>(0, kRails));
  CAPTURE(refusing);
  in_process(
      [&](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.refuse(static_cast<std::uint8_t>(1U << refusing), ENOMEM);
        auto handle = rig.enter(rig.gpu_buffer());
        BL_MUST(handle);
        BL_MUST((*handle)->rails == (0xf & ~(1U << refusing)));
        for (std::size_t i = 0; i < kRails; ++i) {
          BL_MUST(((*handle)->rkeys[i] == 0) == (i == refusing));
          BL_MUST(((*handle)->lkeys[i] == 0) == (i == refusing));
        }
        BL_MUST(rig.fake.live_mrs() == kRails - 1);
        BL_MUST(log.count(LogLevel::kWarn) == 1);
        BL_MUST(
            log.has("registering 3 MiB of GPU memory failed with nic" + std::to_string(refusing)));
        BL_MUST(log.has("dma-buf: ibv_reg_dmabuf_mr: Cannot allocate memory"));
        BL_MUST(log.has("peer memory: ibv_reg_mr: Cannot allocate memory"));
        BL_MUST(log.has("The other rails of the connection carry the data of such memory"));
        for (std::size_t i = 0; i < kRails; ++i) BL_MUST(log.has("nic" + std::to_string(i)));

        BL_MUST(rig.enter(rig.gpu_buffer(4096, 4096)));
        BL_MUST(log.count(LogLevel::kWarn) == 1);
        rig.refuse(static_cast<std::uint8_t>(1U << refusing), EINVAL);
        BL_MUST(rig.enter(rig.gpu_buffer(8192, 4096)));
        BL_MUST(log.count(LogLevel::kWarn) == 2);  // another cause
        handle->reset();
        BL_MUST(rig.fake.live_mrs() == 0);
        BL_MUST(rig.open_handles() == 0);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: if all rails refuse a buffer, that is an error which names each cause",
          "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.fake.on_register = [&](const FakeVerbs::Registration& asked) {
          return asked.pd == &rig.domains[2] ? EINVAL : ENOMEM;
        };
        const auto refused = rig.enter(rig.gpu_buffer());
        BL_MUST(!refused);
        BL_MUST(refused.error().code == Errc::kNoMemory);
        BL_MUST(rig.fake.live_mrs() == 0);
        BL_MUST(rig.open_handles() == 0);
        BL_MUST(log.count(LogLevel::kWarn) == 1);
        BL_MUST(
            log.has("registering 3 MiB of GPU memory failed with all rails of the connection: "
                    "nic0 port 1, nic1 port 1, nic3 port 1: dma-buf: "));
        BL_MUST(log.has("; nic2 port 1: dma-buf: ibv_reg_dmabuf_mr: Invalid argument"));
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: if the only rail refuses a buffer, the registration fails", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.refuse(1, ENOMEM);
        const auto refused = register_buffer(std::span(rig.rails).first(1), rig.gpu_buffer(),
                                             rig.gpus.get(), rig.left_out);
        BL_MUST(!refused);
        BL_MUST(refused.error().code == Errc::kNoMemory);
        BL_MUST(log.count(LogLevel::kWarn) == 1);
        BL_MUST(log.has("registering 3 MiB of GPU memory with nic0 port 1 failed: dma-buf: "));
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a rail that refuses host memory is left out as well", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.refuse(0b0110, EINVAL);
        std::array<std::byte, 64> bytes{};
        const auto handle = rig.enter({.data = bytes.data(), .size = bytes.size()});
        BL_MUST(handle);
        BL_MUST((*handle)->rails == 0b1001);
        BL_MUST(log.count(LogLevel::kWarn) == 1);
        BL_MUST(
            log.has("registering 64 bytes of memory failed with nic1 port 1, nic2 port 1: "
                    "Invalid argument"));
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a rail without a path is neither registered nor missed", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.rails[1].cache = nullptr;
        const auto handle = rig.enter(rig.gpu_buffer());
        BL_MUST(handle);
        BL_MUST((*handle)->rails == 0b1101);
        BL_MUST(rig.fake.live_mrs() == kRails - 1);
        BL_MUST(log.lines().empty());
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a remote key 0 counts as a refusal, unless there is only one rail",
          "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        LogCapture log;
        rig.fake.choose_key = [&](const FakeVerbs::Registration& asked) {
          return asked.pd == &rig.domains[0] ? 0U : 4711U;
        };
        const auto handle = rig.enter(rig.gpu_buffer());
        BL_MUST(handle);
        BL_MUST((*handle)->rails == 0b1110);
        BL_MUST(rig.fake.live_mrs() == kRails - 1);
        BL_MUST(log.has("nic0 port 1: the device gave it the remote key 0"));
        const auto alone = register_buffer(std::span(rig.rails).first(1), rig.gpu_buffer(),
                                           rig.gpus.get(), rig.left_out);
        BL_MUST(alone);
        BL_MUST((*alone)->rails == 1);
      },
      {{"SOFTGPU", "gpus=1"}});
}

// Registering works with such a NIC, and the data would be lost.
TEST_CASE("gdr: a rail on which the test at init has failed is left out", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda, {.proof = false});
        rig.refuse(0b0010, EFAULT);
        (void)rig.probe();
        rig.fake.on_register = nullptr;
        LogCapture log;
        const auto handle = rig.enter(rig.gpu_buffer());
        BL_MUST(handle);
        BL_MUST((*handle)->rails == 0b1101);
        BL_MUST(log.count(LogLevel::kWarn) == 0);  // init has warned
        BL_MUST(log.count("GPUDirect does not work with it, as logged at init") == 1);
        BL_MUST(rig.enter(rig.gpu_buffer(4096, 4096)));
        BL_MUST(log.lines().size() == 1);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: merged devices are offered what one of them takes", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda, {.proof = false});
        rig.fake.on_register = [&](const FakeVerbs::Registration& asked) {
          const std::ptrdiff_t rail = asked.pd - rig.domains.data();
          if (rail == 0) return EFAULT;
          return rail == 1 && asked.fd >= 0 ? EOPNOTSUPP : 0;  // only pointers
        };
        (void)rig.probe();
        const auto offer = [&](std::initializer_list<std::size_t> members) {
          std::vector<const Device*> devices;
          for (const std::size_t i : members) devices.push_back(&rig.devices[i]);
          return rig.gpus->offer(devices);
        };
        BL_MUST(!offer({0}).pointer && !offer({0}).dmabuf && !offer({0}).force_flush);
        BL_MUST(offer({0, 1}).pointer && !offer({0, 1}).dmabuf);
        BL_MUST(offer({0, 1}).force_flush);
        BL_MUST(offer({2, 0, 1}).dmabuf);
        BL_MUST(offer({3, 0}).pointer && offer({3, 0}).dmabuf && offer({3, 0}).force_flush);
      },
      {{"SOFTGPU", "gpus=1,ordering=none"}});
}
