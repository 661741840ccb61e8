// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/contract/session.h"

#include <sched.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "tests/plugin/contract/plugin_log.h"

namespace beeline::test {
namespace {

// NCCL's loader calls init and finalize under a lock, and init of a table without contexts once.
std::mutex& loader() {
  static std::mutex one;
  return one;
}
int& sessions_of(Abi abi) {
  static std::map<Abi, int> counts;
  return counts[abi];
}

// Stands in output arguments before a call, as the pointer of an earlier use would.
int stale_place;
void* const kStale = &stale_place;

constexpr int kUntouched = 0x5A5A5A5A;
// Entries that NCCL provides for the sizes of a receive.
constexpr size_t kSizesRoom = 64;

}  // namespace

Session::Session(Abi abi, int traffic_class) : net_(Net::load(abi)), config_{traffic_class} {
  const std::lock_guard lock(loader());
  net_->set_connect_config(&config_);
  if (has_context(abi) || sessions_of(abi) == 0) {
    BL_MUST_SUCCEED(net_->init(&context_, &config_, &keep_log_line));
  }
  ++sessions_of(abi);
}

Session::~Session() {
  const std::lock_guard lock(loader());
  --sessions_of(net_->abi());
  (void)net_->finalize(context_);
}

int Session::devices() const {
  int count = -1;
  BL_MUST_SUCCEED(net_->devices(&count));
  BL_MUST(count >= 0);
  return count;
}

Properties Session::properties(int dev) const {
  Properties found{};
  BL_MUST_SUCCEED(net_->properties(dev, 0xA5, &found));
  return found;
}

// --- Comms -------------------------------------------------------------------------------------

namespace {

ncclResult_t close_raw(Net& net, CommKind kind, void* raw) {
  switch (kind) {
    case CommKind::kListen: return net.close_listen(raw);
    case CommKind::kSend: return net.close_send(raw);
    case CommKind::kRecv: return net.close_recv(raw);
  }
  return ncclInternalError;
}

}  // namespace

Comm::~Comm() {
  if (raw_ != nullptr) (void)close_raw(*net_, kind_, raw_);
}

void Comm::close() { BL_MUST_SUCCEED(close_raw(*net_, kind_, std::exchange(raw_, nullptr))); }

Attempt try_connect(const Session& session, int dev, Handle& handle) {
  void* comm = kStale;
  ncclNetDeviceHandle_t* device = nullptr;
  const ncclResult_t result =
      session.net().connect(session.context(), dev, handle.bytes.data(), &comm, &device);
  BL_MUST(result != ncclInProgress && result != ncclTimeout);
  BL_MUST(result == ncclSuccess || comm == nullptr);
  BL_MUST(comm != kStale);
  BL_MUST(device == nullptr);
  return {result, comm};
}

Attempt try_accept(const Session& session, const Comm& listener) {
  void* comm = kStale;
  ncclNetDeviceHandle_t* device = nullptr;
  const ncclResult_t result = session.net().accept(listener.raw(), &comm, &device);
  BL_MUST(result != ncclInProgress && result != ncclTimeout);
  BL_MUST(result == ncclSuccess || comm == nullptr);
  BL_MUST(comm != kStale);
  BL_MUST(device == nullptr);
  return {result, comm};
}

Comm listen(const Session& session, int dev, Handle* handle) {
  void* comm = nullptr;
  BL_MUST_SUCCEED(session.net().listen(session.context(), dev, handle->bytes.data(), &comm));
  BL_MUST(comm != nullptr);
  return {session.net(), CommKind::kListen, comm};
}

Comm connect(const Session& session, int dev, Handle& handle) {
  Attempt attempt{};
  wait_until(
      [&] {
        attempt = try_connect(session, dev, handle);
        BL_MUST_SUCCEED(attempt.result);
        return attempt.comm != nullptr;
      },
      "connect");
  return {session.net(), CommKind::kSend, attempt.comm};
}

Comm accept(const Session& session, const Comm& listener) {
  Attempt attempt{};
  wait_until(
      [&] {
        attempt = try_accept(session, listener);
        BL_MUST_SUCCEED(attempt.result);
        return attempt.comm != nullptr;
      },
      "accept");
  return {session.net(), CommKind::kRecv, attempt.comm};
}

Link link_between(const Session& sender, int send_dev, Handle& handle, const Session& receiver,
                  const Comm& listener) {
  Attempt out{};
  Attempt in{};
  wait_until(
      [&] {
        if (out.comm == nullptr) out = try_connect(sender, send_dev, handle);
        BL_MUST_SUCCEED(out.result);
        if (in.comm == nullptr) in = try_accept(receiver, listener);
        BL_MUST_SUCCEED(in.result);
        return out.comm != nullptr && in.comm != nullptr;
      },
      "a connection");
  return {{sender.net(), CommKind::kSend, out.comm}, {receiver.net(), CommKind::kRecv, in.comm}};
}

Link link_to_self(const Session& session, int send_dev, int recv_dev) {
  Handle handle{};
  Comm listener = listen(session, recv_dev, &handle);
  Link link = link_between(session, send_dev, handle, session, listener);
  listener.close();
  return link;
}

// --- Registrations -----------------------------------------------------------------------------

Mr::Mr(Net& net, const Comm& comm, void* data, size_t size) : net_(&net), comm_(comm.raw()) {
  BL_MUST_SUCCEED(net.reg_mr(comm_, data, size, NCCL_PTR_HOST, &raw_));
  BL_MUST(raw_ != nullptr);
}

Mr::~Mr() {
  if (raw_ != nullptr) (void)net_->dereg_mr(comm_, raw_);
}

void Mr::drop() { BL_MUST_SUCCEED(net_->dereg_mr(comm_, std::exchange(raw_, nullptr))); }

// --- Requests ----------------------------------------------------------------------------------

ncclResult_t Request::try_poll() {
  if (done_) return ncclSuccess;
  std::array<int, kSizesRoom> sizes;
  sizes.fill(kUntouched);
  int done = kUntouched;
  // NCCL passes no place for sizes when it tests a flush.
  const ncclResult_t result = net_->test(raw_, &done, parts_ == 0 ? nullptr : sizes.data());
  BL_MUST(result != ncclInProgress && result != ncclTimeout);
  const auto behind = sizes.begin() + static_cast<ptrdiff_t>(parts_);
  BL_MUST(std::all_of(behind, sizes.end(), [](int size) { return size == kUntouched; }));
  if (result != ncclSuccess) return result;
  BL_MUST(done == 0 || done == 1);
  if (done == 1) {
    done_ = true;
    std::transform(sizes.begin(), behind, std::back_inserter(sizes_), [](int size) {
      BL_MUST(size >= 0 && size != kUntouched);
      return static_cast<size_t>(size);
    });
  }
  return result;
}

bool Request::poll() {
  BL_MUST_SUCCEED(try_poll());
  return done_;
}

void Request::finish() {
  wait_until([&] { return poll(); }, "a request");
}

void finish_all(std::span<Request> requests) {
  wait_until(
      [&] {
        bool all = true;
        for (Request& request : requests) all = request.poll() && all;
        return all;
      },
      "all requests");
}

void finish_both(Request& one, Request& other) {
  wait_until(
      [&] {
        const bool first = one.poll();
        return other.poll() && first;
      },
      "both requests");
}

std::pair<ncclResult_t, Request> any_isend(Net& net, const Comm& comm, const Part& part) {
  void* request = kStale;
  const ncclResult_t result =
      net.isend(comm.raw(), part.data, part.size, part.tag, part.mhandle, &request);
  BL_MUST(result != ncclInProgress && result != ncclTimeout);
  BL_MUST(request != kStale && (result == ncclSuccess || request == nullptr));
  if (result != ncclSuccess) return {result, {}};
  return {result, {net, request, 1}};
}

std::pair<ncclResult_t, Request> any_irecv(Net& net, const Comm& comm,
                                           std::span<const Part> parts) {
  std::vector<void*> data;
  std::vector<size_t> sizes;
  std::vector<int> tags;
  std::vector<void*> mhandles;
  for (const Part& part : parts) {
    data.push_back(part.data);
    sizes.push_back(part.size);
    tags.push_back(part.tag);
    mhandles.push_back(part.mhandle);
  }
  void* request = kStale;
  const ncclResult_t result = net.irecv(comm.raw(), static_cast<int>(parts.size()), data.data(),
                                        sizes.data(), tags.data(), mhandles.data(), &request);
  BL_MUST(result != ncclInProgress && result != ncclTimeout);
  BL_MUST(request != kStale && (result == ncclSuccess || request == nullptr));
  if (result != ncclSuccess) return {result, {}};
  return {result, {net, request, parts.size()}};
}

Request try_isend(Net& net, const Comm& comm, const Part& part) {
  auto [result, request] = any_isend(net, comm, part);
  BL_MUST_SUCCEED(result);
  return request;
}

Request try_irecv(Net& net, const Comm& comm, std::span<const Part> parts) {
  auto [result, request] = any_irecv(net, comm, parts);
  BL_MUST_SUCCEED(result);
  return request;
}

Request isend(Net& net, const Comm& comm, const Part& part) {
  Request request;
  wait_until([&] { return static_cast<bool>(request = try_isend(net, comm, part)); },
             "room for a send");
  return request;
}

Request irecv(Net& net, const Comm& comm, std::span<const Part> parts) {
  Request request;
  wait_until([&] { return static_cast<bool>(request = try_irecv(net, comm, parts)); },
             "room for a receive");
  return request;
}

Request irecv_optional(Net& net, const Comm& comm, Part part) {
  void* data = part.data;
  void* request = nullptr;
  wait_until(
      [&] {
        void* const sentinel =
            reinterpret_cast<void*>(uintptr_t{NCCL_NET_OPTIONAL_RECV_COMPLETION});
        request = sentinel;
        BL_MUST_SUCCEED(
            net.irecv(comm.raw(), 1, &data, &part.size, &part.tag, &part.mhandle, &request));
        BL_MUST(request != sentinel);
        return request != nullptr;
      },
      "room for a receive");
  return {net, request, 1};
}

Request iflush(Net& net, const Comm& comm, std::span<const Part> parts, std::vector<int> sizes) {
  std::vector<void*> data;
  std::vector<void*> mhandles;
  for (const Part& part : parts) {
    data.push_back(part.data);
    mhandles.push_back(part.mhandle);
  }
  void* request = nullptr;
  BL_MUST_SUCCEED(net.iflush(comm.raw(), static_cast<int>(parts.size()), data.data(), sizes.data(),
                             mhandles.data(), &request));
  return {net, request, 0};
}

void carry(Net& net, const Link& link, const Part& from, const Part& to) {
  Request receive = irecv(net, link.recv, to);
  Request send = isend(net, link.send, from);
  finish_both(send, receive);
  BL_MUST(receive.size() == std::min(from.size, to.size));
}

void must_carry(Net& net, const Link& link, uint32_t seed) {
  constexpr size_t kSize = 1000;
  Memory from(kSize);
  Memory to(kSize);
  from.fill(0, kSize, seed);
  to.expect(0, kSize, seed);
  const Mr send_mr(net, link.send, from);
  const Mr recv_mr(net, link.recv, to);
  carry(net, link, {from.at(), kSize, 7, send_mr.raw()}, {to.at(), kSize, 7, recv_mr.raw()});
  to.must_hold();
}

}  // namespace beeline::test
