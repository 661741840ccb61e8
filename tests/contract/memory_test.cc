// SPDX-License-Identifier: Apache-2.0
//
// regMr and deregMr: any range of memory, any number of times, at any time.
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include "tests/contract/flow.h"
#include "tests/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// A session with a connection to itself, and a registered source buffer.
struct MemoryScratch : LinkedSession {
  explicit MemoryScratch(Abi abi) : LinkedSession(abi), source(net, link.send, 1 << 16) {}

  // Sends the seed's pattern to an offset of `memory`, which is registered as `mr`.
  void carry_to(Memory& memory, const Mr& mr, size_t offset, size_t size, uint32_t seed) {
    source.fill(0, size, seed);
    memory.expect(offset, size, seed);
    carry(net, link, source.part(0, size), {memory.at(offset), size, 0, mr.raw()});
  }

  // Host memory that the receive comm must refuse to register.
  void must_not_register(uint8_t* data, size_t size, int type = NCCL_PTR_HOST) const {
    void* mhandle = data;
    BL_MUST(net.reg_mr(link.recv.raw(), data, size, type, &mhandle) != ncclSuccess);
    BL_MUST(mhandle == nullptr);
  }

  Buffer source;
};

bool takes_cuda(const Session& session) {
  return (session.properties(0).ptr_support & (NCCL_PTR_CUDA | NCCL_PTR_DMABUF)) != 0;
}

}  // namespace

TEST_CASE("memory: any address and size may be registered", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    MemoryScratch scratch(abi);
    Memory memory(1 << 17);
    uint32_t seed = 0;
    for (const size_t offset : {0U, 1U, 63U, 4095U, 4096U, 4097U, 65535U}) {
      for (const size_t size : {1U, 2U, 127U, 4095U, 4096U, 4097U, 65536U}) {
        const Mr to(scratch.net, scratch.link.recv, memory.at(offset), size);
        scratch.carry_to(memory, to, offset, size, ++seed);
        memory.must_hold();
      }
    }
  });
}

TEST_CASE("memory: a piece of a registration may be used", "[contract][memory]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kSize = 100000;
  run_flow(
      way,
      [](Sender& end) {
        Buffer memory(end, kSize);
        memory.fill(0, kSize, 1);
        for (size_t offset = 0; offset < kSize; offset += 20000) {
          end.send(memory.part(offset, 20000)).finish();
        }
      },
      [](Receiver& end) {
        Buffer memory(end, kSize);
        memory.expect(0, kSize, 1);
        for (size_t offset = 0; offset < kSize; offset += 20000) {
          end.receive(memory.part(offset, 20000)).finish();
        }
        memory.must_hold();
      });
}

TEST_CASE("memory: registrations may overlap and outlive each other", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const uint32_t random_seed = GENERATE(1U, 2U, 3U);
  CAPTURE(abi, random_seed);
  run_alone([&] {
    constexpr size_t kSize = 1 << 18;
    constexpr size_t kMost = 40;
    std::mt19937 random(random_seed);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
    struct Piece {
      size_t offset;
      size_t size;
      Mr mr;
    };
    MemoryScratch scratch(abi);
    Memory memory(kSize);
    std::vector<Piece> pieces;
    for (uint32_t round = 0; round < 400; ++round) {
      if (pieces.size() < kMost && (pieces.empty() || random() % 2 == 0)) {
        const size_t offset = below(kSize - 1);
        const size_t size = 1 + below(kSize - offset);
        pieces.push_back({offset, size, {scratch.net, scratch.link.recv, memory.at(offset), size}});
      } else {
        std::swap(pieces[below(pieces.size())], pieces.back());
        pieces.back().mr.drop();
        pieces.pop_back();
      }
      if (pieces.empty()) continue;
      const Piece& piece = pieces[below(pieces.size())];
      const size_t skip = below(piece.size);
      const size_t size = std::min({piece.size - skip, scratch.source.size(), size_t{9000}});
      scratch.carry_to(memory, piece.mr, piece.offset + skip, size, round);
    }
    memory.must_hold();
  });
}

