// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/beeline/fake_comm.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "tests/tools/beeline/fake_fault.h"

namespace fake {
namespace {

constexpr long kRefuseEvery = 7;

std::atomic<long> messages_sent{0};
std::atomic<long> messages_received{0};

// Returns the bytes moved; 0: none now; -1: the peer has closed.
ssize_t moved(ssize_t n) {
  if (n > 0) return n;
  return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

}  // namespace

Request* Comm::post(Request::Kind kind, const Request& what, size_t limit) {
  if (++calls_ % kRefuseEvery == 0 || (kind != Request::Kind::kFlush && queue_.size() >= limit)) {
    return nullptr;
  }
  for (Request& request : pool_) {
    if (request.kind != Request::Kind::kFree) continue;
    request = what;
    request.kind = kind;
    request.comm = this;
    if (kind != Request::Kind::kFlush) queue_.push_back(&request);
    return &request;
  }
  return nullptr;
}

void Comm::release(Request* request) { request->kind = Request::Kind::kFree; }

ncclResult_t Comm::progress() {
  while (!queue_.empty()) {
    const size_t before = queue_.size();
    const ncclResult_t result =
        queue_.front()->kind == Request::Kind::kSend ? send_more() : receive_more();
    if (result != ncclSuccess) return result;
    if (queue_.size() == before) break;
  }
  return ncclSuccess;
}

ncclResult_t Comm::send_more() {
  Request& request = *queue_.front();
  Request::Part& part = request.parts[0];
  if (header_done_ == 0) {
    const long number = messages_sent + 1;
    if (fault_is(Fault::kStall, number)) return ncclSuccess;
    header_ = {static_cast<std::uint32_t>(part.size), part.tag};
    ++messages_sent;
  }
  while (header_done_ < sizeof header_ + part.size) {
    const bool in_header = header_done_ < sizeof header_;
    const char* const from = in_header ? reinterpret_cast<const char*>(&header_) + header_done_
                                       : part.data + (header_done_ - sizeof header_);
    const size_t left =
        in_header ? sizeof header_ - header_done_ : sizeof header_ + part.size - header_done_;
    const ssize_t n = moved(::send(fd_.get(), from, left, MSG_DONTWAIT | MSG_NOSIGNAL));
    if (n < 0) return ncclRemoteError;
    if (n == 0) return ncclSuccess;
    header_done_ += static_cast<size_t>(n);
  }
  header_done_ = 0;
  request.done = true;
  queue_.pop_front();
  return ncclSuccess;
}

// The buffer for the message: in the oldest group, the first empty one with its tag.
ncclResult_t Comm::begin_message() {
  Request& group = *queue_.front();
  for (int i = 0; i < group.n; ++i) {
    Request::Part& part = group.parts[static_cast<size_t>(i)];
    if (part.filled || part.tag != header_.tag) continue;
    if (header_.size > part.size) return ncclInvalidUsage;
    part_ = &part;
    body_done_ = 0;
    return ncclSuccess;
  }
  return ncclInvalidUsage;
}

void Comm::finish_message() {
  const long number = ++messages_received;
  part_->filled = true;
  part_->arrived = static_cast<int>(header_.size);
  if (fault_is(Fault::kCorrupt, number) && header_.size > 0) part_->data[header_.size / 2] ^= 4;
  if (fault_is(Fault::kOverrun, number)) part_->data[part_->size] ^= 1;
  if (fault_is(Fault::kSize, number)) part_->arrived -= 1;
  if (fault_is(Fault::kUnwritten, number)) std::memset(part_->data, 0xDB, header_.size);
  part_ = nullptr;
  header_done_ = 0;
  Request& group = *queue_.front();
  for (int i = 0; i < group.n; ++i) {
    if (!group.parts[static_cast<size_t>(i)].filled) return;
  }
  group.done = true;
  queue_.pop_front();
}

ncclResult_t Comm::receive_more() {
  for (const Request* group = queue_.front(); !queue_.empty() && queue_.front() == group;) {
    if (header_done_ < sizeof header_) {
      const ssize_t n = moved(::recv(fd_.get(), reinterpret_cast<char*>(&header_) + header_done_,
                                     sizeof header_ - header_done_, MSG_DONTWAIT));
      if (n < 0) return ncclRemoteError;
      if (n == 0) return ncclSuccess;
      header_done_ += static_cast<size_t>(n);
      continue;
    }
    if (part_ == nullptr) {
      const ncclResult_t result = begin_message();
      if (result != ncclSuccess) return result;
    }
    if (body_done_ < header_.size) {
      const ssize_t n = moved(
          ::recv(fd_.get(), part_->data + body_done_, header_.size - body_done_, MSG_DONTWAIT));
      if (n < 0) return ncclRemoteError;
      if (n == 0) return ncclSuccess;
      body_done_ += static_cast<size_t>(n);
    }
    if (body_done_ == header_.size) finish_message();
  }
  return ncclSuccess;
}

}  // namespace fake
