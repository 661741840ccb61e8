// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/payload.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "common/base/clock.h"
#include "softnic/nic/deferred_writes.h"

namespace softnic {
namespace {

using Copied = Peer::Copied;

constexpr std::uint64_t kLineBytes = 64;  // a cache line is always written as a whole
constexpr std::uint64_t kMaxParts = 8;
constexpr std::int64_t kScatterPauseNs = 50 * beeline::kNsPerUs;

Pieces cut(const Pieces& all, std::uint64_t offset, std::uint64_t length) {
  Pieces part;
  Window window(offset, length, part);
  for (std::size_t i = 0; i < all.count; ++i) {
    window.add(reinterpret_cast<std::uint64_t>(all.piece[i].iov_base), all.piece[i].iov_len);
  }
  return part;
}

// Writes to the program's memory by a system call, as a device would: sanitizers do not see it.
bool deliver(const Pieces& ours, const std::uint64_t& value) {
  const iovec from = {const_cast<std::uint64_t*>(&value), sizeof value};
  return ::process_vm_writev(::getpid(), &from, 1, ours.piece.data(), ours.count, 0) ==
         static_cast<ssize_t>(sizeof value);
}

// Atomic, because the program may read the byte at the same time.
void flip_here(const iovec& piece) {
  auto* byte = static_cast<std::uint8_t*>(piece.iov_base) + piece.iov_len / 2;
  std::atomic_ref(*byte).fetch_xor(1);
}

std::uint64_t address_of(const iovec& piece) {
  return reinterpret_cast<std::uint64_t>(piece.iov_base);
}

void pause_between_parts() {
  const std::int64_t end = beeline::now_ns() + kScatterPauseNs;
  do {
    ::sched_yield();
  } while (beeline::now_ns() < end);
}

}  // namespace

bool Payload::apply_all_deferred(const MemoryPieces& theirs) {
  return theirs.for_each_deferring([&](MrRecord& region, const iovec& piece) {
    return apply_deferred(runtime_, peer_, region, address_of(piece), piece.iov_len);
  });
}

bool Payload::record_all_deferred(const MemoryPieces& theirs) {
  return theirs.for_each_deferring([&](MrRecord& region, const iovec& piece) {
    return record_deferred(runtime_, peer_, region, address_of(piece), piece.iov_len);
  });
}

// Writes the message in parts, from the end to the beginning, with pauses between them.
Copied Payload::write_scattered(const Pieces& ours, const Pieces& theirs, std::uint64_t bytes) {
  const std::uint64_t lines = (bytes + kLineBytes - 1) / kLineBytes;
  const std::uint64_t part = (lines + kMaxParts - 1) / kMaxParts * kLineBytes;
  for (std::uint64_t end = bytes; end != 0;) {
    const std::uint64_t begin = (end - 1) / part * part;
    const Pieces from = cut(ours, begin, end - begin);
    const Pieces to = cut(theirs, begin, end - begin);
    const Copied copied =
        peer_.write(from.piece.data(), from.count, to.piece.data(), to.count, end - begin);
    if (copied != Copied::kDone) return copied;
    end = begin;
    if (end != 0) pause_between_parts();
  }
  return Copied::kDone;
}

Copied Payload::write(const Pieces& ours, const MemoryPieces& theirs, std::uint64_t bytes,
                      bool corrupt) {
  const Pieces there = theirs.staged();
  const bool scatter = runtime_.header().hazards.scatter.load(std::memory_order_relaxed) != 0;
  const Copied copied =
      scatter && bytes > kLineBytes
          ? write_scattered(ours, there, bytes)
          : peer_.write(ours.piece.data(), ours.count, there.piece.data(), there.count, bytes);
  if (copied != Copied::kDone) return copied;
  if (corrupt) flip_there(there.piece[0]);
  return record_all_deferred(theirs) ? Copied::kDone : Copied::kGone;
}

Copied Payload::read(const Pieces& ours, const MemoryPieces& theirs, std::uint64_t bytes,
                     bool corrupt) {
  if (!apply_all_deferred(theirs)) return Copied::kFault;
  const Pieces& there = theirs.pieces;
  const Copied copied =
      peer_.read(ours.piece.data(), ours.count, there.piece.data(), there.count, bytes);
  if (copied == Copied::kDone && corrupt) flip_here(ours.piece[0]);
  return copied;
}

// The lock serializes all atomic operations on the peer's memory. The operation takes effect with
// the write of the new value, so a holder that dies earlier has changed nothing.
Copied Payload::operate(const Pieces& ours, const MemoryPieces& theirs, const Atomic& operation) {
  RobustLock& lock = peer_.arena().header().atomic_lock;
  std::uint64_t before = 0;
  const iovec place = {&before, sizeof before};
  runtime_.take(lock);
  Copied copied = read({{place}, 1}, theirs, sizeof before, false);
  const bool changes = !operation.compares || before == operation.compare_add;
  if (copied == Copied::kDone && changes) {
    std::uint64_t after = operation.compares ? operation.swap : before + operation.compare_add;
    const iovec value = {&after, sizeof after};
    copied = write({{value}, 1}, theirs, sizeof after, false);
  }
  lock.unlock();
  if (copied != Copied::kDone) return copied;
  return deliver(ours, before) ? Copied::kDone : Copied::kFault;
}

// Flips a bit in the middle of the first piece.
void Payload::flip_there(const iovec& piece) {
  auto* byte = static_cast<std::byte*>(piece.iov_base) + piece.iov_len / 2;
  std::byte value{};
  const iovec ours = {&value, 1};
  const iovec there = {byte, 1};
  if (peer_.read(&ours, 1, &there, 1, 1) != Copied::kDone) return;
  value ^= std::byte{1};
  (void)peer_.write(&ours, 1, &there, 1, 1);
}

}  // namespace softnic