TEST_CASE("memory: the same buffer may be registered many times", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    constexpr size_t kSize = 10000;
    MemoryScratch scratch(abi);
    Memory memory(kSize);
    std::vector<Mr> mrs;
    mrs.reserve(100);
    for (int i = 0; i < 100; ++i) mrs.emplace_back(scratch.net, scratch.link.recv, memory);
    std::shuffle(mrs.begin(), mrs.end(), std::mt19937(1));
    uint32_t seed = 0;
    while (!mrs.empty()) {
      scratch.carry_to(memory, mrs.back(), 0, kSize, ++seed);
      memory.must_hold();
      mrs.back().drop();
      mrs.pop_back();
    }
  });
}

TEST_CASE("memory: dropping the first of three buffers leaves the second", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    constexpr size_t kSize = 8192;  // of each buffer, with as much between them
    MemoryScratch scratch(abi);
    Memory memory(6 * kSize);
    const auto reg = [&](size_t i) {
      return Mr(scratch.net, scratch.link.recv, memory.at(2 * i * kSize), kSize);
    };
    Mr a = reg(0);
    Mr b = reg(1);
    Mr c = reg(2);
    scratch.carry_to(memory, b, 2 * kSize, kSize, 1);
    a.drop();
    Mr again = reg(1);
    scratch.carry_to(memory, again, 2 * kSize, kSize, 2);
    b.drop();
    scratch.carry_to(memory, again, 2 * kSize, kSize, 3);
    scratch.carry_to(memory, c, 4 * kSize, kSize, 4);
    again.drop();
    a = reg(0);
    scratch.carry_to(memory, a, 0, kSize, 5);
    scratch.carry_to(memory, c, 4 * kSize, kSize, 6);
    memory.must_hold();
  });
}

TEST_CASE("memory: other pages at the same address are other memory", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    constexpr size_t kSize = 1 << 16;
    MemoryScratch scratch(abi);
    const Pages place(kSize);
    for (uint32_t round = 0; round < 10; ++round) {
      // Replaces the pages. A device must not go on using the old ones.
      void* const pages = mmap(place.data(), kSize, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      BL_MUST(pages == place.data());
      Mr mr(scratch.net, scratch.link.recv, place.data(), kSize);
      scratch.source.fill(0, kSize, round);
      carry(scratch.net, scratch.link, scratch.source.part(0, kSize),
            {place.data(), kSize, 0, mr.raw()});
      BL_MUST(std::equal(place.data(), place.data() + kSize, scratch.source.at()));
      mr.drop();
    }
  });
}

TEST_CASE("memory: a registration that was dropped is not remembered", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    constexpr size_t kSize = 1 << 16;
    MemoryScratch scratch(abi);
    const Pages place(kSize);
    Mr(scratch.net, scratch.link.recv, place.data(), kSize).drop();
    withdraw(place, kSize);
    scratch.must_not_register(place.data(), kSize);
  });
}

TEST_CASE("memory: one registration may serve sends and another receives of the same bytes",
          "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    MemoryScratch scratch(abi);
    const Mr to(scratch.net, scratch.link.recv, scratch.source);
    scratch.source.fill(0, 1000, 1);
    carry(scratch.net, scratch.link, scratch.source.part(0, 1000),
          {scratch.source.at(2000), 1000, 0, to.raw()});
    scratch.source.expect(2000, 1000, 1);
    scratch.source.must_hold();
  });
}

TEST_CASE("memory: deregistering NULL is no error", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(every_abi()));
  CAPTURE(abi);
  run_alone([&] {
    const Session session(abi);
    const Link link = link_to_self(session);
    BL_MUST_SUCCEED(session.net().dereg_mr(link.send.raw(), nullptr));
    BL_MUST_SUCCEED(session.net().dereg_mr(link.recv.raw(), nullptr));
  });
}

TEST_CASE("memory: GPU memory is refused by name where there is no GPU", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const bool sends = GENERATE(true, false);
  CAPTURE(abi, sends);
  run_alone([&] {
    MemoryScratch scratch(abi);
    if (takes_cuda(scratch.session)) return;
    const Comm& comm = sends ? scratch.link.send : scratch.link.recv;
    Memory memory(4096);
    void* mhandle = nullptr;
    clear_log();
    BL_MUST(scratch.net.reg_mr(comm.raw(), memory.at(), 4096, NCCL_PTR_CUDA, &mhandle) !=
            ncclSuccess);
    BL_MUST(mhandle == nullptr);
    BL_MUST(has_warned({"CUDA"}) || has_warned({"GPU"}));
    BL_MUST_SUCCEED(scratch.net.dereg_mr(comm.raw(), mhandle));
    const Mr host(scratch.net, scratch.link.recv, memory);
    scratch.carry_to(memory, host, 0, 4096, 1);
    memory.must_hold();
  });
}

