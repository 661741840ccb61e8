// SPDX-License-Identifier: Apache-2.0
//
// Registering GPU memory, what NCCL is offered, and who flushes.
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <string>
#include <thread>

#include "tests/plugin/component/gdr_rig.h"
#include "tests/support/catch.h"
#include "tests/support/log_capture.h"

using namespace beeline;
using namespace beeline::test;

// The owner of the freed memory forgot to deregister it.
TEST_CASE("gdr: memory at the address of freed memory has keys of its own", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        auto old = rig.enter(rig.gpu_buffer());
        BL_MUST(old);
        auto again = rig.enter(rig.gpu_buffer());
        BL_MUST(again);
        BL_MUST((*again)->rkeys[0] == (*old)->rkeys[0]);
        // A sanitizer may reuse the freed addresses; then it is tried again.
        std::uint64_t freed = 0;
        for (int tries = 0; rig.memory != freed; ++tries) {
          BL_MUST(tries < 16);
          if (tries > 0) old = rig.enter(rig.gpu_buffer());
          BL_MUST(old);
          freed = rig.memory;
          CU_MUST(cuda, kSuccess, cuda.cuMemFree_v2(freed));
          rig.memory = cuda.allocate(kBytes);
        }
        auto other = rig.enter(rig.gpu_buffer());
        BL_MUST(other);
        BL_MUST((*other)->rkeys[0] != (*old)->rkeys[0]);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a dma-buf that the NIC refuses is followed by the pointer", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        rig.fake.on_register = [](const auto& asked) { return asked.fd >= 0 ? EOPNOTSUPP : 0; };
        const int fd = cuda.handle(rig.memory, kBytes);
        Buffer buffer = rig.gpu_buffer();
        buffer.kind = MemoryKind::kDmabuf;
        buffer.dmabuf_fd = fd;
        const auto handle = rig.enter(buffer);
        BL_MUST(handle);
        BL_MUST(rig.dmabufs_tried() == kRails);
        BL_MUST(rig.fake.registrations().back().fd == -1);
        BL_MUST(rig.fake.registrations().back().start == rig.memory);
        BL_MUST(fcntl(fd, F_GETFD) != -1);  // NCCL closes it
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: a pointer that the NIC refuses is followed by a dma-buf", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        rig.fake.on_register = [](const auto& asked) { return asked.fd < 0 ? EFAULT : 0; };
        // The range begins in the middle of a page; a dma-buf has whole pages.
        const auto handle = rig.enter(rig.gpu_buffer(5000, 1000));
        BL_MUST(handle);
        const auto last = rig.fake.registrations().back();
        BL_MUST(last.fd >= 0);
        BL_MUST(last.start == rig.memory + 4096);
        BL_MUST(last.length == 4096);
        BL_MUST(last.offset == 0);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: registrations allow a flush to read them", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        BL_MUST(rig.enter(rig.gpu_buffer()));
        for (const auto& made : rig.fake.registrations()) {
          BL_MUST((made.access & IBV_ACCESS_REMOTE_READ) != 0);
        }
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: host memory is registered as host memory where there is a GPU",
          "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        std::array<std::byte, 64> bytes{};
        const auto handle = rig.enter({.data = bytes.data(), .size = bytes.size()});
        BL_MUST(handle);
        BL_MUST(((*handle)->short_send_flags & IBV_SEND_INLINE) != 0);
        BL_MUST(!(*handle)->flush.any);
        BL_MUST((rig.fake.registrations().back().access & IBV_ACCESS_REMOTE_READ) == 0);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: whether NCCL, test or the host has to flush", "[component][gdr]") {
  struct Row {
    const char* settings;
    gdr::Options wishes;
    bool any;
    bool in_test;
    bool by_host;
  };
  const Row row = GENERATE(values<Row>({
      {"ordering=all,compute=9.0", {}, false, false, true},
      {"ordering=owner,compute=9.0", {}, false, false, true},
      {"ordering=none,compute=9.0", {}, true, true, true},
      {"ordering=none,compute=9.0,flush=none", {}, true, true, false},
      {"ordering=none,compute=8.0", {}, true, false, true},   // NCCL flushes by itself
      {"ordering=owner,compute=8.0", {}, true, false, true},  // the same, whatever the order
      {"ordering=all,compute=9.0", {.always_flush = true}, true, false, true},
      {"ordering=all,compute=9.0,coherent=yes", {}, true, false, true},
      {"ordering=none,compute=9.0", {.never_flush = true}, false, false, false},
  }));
  CAPTURE(row.settings, row.wishes.always_flush, row.wishes.never_flush);
  in_process(
      [&](Cuda& cuda) {
        GdrRig rig(cuda, row.wishes);
        const gpu::Gpu* const owner = rig.gpus->owner_of(rig.gpu_buffer().data);
        BL_MUST(owner != nullptr);
        const gdr::FlushNeed need = rig.gpus->flush_need(owner);
        BL_MUST(need.any == row.any);
        BL_MUST(need.in_test == row.in_test);
        BL_MUST(!need.any || need.by_host == row.by_host);
      },
      {{"SOFTGPU", std::string("gpus=1,") + row.settings}});
}

