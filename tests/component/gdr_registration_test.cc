// SPDX-License-Identifier: Apache-2.0
//
// Registering GPU memory with several rails, with softgpu's CUDA driver and fake verbs that can
// fail. Each case runs in a process of its own, since the driver is loaded once per process.
#include <dlfcn.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <initializer_list>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "plugin/transfer/registration.h"
#include "tests/softgpu/process.h"
#include "tests/support/catch.h"
#include "tests/support/found.h"
#include "tests/support/log_capture.h"
#include "tests/support/verbs_fake.h"

using namespace beeline;
using namespace beeline::test;

namespace {

constexpr std::size_t kRails = 4;
constexpr std::size_t kBytes = 3 << 20;

// Four NICs whose registrations are recorded, and GPU memory.
struct GdrRig {
  explicit GdrRig(Cuda& softgpu, const gdr::Options& wishes = {}) : cuda(softgpu) {
    cuda.start();
    memory = cuda.allocate(kBytes);
    gdr::Options options = wishes;
    options.cuda_lib = SOFTGPU_LIBRARY;
    gpus = std::make_unique<gdr::GpuDirect>(options, kRails);
    BL_MUST(gpus->has_driver());
    for (std::size_t i = 0; i < kRails; ++i) {
      devices[i].ibdev = "nic" + std::to_string(i);
      devices[i].index = static_cast<int>(i);
      caches[i] = std::make_unique<MrCache>(fake.api, &domains[i]);
      rails[i] = {.device = &devices[i], .cache = caches[i].get()};
    }
  }

  Buffer gpu_buffer(std::size_t offset = 0, std::size_t size = kBytes) const {
    return {
        .data = reinterpret_cast<void*>(memory + offset), .size = size, .kind = MemoryKind::kCuda};
  }
  // Tests the GPUs with every NIC as init does. Without `proof`, it only registers memory.
  Found probe() {
    return Found(gpus->probe(
        devices,
        [this](const Device& device) {
          return Result<MrCache*>(caches[static_cast<std::size_t>(device.index)].get());
        },
        nullptr));
  }
  Result<std::unique_ptr<MemoryHandle>> enter(const Buffer& buffer) {
    return register_buffer(rails, buffer, gpus.get(), left_out);
  }

  // These NICs refuse every registration with this error.
  void refuse(std::uint8_t mask, int error) {
    fake.on_register = [this, mask, error](const FakeVerbs::Registration& asked) {
      return (mask >> (asked.pd - domains.data()) & 1) != 0 ? error : 0;
    };
  }

  std::uint64_t open_handles() const {
    const auto ask =
        reinterpret_cast<std::uint64_t (*)()>(dlsym(cuda.library(), "softgpu_open_handles"));
    return ask();
  }
  int dmabufs_tried() const {
    int tried = 0;
    for (const auto& one : fake.registrations()) tried += one.fd >= 0 ? 1 : 0;
    return tried;
  }

  Cuda& cuda;
  softnic::gpu::DevicePtr memory = 0;
  FakeVerbs fake;
  std::unique_ptr<gdr::GpuDirect> gpus;
  std::array<Device, kRails> devices;
  std::array<ibv_pd, kRails> domains{};
  std::array<std::unique_ptr<MrCache>, kRails> caches;
  std::array<Rail, kRails> rails;
  LeftOutRails left_out;
};

}  // namespace

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

TEST_CASE("gdr: dma-bufs that are turned off are not tried", "[component][gdr]") {
  in_process(
      [](Cuda& cuda) {
        GdrRig rig(cuda, {.dmabuf = false});
        Buffer buffer = rig.gpu_buffer();
        buffer.kind = MemoryKind::kDmabuf;
        buffer.dmabuf_fd = cuda.handle(rig.memory, kBytes);
        BL_MUST(rig.enter(buffer));
        BL_MUST(rig.dmabufs_tried() == 0);
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

TEST_CASE("gdr: without a driver, GPU memory is refused, and the log says why",
          "[component][gdr]") {
  in_process(
      [](Cuda&) {
        FakeVerbs fake;
        LogCapture log;
        MrCache cache(fake.api, nullptr);
        Device device;
        const std::array rails{Rail{.device = &device, .cache = &cache}};
        const gdr::GpuDirect none({}, 1);
        std::array<std::byte, 64> bytes{};
        const Buffer buffer = {.data = bytes.data(), .size = 64, .kind = MemoryKind::kCuda};
        LeftOutRails left_out;
        const auto refused = register_buffer(rails, buffer, &none, left_out);
        BL_MUST(!refused);
        BL_MUST(refused.error().code == Errc::kUnsupported);
        BL_MUST(log.has("GPU memory cannot be registered: there is no CUDA driver"));
        BL_MUST(fake.registrations().empty());
      },
      {{"SOFTGPU", "gpus=0"}});
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
