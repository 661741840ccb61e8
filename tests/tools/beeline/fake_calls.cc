// SPDX-License-Identifier: Apache-2.0
#include "tests/tools/beeline/fake_calls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "tests/tools/beeline/fake_fault.h"

namespace fake {
namespace {

using beeline::UniqueFd;

constexpr int kPollsBeforeConnect = 3;

// The contents of the 128 bytes: the part that listen writes, and the part that connect uses
// itself.
struct Handle {
  std::uint16_t port;
  int polls;
  int fd;
};
static_assert(sizeof(Handle) <= NCCL_NET_HANDLE_MAXSIZE);

std::atomic<long> posted_sends{0};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool registered(const void* mhandle, const void* data, size_t size) {
  return mhandle != nullptr && static_cast<const Registration*>(mhandle)->covers(data, size);
}

}  // namespace

ncclResult_t start(ncclDebugLogger_t log) {
  log(NCCL_LOG_INFO, NCCL_NET, __FILE__, __LINE__, "NET/Fake : init of process %d", ::getpid());
  const char* const how = std::getenv("FAKE_INIT");
  if (how != nullptr && std::string(how) == "fail") {
    log(NCCL_LOG_WARN, NCCL_NET, __FILE__, __LINE__, "NET/Fake : told to fail");
    return ncclSystemError;
  }
  return ncclSuccess;
}

ncclResult_t devices(int* count) {
  const char* const number = std::getenv("FAKE_DEVICES");
  *count = number == nullptr ? 2 : std::atoi(number);
  return ncclSuccess;
}

ncclResult_t listen(int /*dev*/, void* handle, void** comm) {
  auto* const listener = new Listener{UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0))};
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener->fd.get(), generic, length) != 0 || ::listen(listener->fd.get(), 8) != 0 ||
      ::getsockname(listener->fd.get(), generic, &length) != 0) {
    delete listener;
    return ncclSystemError;
  }
  const Handle ours{address.sin_port, 0, -1};
  std::memcpy(handle, &ours, sizeof ours);
  *comm = listener;
  return ncclSuccess;
}

// Returns no comm a few times, and keeps the count in the handle.
ncclResult_t connect(int /*dev*/, void* handle, void** comm,
                     ncclNetDeviceHandle_t** /*on_device*/) {
  auto* const state = static_cast<Handle*>(handle);
  *comm = nullptr;
  if (++state->polls < kPollsBeforeConnect) return ncclSuccess;
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(state->port);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return ncclRemoteError;
  }
  const int one = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  *comm = new Comm(std::move(fd));
  return ncclSuccess;
}

ncclResult_t accept(void* listener, void** comm, ncclNetDeviceHandle_t** /*on_device*/) {
  *comm = nullptr;
  UniqueFd fd(::accept(static_cast<Listener*>(listener)->fd.get(), nullptr, nullptr));
  if (fd) *comm = new Comm(std::move(fd));
  return ncclSuccess;
}

ncclResult_t reg_mr(void* /*comm*/, void* data, size_t size, int type, void** mhandle) {
  if (type != NCCL_PTR_HOST || size == 0) return ncclInvalidArgument;
  *mhandle = new Registration{static_cast<const char*>(data), size};
  return ncclSuccess;
}

ncclResult_t dereg_mr(void* /*comm*/, void* mhandle) {
  delete static_cast<Registration*>(mhandle);
  return ncclSuccess;
}

ncclResult_t isend(void* comm, void* data, size_t size, int tag, void* mhandle, void** request) {
  if (!registered(mhandle, data, size)) return ncclInvalidArgument;
  const long number = posted_sends + 1;
  if (fault_is(Fault::kFail, number)) return ncclRemoteError;
  if (fault_is(Fault::kDie, number)) ::raise(SIGKILL);
  while (fault_is(Fault::kBlock, number)) ::pause();
  Request send;
  send.parts[0] = {static_cast<char*>(data), size, tag};
  *request = static_cast<Comm*>(comm)->post(Request::Kind::kSend, send, kMostSends);
  if (*request != nullptr) ++posted_sends;
  return ncclSuccess;
}

ncclResult_t iflush(void* comm, int /*n*/, void** /*data*/, int* /*sizes*/, void** /*mhandles*/,
                    void** request) {
  *request = static_cast<Comm*>(comm)->post(Request::Kind::kFlush, {}, 1);
  return ncclSuccess;
}

ncclResult_t test(void* opaque, int* done, int* sizes) {
  auto* const request = static_cast<Request*>(opaque);
  *done = 0;
  if (request->kind == Request::Kind::kFree)
    return ncclInvalidArgument;  // it was already completed
  if (request->kind == Request::Kind::kFlush) {
    request->done = std::exchange(request->seen, true);
  } else {
    const ncclResult_t result = request->comm->progress();
    // Data that arrived before the peer closed still has to be reported.
    if (result != ncclSuccess && !request->done) return result;
  }
  if (!request->done) return ncclSuccess;
  for (int i = 0; i < request->n && sizes != nullptr; ++i) {
    sizes[i] = request->parts[static_cast<size_t>(i)].arrived;
  }
  if (request->kind == Request::Kind::kSend && sizes != nullptr) {
    sizes[0] = static_cast<int>(request->parts[0].size);
  }
  *done = 1;
  request->comm->release(request);
  return ncclSuccess;
}

ncclResult_t irecv(void* comm, const Request& group, void** mhandles, void** request) {
  if (group.n < 1) return ncclInvalidArgument;
  for (size_t i = 0; i < static_cast<size_t>(group.n); ++i) {
    const Request::Part& part = group.parts[i];
    if (!registered(mhandles[i], part.data, part.size)) return ncclInvalidArgument;
  }
  *request = static_cast<Comm*>(comm)->post(Request::Kind::kRecv, group, kMostGroups);
  return ncclSuccess;
}

}  // namespace fake
