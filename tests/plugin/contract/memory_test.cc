// SPDX-License-Identifier: Apache-2.0
//
// regMr and deregMr: any range of memory, any number of times, at any time.
#include <sys/mman.h>

#include <algorithm>
#include <random>

#include "tests/plugin/contract/flow.h"
#include "tests/plugin/contract/plugin_log.h"
#include "tests/support/catch.h"

using namespace beeline::test;

namespace {

// A session with a connection to itself, and a registered source buffer.
struct MemoryScratch : LinkedSession {
  explicit MemoryScratch(Abi abi = kNewest) : LinkedSession(abi), source(net, link.send, 1 << 16) {}

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
  run_alone([&] {
    MemoryScratch scratch;
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

TEST_CASE("memory: registrations may overlap and outlive each other", "[contract][memory]") {
  run_alone([&] {
    constexpr size_t kSize = 1 << 18;
    constexpr size_t kMost = 40;
    std::mt19937 random(1);
    const auto below = [&](size_t limit) { return static_cast<size_t>(random()) % limit; };
    struct Piece {
      size_t offset;
      size_t size;
      Mr mr;
    };
    MemoryScratch scratch;
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

TEST_CASE("memory: other pages at the same address are other memory", "[contract][memory]") {
  run_alone([&] {
    constexpr size_t kSize = 1 << 16;
    MemoryScratch scratch;
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
  run_alone([&] {
    constexpr size_t kSize = 1 << 16;
    MemoryScratch scratch;
    const Pages place(kSize);
    Mr(scratch.net, scratch.link.recv, place.data(), kSize).drop();
    withdraw(place, kSize);
    scratch.must_not_register(place.data(), kSize);
  });
}

TEST_CASE("memory: GPU memory is refused by name where there is no GPU, and so is a dma-buf",
          "[contract][memory]") {
  run_alone([&] {
    MemoryScratch scratch;
    if (takes_cuda(scratch.session)) return;
    Memory memory(4096);
    clear_log();
    scratch.must_not_register(memory.at(), 4096, NCCL_PTR_CUDA);
    BL_MUST(has_warned({"CUDA"}) || has_warned({"GPU"}));
    void* mhandle = nullptr;
    BL_MUST(scratch.net.reg_mr_dma_buf(scratch.link.recv.raw(), memory.at(), 4096, NCCL_PTR_CUDA, 0,
                                       -1, &mhandle) != ncclSuccess);
    BL_MUST(mhandle == nullptr);
    const Mr host(scratch.net, scratch.link.recv, memory);
    scratch.carry_to(memory, host, 0, 4096, 1);
    memory.must_hold();
  });
}

TEST_CASE("memory: what cannot be registered is an error, and returns no handle",
          "[contract][memory]") {
  const Abi abi = GENERATE(Abi::kV6, Abi::kV8, Abi::kV12);  // the size is an int up to v7
  CAPTURE(abi);
  run_alone([&] {
    const MemoryScratch scratch(abi);
    Memory memory(4096);
    for (const int kind : {0, 8, -1}) scratch.must_not_register(memory.at(), 4096, kind);
    for (const size_t size : {SIZE_MAX, static_cast<size_t>(INT32_MIN)}) {
      scratch.must_not_register(memory.at(), size);
    }
    clear_log();
    const Pages unmapped(1 << 16);
    withdraw(unmapped, 1 << 16);
    scratch.must_not_register(unmapped.data(), 1 << 16);
    BL_MUST(has_warned({}));
    void* mhandle = nullptr;
    const ncclResult_t nothing =
        scratch.net.reg_mr(scratch.link.recv.raw(), memory.at(), 0, NCCL_PTR_HOST, &mhandle);
    BL_MUST((nothing == ncclSuccess) == (mhandle != nullptr));
    BL_MUST_SUCCEED(scratch.net.dereg_mr(scratch.link.recv.raw(), mhandle));
    must_carry(scratch.net, scratch.link, 1);
  });
}

TEST_CASE("memory: one thread registers and drops while another moves data", "[contract][memory]") {
  const Way way = GENERATE(from_range(ways()));
  CAPTURE(way);
  constexpr uint32_t kMessages = 500;
  constexpr size_t kSize = 3000;
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
        run_beside(registers, end, [&] { send_messages(end, kSize, kMessages); });
      },
      [&](Receiver& end) {
        run_beside(registers, end, [&] { receive_messages(end, kSize, kMessages); });
      });
}
