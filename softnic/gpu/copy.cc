// SPDX-License-Identifier: Apache-2.0
// Host memory is accessed by system calls, which report bad addresses as errors.
#include "softnic/gpu/copy.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace softnic::gpu {
namespace {

// Calls `move(bytes copied so far)` until all bytes are copied. Returns false if a call copies
// nothing.
template <class Move>
bool all_of(std::size_t length, Move move) {
  for (std::size_t done = 0; done < length;) {
    const ssize_t moved = move(done);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

off_t place(const Piece& piece, std::size_t done) {
  return static_cast<off_t>(piece.offset + done);
}

}  // namespace

bool copy_in(const std::vector<Piece>& to, const void* from) {
  const auto* source = static_cast<const std::byte*>(from);
  for (const Piece& piece : to) {
    const bool whole = all_of(piece.length, [&](std::size_t done) {
      return ::pwrite(piece.pages->file(), source + done, piece.length - done, place(piece, done));
    });
    if (!whole) return false;
    source += piece.length;
  }
  return true;
}

bool copy_out(void* to, const std::vector<Piece>& from) {
  auto* target = static_cast<std::byte*>(to);
  for (const Piece& piece : from) {
    const bool whole = all_of(piece.length, [&](std::size_t done) {
      return ::pread(piece.pages->file(), target + done, piece.length - done, place(piece, done));
    });
    if (!whole) return false;
    target += piece.length;
  }
  return true;
}

bool copy_on_host(void* to, const void* from, std::size_t length) {
  return all_of(length, [&](std::size_t done) {
    const iovec source{static_cast<std::byte*>(const_cast<void*>(from)) + done, length - done};
    const iovec target{static_cast<std::byte*>(to) + done, length - done};
    return ::process_vm_writev(::getpid(), &source, 1, &target, 1, 0);
  });
}

void copy_across(const std::vector<Piece>& to, const std::vector<Piece>& from) {
  std::size_t in_from = 0;
  auto source = from.begin();
  for (const Piece& target : to) {
    for (std::size_t done = 0; done < target.length;) {
      const std::size_t here = std::min(target.length - done, source->length - in_from);
      std::memmove(target.bytes() + done, source->bytes() + in_from, here);
      done += here;
      in_from += here;
      if (in_from < source->length) continue;
      ++source;
      in_from = 0;
    }
  }
}

}  // namespace softnic::gpu