// If both ways work, the proof has used the dma-buf.
TEST_CASE("gdr: a pointer is registered in the way that the proof has tested", "[component][gdr]") {
  const bool dmabuf = GENERATE(true, false);
  CAPTURE(dmabuf);
  in_process(
      [&](Cuda& cuda) {
        GdrRig rig(cuda, {.proof = false});
        rig.fake.on_register = [&](const auto& asked) {
          return asked.fd >= 0 && !dmabuf ? EOPNOTSUPP : 0;
        };
        (void)rig.probe();
        const std::size_t before = rig.fake.registrations().size();
        BL_MUST(rig.enter(rig.gpu_buffer()));
        const auto made = rig.fake.registrations();
        BL_MUST(made.size() == before + kRails);  // the first attempt succeeds
        BL_MUST((made.back().fd >= 0) == dmabuf);
      },
      {{"SOFTGPU", "gpus=1"}});
}

TEST_CASE("gdr: an iWARP port has no loopback, so something else has to flush",
          "[component][gdr]") {
  struct Row {
    const char* settings;
    gdr::Options wishes;
    bool is_offered;
  };
  const Row row = GENERATE(values<Row>({
      {"ordering=all,flush=none", {}, true},
      {"ordering=all,flush=none", {.always_flush = true}, false},
      {"ordering=none,flush=host", {}, true},
      {"ordering=none,flush=none", {}, false},
      {"ordering=none,flush=none", {.never_flush = true}, true},
  }));
  CAPTURE(row.settings, row.wishes.always_flush, row.wishes.never_flush);
  in_process(
      [&](Cuda& cuda) {
        GdrRig rig(cuda, row.wishes);
        for (Device& device : rig.devices) device.transport = Transport::kIwarp;
        const Found found = rig.probe();
        for (const Device& device : rig.devices) {
          BL_MUST(rig.gpus->offer(device).dmabuf == row.is_offered);
        }
        BL_MUST(found.count("an iWARP port has no loopback connection") == 1);
        BL_MUST(!found.has("ACS"));
      },
      {{"SOFTGPU", std::string("gpus=1,") + row.settings}});
}

TEST_CASE("gdr: the kernel's private errno for unsupported operations has a text",
          "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        rig.fake.on_register = [](const auto& asked) { return asked.fd >= 0 ? 524 : EFAULT; };
        const Found found = rig.probe();
        BL_MUST(found.count("dma-buf: ibv_reg_dmabuf_mr: Operation not supported") == 1);
        BL_MUST(found.count("update the NIC's driver") == 1);
      },
      {{"SOFTGPU", "gpus=1"}});
}

// Two GPUs, with different ways that work.
TEST_CASE("gdr: NCCL is offered the ways that work with all GPUs in use", "[component][gdr]") {
  struct Row {
    std::array<bool, 2> dmabuf;
    std::array<bool, 2> pointer;
    bool offers_dmabuf;
    bool offers_pointer;
    bool is_mixed;
  };
  const Row row = GENERATE(values<Row>({
      {{true, true}, {true, true}, true, true, false},
      {{true, false}, {false, true}, false, true, false},  // regMr uses a different way for each
      {{true, true}, {true, false}, true, true, false},
      {{true, false}, {false, false}, false, false, true},
      {{false, true}, {false, false}, false, false, true},
      {{false, false}, {false, false}, false, false, false},
  }));
  CAPTURE(row.dmabuf, row.pointer);
  in_process(
      [&](Cuda& cuda) {
        GdrRig rig(cuda, {.proof = false});
        cuda.start(1);
        int asked = 0;
        rig.fake.on_register = [&](const FakeVerbs::Registration& made) {
          const std::size_t gpu = asked++ < int{2 * kRails} ? 0 : 1;  // two attempts with each NIC
          return (made.fd >= 0 ? row.dmabuf : row.pointer)[gpu] ? 0 : EFAULT;
        };
        const Found found = rig.probe();
        BL_MUST(asked == int{4 * kRails});
        for (const Device& device : rig.devices) {
          BL_MUST(rig.gpus->offer(device).dmabuf == row.offers_dmabuf);
          BL_MUST(rig.gpus->offer(device).pointer == row.offers_pointer);
        }
        BL_MUST(found.count("off for every GPU") == (row.is_mixed ? kRails : 0));
      },
      {{"SOFTGPU", "gpus=2"}});
}

// The receiving thread may have another GPU's context, or none.
TEST_CASE("gdr: the driver flushes the GPU whose memory it is", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda);
        const std::uint64_t owner =
            rig.gpus->flush_need(rig.gpus->owner_of(rig.gpu_buffer().data)).owner;
        BL_MUST(owner == 1);
        const auto pushes = [&] { return cuda.softgpu_calls("cuCtxPushCurrent"); };
        const std::uint64_t before = pushes();
        BL_MUST(rig.gpus->flush_by_host(owner));
        BL_MUST(pushes() == before);
        bool flushed = false;
        std::thread([&] { flushed = rig.gpus->flush_by_host(owner); }).join();
        BL_MUST(flushed);
        Context* const other = cuda.start(1);
        const std::uint64_t before_other = pushes();
        BL_MUST(rig.gpus->flush_by_host(owner));
        BL_MUST(pushes() == before_other + 1);
        Context* current = nullptr;
        CU_MUST(cuda, kSuccess, cuda.cuCtxGetCurrent(&current));
        BL_MUST(current == other);
      },
      {{"SOFTGPU", "gpus=2"}});
}
