// SPDX-License-Identifier: Apache-2.0
//
// Writes credit lines into the sender's ring, from the copy of the ring at this end. In a header,
// to become part of irecv.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "common/base/hot.h"
#include "plugin/transfer/path.h"
#include "plugin/transfer/work_id.h"
#include "plugin/wire/credit.h"

namespace beeline {

class GrantWriter {
 public:
  // Only one grant in this many is signaled: its completion frees the places of all of them in the
  // send queue.
  static constexpr std::uint32_t kSignalEvery = 16;

  // `to_ring` is the distance from a line at this end to that of the sender.
  GrantWriter(std::uint64_t to_ring, Path& path) noexcept : to_ring_(to_ring) {
    wr_.wr_id = work_id::kGrant;
    wr_.sg_list = &sge_;
    wr_.num_sge = 1;
    wr_.opcode = IBV_WR_RDMA_WRITE;
    sge_.length = sizeof(wire::CreditLine);
    use(path);
  }
  GrantWriter(const GrantWriter&) = delete;
  GrantWriter& operator=(const GrantWriter&) = delete;

  Path& path() const noexcept { return *path_; }
  // Grants go by this path from now on.
  void use(Path& path) noexcept {
    path_ = &path;
    wr_.send_flags = flags(path);
    sge_.lkey = path.lkey;
    wr_.wr.rdma.rkey = path.window_key;
  }
  // Prepares the grant of one line, which post() then writes.
  BL_INLINED void describe(const wire::CreditLine& line) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(&line);
    sge_.addr = address;
    wr_.wr.rdma.remote_addr = address + to_ring_;
  }
  // `path` is path(), as an argument, because the fast irecv of a comm with one path need not load
  // it. Returns 0, or the errno of ibv_post_send.
  BL_INLINED int post(Path& path);
  // Writes `count` lines, which follow each other in the ring. Returns as post().
  BL_INLINED int write(const wire::CreditLine& first, std::uint32_t count);

 private:
  BL_SLOW int post_signaled() noexcept {
    path_->to_next_signal = kSignalEvery;
    wr_.send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* refused = nullptr;
    const int rc = ibv_post_send(path_->qp, &wr_, &refused);
    wr_.send_flags = flags(*path_);
    return rc;
  }
  // For the bytes that are described.
  unsigned flags(const Path& path) const noexcept {
    return sge_.length <= path.max_inline ? unsigned{IBV_SEND_INLINE} : 0;
  }

  std::uint64_t to_ring_;
  ibv_send_wr wr_{};  // for every grant: only the fields that change are written
  ibv_sge sge_{};     // of wr_
  Path* path_;
};

BL_INLINED int GrantWriter::post(Path& path) {
  ibv_send_wr* refused;
  int rc;
  if (--path.to_next_signal == 0) [[unlikely]] {
    rc = post_signaled();
  } else {
    rc = ibv_post_send(path.qp, &wr_, &refused);
  }
  if (rc == 0) [[likely]]
    --path.send_free;
  return rc;
}

BL_INLINED int GrantWriter::write(const wire::CreditLine& first, std::uint32_t count) {
  Path& path = *path_;
  sge_.length = count * static_cast<std::uint32_t>(sizeof(wire::CreditLine));
  wr_.send_flags = flags(path);
  describe(first);
  const int rc = post(path);
  sge_.length = sizeof(wire::CreditLine);
  wr_.send_flags = flags(path);
  return rc;
}

}  // namespace beeline
