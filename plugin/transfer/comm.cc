// SPDX-License-Identifier: Apache-2.0
//
// Construction, and the parts of test() for a comm that is alarmed or quiet.

#include <algorithm>
#include <new>
#include <type_traits>

#include "common/base/clock.h"
#include "common/base/host.h"
#include "common/check/assert.h"
#include "plugin/transfer/test_request.h"

namespace beeline {

namespace {

std::uint32_t largest_write(const Device& device) noexcept {
  const std::size_t most = std::min<std::size_t>(device.caps.max_msg_bytes, wire::kMaxMessageBytes);
  return static_cast<std::uint32_t>(std::max(most / wire::kCutBytes, std::size_t{1}) *
                                    wire::kCutBytes);
}

}  // namespace

Comm::Comm(std::unique_ptr<Connection> connection, std::uint32_t send_depth,
           const CommOptions& options, StatsSlot stats, PathEvents& events) noexcept
    : gate_(connection->role, connection->paths.size() > 1),
      stats_(std::move(stats)),
      owned_(std::move(connection)),
      connection_(*owned_),
      link_(connection_.link.get()),
      events_(events),
      registration_(options.registration),
      standbys_(options.standbys),
      role_(connection_.role),
      path_count_(static_cast<std::uint8_t>(connection_.paths.size())),
      send_depth_(static_cast<std::uint16_t>(send_depth)),
      rails_(wire::rails_of(connection_.receiver_rails)),
      early_done_(options.early_done),
      waits_for_devices_(options.device_ns != 0),
      wait_(role_),
      watch_(options.stall_ns) {
  BL_ASSERT(connection_.paths.size() - 1 < wire::kMaxPaths,
            "a connection has one path at least, and not too many");
  // What the peer has made happen: its acknowledgements, or its messages.
  link_->set_progress(
      stats_.word_of(role_ == Role::kSend ? Counter::kCompletions : Counter::kMessages));
  paths_ = path_count_ == 1 ? &only_path_ : reinterpret_cast<Path*>(connection_.extra.get());
  for (std::size_t i = 0; i < path_count_; ++i) {
    Path& path = path_count_ == 1 ? only_path_ : *new (paths_ + i) Path;
    path.index = static_cast<std::uint8_t>(i);
    path.resources = &connection_.paths[i];
    path.rail = path.resources->rail;
    path.peer_rail = path.resources->peer_rail;
    path.first_device = path.resources->device;
    if (path.resources->is_missing()) {
      path.set_state(PathState::kClear);
      path.send_free = send_depth_;
    } else {
      path.rail_device = path.first_device;
      take_resources(path);
    }
    stats_.begin_path(i, path.first_device->ibdev, path.first_device->port, path.posts);
  }
  if (!has_missing_paths()) return;
  for (const Path& made : paths()) {
    for (Path& other : paths()) {
      if (made.rail_device != nullptr && other.rail == made.rail)
        other.rail_device = made.rail_device;
    }
  }
  gate_.raise_alarm();  // with the first call, the missing paths begin to be looked after
}

bool Comm::has_missing_paths() const noexcept {
  return std::ranges::any_of(paths(),
                             [](const Path& path) { return path.resources->is_missing(); });
}

Comm::~Comm() {
  for (Path& path : paths()) {
    if (path.repair != nullptr && path.repair->fence != nullptr) path.repair->fence->end();
  }
  if (paths_ != &only_path_) std::destroy_n(paths_, path_count_);
}

void Comm::take_resources(Path& path) noexcept {
  const PathResources& resources = *path.resources;
  const Queues& queues = resources.queues;
  path.qp = queues.qp.get();
  path.cq = queues.cq.get();
  path.max_inline = queues.max_inline;
  path.send_free = send_depth_;
  path.most_bytes = largest_write(*resources.device);
  path.lkey = control_key(resources);
  path.window_key = resources.window_key.value_or(connection_.window.rkeys[resources.peer_rail]);
  path.is_device_left = false;
  if (path.repair == nullptr || path.repair->fence == nullptr) return;
  path.repair->fence->withdraw();  // the former queue pair goes
  path.repair->fence.reset();
}

std::shared_ptr<RegisteredBuffers> Comm::buffers() {
  const std::lock_guard lock(making_buffers_);
  if (buffers_ == nullptr) {
    BL_ASSERT(registration_ != nullptr, "the comm was made to register buffers");
    RegisteredBuffers::RailDevice devices{};
    // No path has joined yet: the control thread calls this before it makes one.
    for (const Path& path : paths()) devices[path.rail] = path.rail_device;
    buffers_ = std::make_shared<RegisteredBuffers>(devices, *registration_);
  }
  return buffers_;
}

bool Comm::is_own(const Device& device) const noexcept {
  return std::ranges::any_of(
      paths(), [&](const Path& path) { return path.first_device->index == device.index; });
}

bool Comm::has_standby() const noexcept {
  for (const Device* const device : standbys_for(paths().front().own_device())) {
    if (!is_own(*device) && !device->newest().context->is_gone()) return true;
  }
  return false;
}

std::string Comm::name_on(const Device& device) const {
  const bool sends = role() == Role::kSend;
  return std::string(sends ? "sender on " : "receiver on ") + host_name() + ", device " +
         label(device) + ", " + (sends ? "to" : "from") + " peer " + link_->peer().text();
}

std::string Comm::name_for_log(std::size_t path) const {
  return name_on(*paths_[path].resources->device);
}

// Any thread may call this: the current device of a path is for the one that has the comm.
std::string Comm::name() const { return name_on(paths().front().own_device()); }

PathSigns Comm::signs_of(const Path& path) const noexcept {
  return {.is_up = path.posts,
          .owes_answer = owes_answer(path),
          .heard = path.heard,
          .expected_ns = expected_ns(path),
          .kept = path.silence.get()};
}

// A write of no bytes: devices do not check where it goes.
Status Comm::post_probe(Path& path, std::uint64_t wr_id) {
  ibv_send_wr probe = {};
  probe.wr_id = wr_id;
  probe.opcode = IBV_WR_RDMA_WRITE;
  probe.send_flags = IBV_SEND_SIGNALED;
  return post_signaled(path, probe, "ask whether the path works");
}

Status Comm::post_signaled(Path& path, ibv_send_wr& request, const char* doing) {
  ibv_send_wr* refused = nullptr;
  if (const int rc = ibv_post_send(path.qp, &request, &refused); rc != 0) {
    const Errc code = events_.on_refused(*this, path, rc, doing);
    if (code == Errc::kOk) return {};  // the comm goes on without the path
    return fail(code, "post a write");
  }
  --path.send_free;
  return {};
}

bool Comm::serve_if_idle() noexcept {
  // The next call will see that the link has ended.
  const auto is_quiet = [this] {
    return link_->state() == Link::State::kOpen && link_->due_ns() > now_ns();
  };
  if (link_->has_ended() || (is_quiet() && !gate_.is_raised())) return true;
  if (!take_if_idle()) return false;
  const bool has_failed = !events_.on_alarm(*this);
  const bool is_waiting = !has_usable_path();  // for a path that is made anew
  give_back();
  return has_failed || link_->has_ended() || (is_quiet() && (is_waiting || !gate_.is_raised()));
}

void Comm::ask_peer() noexcept {
  if (!take_if_idle()) return;
  collect();
  (void)probe_paths();
  if (gate_.is_raised()) (void)events_.on_alarm(*this);  // a path has failed
  give_back();
}

Waiting Comm::look_at_wait(std::int64_t now_ns) noexcept {
  if (!stats_.is_shown()) return {};  // its counters are also those of others
  if (link_->has_ended() || stats_.has_failed()) {
    stats_.set_wait(Wait::kNothing, 0, 0);
    return {};
  }
  const bool is_answered = wait_.must_ask() && !gate_.is_asked();
  const Waiting waiting =
      wait_.look({.progress = stats_.progress(),
                  .requests = gate_.busy(),
                  .is_answered = is_answered,
                  .requests_then = requests_then_.load(std::memory_order_relaxed),
                  .has_path = had_path_.load(std::memory_order_relaxed)},
                 now_ns);
  if (wait_.must_ask()) gate_.ask();
  if (waiting.has_moved) {
    stats_.set_moved(now_ns);
    stats_.record_look(Event::kMoved, static_cast<std::uint32_t>(stats_.count(Counter::kMessages)),
                       stats_.count(Counter::kBytes), now_ns);
  }
  if (waiting.what != stats_.waits_for()) {
    stats_.record_look(
        Event::kWaits, static_cast<std::uint32_t>(waiting.what),
        static_cast<std::uint64_t>(waiting.since_ns), now_ns,
        static_cast<std::uint16_t>(std::min<std::uint64_t>(waiting.requests, UINT16_MAX)));
  }
  for (std::size_t i = 0; i < path_count_; ++i) stats_.set_path_bytes(i, bytes_of_path(i));
  stats_.set_wait(waiting.what, waiting.since_ns, waiting.requests);
  return waiting;
}

void Comm::end_service() noexcept {
  link_->set_user(nullptr);
  link_->set_alarm(nullptr, 0);
  gate_.close();
}

Errc Comm::may_begin(const char* call, bool* may) {
  *may = false;
  if (gate_.is_taken()) return Errc::kOk;
  if (!is_alarmed_after_answer(1)) {
    *may = true;
    return Errc::kOk;
  }
  return events_.on_call_while_alarmed(*this, call, may);
}

bool Comm::is_alarmed_after_answer(std::uint64_t calls) noexcept {
  if (gate_.is_asked()) {
    requests_then_.store(gate_.busy() - calls, std::memory_order_relaxed);
    had_path_.store(has_usable_path(), std::memory_order_relaxed);
    gate_.answer();
  }
  return gate_.is_alarmed();
}

// A request that finishes all the same is done, whatever is wrong with the comm.
Errc Comm::test_while_alarmed(Request& request, int* done, int* sizes) {
  collect();
  Errc code = Errc::kOk;
  if (request.missing != 0) {
    const Status status = events_.on_alarm(*this);
    if (!status) {
      code = status.error().code;
    } else if (watch_.count_empty_test() && request.missing != 0) {
      code = check_for_stall();
    }
  }
  if (request.missing != 0) return code;
  finish(request, done, sizes);
  return Errc::kOk;
}

Errc Comm::test(Request& request, int* done, int* sizes) {
  *done = 0;
  if (gate_.is_alarmed()) [[unlikely]] {
    // Once it has answered, the next test polls.
    return is_alarmed_after_answer(0) ? test_while_alarmed(request, done, sizes) : Errc::kOk;
  }
  with_end(*this, [&](auto& end) { end.poll_paths(request); });
  if (request.missing == 0) {
    finish(request, done, sizes);
    return Errc::kOk;
  }
  return watch_.count_empty_test() ? check_for_stall() : Errc::kOk;
}

// Where the device retries for ever, or reports nothing, this is the only end of the wait.
Errc Comm::check_for_stall() {
  stats_.add(Counter::kEmptyTests, StallWatch::kTestsPerLook);
  const std::int64_t now = now_ns();
  if (has_several_paths()) events_.on_waiting(*this, now);
  const StallWatch::Verdict verdict = watch_.judge(now);
  stats_.set_quiet_since(watch_.quiet_since_ns());
  if (verdict == StallWatch::Verdict::kCalm) return Errc::kOk;
  const Status status = events_.on_quiet(*this, verdict);
  return status ? Errc::kOk : status.error().code;
}

}  // namespace beeline