TEST_CASE("memory: a dma-buf is refused where none is supported", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    MemoryScratch scratch(abi);
    if ((scratch.session.properties(0).ptr_support & NCCL_PTR_DMABUF) != 0) return;
    if (!scratch.net.slots().reg_mr_dma_buf) return;
    Memory memory(4096);
    void* mhandle = nullptr;
    BL_MUST(scratch.net.reg_mr_dma_buf(scratch.link.recv.raw(), memory.at(), 4096, NCCL_PTR_CUDA, 0,
                                       -1, &mhandle) != ncclSuccess);
    BL_MUST(mhandle == nullptr);
    BL_MUST(has_warned({"dma"}) || has_warned({"GPU"}));
  });
}

TEST_CASE("memory: an unknown kind of memory is an error", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const int kind = GENERATE(0, 8, -1);
  CAPTURE(abi, kind);
  run_alone([&] {
    MemoryScratch scratch(abi);
    Memory memory(4096);
    scratch.must_not_register(memory.at(), 4096, kind);
  });
}

TEST_CASE("memory: a registration of nothing is dropped or refused", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    MemoryScratch scratch(abi);
    Memory memory(4096);
    void* mhandle = nullptr;
    const ncclResult_t result =
        scratch.net.reg_mr(scratch.link.recv.raw(), memory.at(), 0, NCCL_PTR_HOST, &mhandle);
    BL_MUST((result == ncclSuccess) == (mhandle != nullptr));
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), mhandle));
    const Mr mr(scratch.net, scratch.link.recv, memory);
    scratch.carry_to(memory, mr, 0, 4096, 1);
    memory.must_hold();
  });
}

TEST_CASE("memory: memory that is not mapped is an error, not a crash", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  CAPTURE(abi);
  run_alone([&] {
    MemoryScratch scratch(abi);
    const Pages place(1 << 16);
    withdraw(place, 1 << 16);
    scratch.must_not_register(place.data(), 1 << 16);
    BL_MUST(has_warned({}));
  });
}

TEST_CASE("memory: one thread registers and drops while another moves data", "[contract][memory]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr size_t kMessages = 500;
  constexpr size_t kSize = 3000;
  constexpr size_t kWindow = 8;
  const Service registers = [](const End& end, const std::atomic<bool>& over) {
    Memory memory(1 << 20);
    std::mt19937 random(1);
    while (!over) {
      const size_t offset = random() % memory.size();
      Mr one(end.net(), end.comm, memory.at(offset), 1 + random() % (memory.size() - offset));
      Mr other(end.net(), end.comm, memory);
      one.drop();
      other.drop();
      sched_yield();
    }
  };
  run_flow(
      way,
      [&](Sender& end) {
        run_beside(registers, end, [&] {
          Buffer memory(end, kWindow * kSize);
          for (size_t i = 0; i < kMessages; ++i) {
            memory.fill(i % kWindow * kSize, kSize, static_cast<uint32_t>(i));
            end.send(memory.part(i % kWindow * kSize, kSize)).finish();
          }
        });
      },
      [&](Receiver& end) {
        run_beside(registers, end, [&] {
          Buffer memory(end, kWindow * kSize);
          for (size_t i = 0; i < kMessages; ++i) {
            end.receive(memory.part(i % kWindow * kSize, kSize)).finish();
            memory.expect(i % kWindow * kSize, kSize, static_cast<uint32_t>(i));
          }
          memory.must_hold();
        });
      });
}

TEST_CASE("memory: an invalid size is an error, and returns no handle", "[contract][memory]") {
  const Abi abi = GENERATE(from_range(main_abis()));
  const size_t wrong = GENERATE(SIZE_MAX, static_cast<size_t>(INT32_MIN));
  CAPTURE(abi, wrong);
  run_alone([&] {
    const MemoryScratch scratch(abi);
    Memory memory(100);
    void* handle = memory.at();
    const ncclResult_t result =
        scratch.net.reg_mr(scratch.link.recv.raw(), memory.at(), wrong, NCCL_PTR_HOST, &handle);
    BL_MUST(abi < Abi::kV8 ? result == ncclInvalidArgument : result != ncclSuccess);
    BL_MUST(handle == nullptr);
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), handle));
    must_carry(scratch.net, scratch.link, 1);
  });
}
