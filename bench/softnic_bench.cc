// SPDX-License-Identifier: Apache-2.0
//
// The speed of softnic between two processes, compared with the limits of the machine. Both are
// measured alternately in the same run, so that other work on the machine affects both. Prints the
// results, and never fails because of a speed.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "bench/bench_report.h"
#include "bench/machine_limits.h"
#include "bench/support/endpoint.h"
#include "bench/support/ranks.h"
#include "bench/support/samples.h"

namespace beeline::bench {
namespace {

constexpr const char* kDevice = "softnic0";
constexpr int kRounds = 20;

// The layout of the registered memory of each process.
constexpr size_t kInbox = 0;
constexpr size_t kOutbox = 64;
constexpr size_t kFirstBlock = 4096;
constexpr size_t kBlocks = 16;
constexpr size_t kMemoryBytes = kFirstBlock + kBlocks * kBlockBytes;
constexpr size_t block_at(size_t number) { return kFirstBlock + number * kBlockBytes; }

constexpr uint64_t kPings = 2000;  // a round
// Timed batches are short, so that most are not interrupted by other work on the processor.
constexpr size_t kBlocksABatch = 4;
constexpr size_t kBlockBatches = 32;  // a round
constexpr size_t kSmallBytes = 64;
constexpr int kSmallBatches = 40;  // a round
constexpr size_t kSmallABatch = 256;
constexpr size_t kSmallASignal = 16;  // one in so many requests a completion
static_assert(3 * kSmallASignal <= kWritesAtATime);

// --- 8-byte writes in both directions ------------------------------------------------------------

unsigned signaled_if(bool ask) { return ask ? unsigned{IBV_SEND_SIGNALED} : 0u; }

uint64_t& word_at(Endpoint& end, size_t place) {
  return *reinterpret_cast<uint64_t*>(end.memory() + place);
}

void send_word(Endpoint& end, uint64_t word) {
  word_at(end, kOutbox) = word;
  const bool ask = word % kSmallASignal == 0;
  end.post({kOutbox, kInbox, sizeof(word), IBV_SEND_INLINE | signaled_if(ask)});
  if (ask) end.wait_for(1);
}

// Another processor writes the word to this heap memory.
void await_word(Endpoint& end, uint64_t word) {
  const std::atomic_ref<uint64_t> inbox(word_at(end, kInbox));
  Spin spin;
  while (inbox.load(std::memory_order_acquire) != word) spin();
}

void ping(Endpoint& end, uint64_t first, Samples& one_way_ns) {
  for (uint64_t word = first; word < first + kPings; ++word) {
    one_way_ns.add(timed_ns([&] {
                     send_word(end, word);
                     await_word(end, word);
                   }) /
                   2);
  }
}

void pong(Endpoint& end, uint64_t first) {
  for (uint64_t word = first; word < first + kPings; ++word) {
    await_word(end, word);
    send_word(end, word);
  }
}

// --- Streams, from rank 0; rank 1 sleeps ---------------------------------------------------------

void write_blocks(Endpoint& end, size_t first) {
  for (size_t i = first; i < first + kBlocksABatch; ++i) {
    end.post({block_at(i), block_at(i), kBlockBytes});
  }
  end.wait_for(kBlocksABatch);
}

void copy_blocks(Endpoint& end, std::vector<std::byte>& to, size_t first) {
  for (size_t i = first; i < first + kBlocksABatch; ++i) {
    std::memcpy(&to[block_at(i)], end.memory() + block_at(i), kBlockBytes);
  }
}

void write_blocks_by_kernel(Endpoint& end, ForeignMemory& foreign, size_t first) {
  for (size_t i = first; i < first + kBlocksABatch; ++i) {
    foreign.write_block(end.peer().address + block_at(i),
                        {end.memory() + block_at(i), kBlockBytes});
  }
}

void write_small(Endpoint& end) {
  size_t asked = 0;
  for (size_t i = 1; i <= kSmallABatch; ++i) {
    const bool ask = i % kSmallASignal == 0;
    end.post({kOutbox, kInbox, kSmallBytes, signaled_if(ask)});
    if (ask && ++asked > 2) end.wait_for(1);
  }
  end.wait_for(2);
}

// Each method moves the same blocks before the next one. The first finds them uncached, so the
// order changes.
void measure_blocks(Endpoint& end, ForeignMemory& foreign, std::vector<std::byte>& copy_to,
                    size_t turn, Times& times) {
  const size_t first = turn * kBlocksABatch % kBlocks;
  const auto add = [](Samples& samples, auto&& move) {
    samples.add(timed_ns(move) / kBlocksABatch);
  };
  for (size_t way = turn; way < turn + 3; ++way) {
    if (way % 3 == 0) add(times.block, [&] { write_blocks(end, first); });
    if (way % 3 == 1) add(times.copy, [&] { copy_blocks(end, copy_to, first); });
    if (way % 3 == 2) add(times.kernel_block, [&] { write_blocks_by_kernel(end, foreign, first); });
  }
}

void measure_small(Endpoint& end, ForeignMemory& foreign, Times& times) {
  for (int batch = 0; batch < kSmallBatches; ++batch) {
    times.small.add(timed_ns([&] { write_small(end); }) / kSmallABatch);
  }
  for (uint64_t i = 0; i < kPings; ++i) {
    times.kernel_word.add(timed_ns([&] { foreign.write_word(end.peer().address + kOutbox, i); }));
  }
}

// --- The two processes ---------------------------------------------------------------------------

void drive(test::Peer& peer, CacheLine& line) {
  Endpoint end(kDevice, kMemoryBytes);
  end.connect(peer, 1);
  ForeignMemory foreign(peer.receive<pid_t>(1));
  std::vector<std::byte> copy_to(kMemoryBytes);
  std::memset(end.memory() + kFirstBlock, 0x5a, kMemoryBytes - kFirstBlock);
  Times times;
  for (uint64_t round = 0; round < kRounds; ++round) {
    peer.meet();
    pass_cache_line(line, times.line);
    peer.meet();
    ping(end, 1 + round * kPings, times.ping);
    peer.meet();
    for (size_t batch = 0; batch < kBlockBatches; ++batch) {
      measure_blocks(end, foreign, copy_to, round * kBlockBatches + batch, times);
    }
    measure_small(end, foreign, times);
  }
  peer.meet();
  print_report(times);
}

void answer(test::Peer& peer, CacheLine& line) {
  Endpoint end(kDevice, kMemoryBytes);
  end.connect(peer, 0);
  peer.send(0, getpid());
  for (uint64_t round = 0; round < kRounds; ++round) {
    peer.meet();
    return_cache_line(line);
    peer.meet();
    pong(end, 1 + round * kPings);
    peer.meet();
  }
  peer.meet();
}

}  // namespace
}  // namespace beeline::bench

int main() {
  using namespace beeline::bench;
  CacheLine& line = CacheLine::make_shared();
  return run_ranks({{"h0", [&](beeline::test::Peer& peer) { drive(peer, line); }},
                    {"h1", [&](beeline::test::Peer& peer) { answer(peer, line); }}});
}
