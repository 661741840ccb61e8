// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/comms.h"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstring>

#include "common/base/clock.h"

namespace beeline::perf {
namespace {

constexpr std::uint64_t kRoundsPerNote = 4096;

using Handle = std::array<char, NCCL_NET_HANDLE_MAXSIZE>;

// A comm that is being set up, from the view of this rank.
struct Pending {
  CommPlan plan;
  int device = 0;
  bool sending = false;
  // As in NCCL, the same aligned memory at every call of connect: plugins keep structures in it.
  alignas(std::max_align_t) Handle handle{};
  void* listener = nullptr;
  void* comm = nullptr;
};

Failure<Problem> failed(const char* call, const Pending& pending, ncclResult_t result) {
  const int peer = pending.sending ? pending.plan.to : pending.plan.from;
  return fail(
      Problem(fmt::format("{} on device {}, {} rank {}, comm {}: the plugin returned {} ({})", call,
                          pending.device, pending.sending ? "to" : "from", peer, pending.plan.index,
                          nccl::to_string(result), static_cast<int>(result))));
}

class Setup {
 public:
  Setup(Rank& rank, CommDepth depth) : rank_(rank), net_(rank.net()), depth_(depth) {}

  Outcome<Comms> run(const std::vector<CommPlan>& plans) {
    BL_TRY(choose(plans));
    BL_TRY(rank_.on_service([this] { return listen(); }));
    BL_TRY(ship_handles(plans));
    BL_TRY(rank_.on_service([this] { return connect(); }));
    for (Pending& pending : pending_) add_end(pending);
    return std::move(comms_);
  }

 private:
  Outcome<bool> choose(const std::vector<CommPlan>& plans) {
    for (const CommPlan& plan : plans) {
      for (const bool sending : {true, false}) {
        if ((sending ? plan.from : plan.to) != rank_.id()) continue;
        Pending pending{.plan = plan, .sending = sending};
        pending.device =
            BL_TRY(choose_device(rank_.options().devices, rank_.devices(), plan.index, rank_.id()));
        pending_.push_back(pending);
      }
    }
    return true;
  }

  Outcome<bool> listen() {
    const std::int64_t start = now_ns();
    for (Pending& pending : pending_) {
      if (pending.sending) continue;
      const CallWatch::Inside inside(net_.watches->service, "listen");
      const ncclResult_t result =
          net_.calls.listen(net_.ctx, pending.device, pending.handle.data(), &pending.listener);
      if (result != ncclSuccess) return failed("listen", pending, result);
      if (pending.listener == nullptr) {
        return fail(fmt::format("listen on device {} succeeded but returned no listening comm",
                                pending.device));
      }
    }
    comms_.listen_ns = now_ns() - start;
    return true;
  }

  // Every plan has one receiver, so a rank has one handle for each plan in which it receives, in
  // the same order.
  Outcome<bool> ship_handles(const std::vector<CommPlan>& plans) {
    std::string mine;
    for (const Pending& pending : pending_) {
      if (!pending.sending) mine.append(pending.handle.data(), pending.handle.size());
    }
    const std::vector<std::string> all = BL_TRY(rank_.team().gather("exchange of handles", mine));
    std::vector<size_t> taken(all.size(), 0);
    size_t next = 0;
    for (const CommPlan& plan : plans) {
      const auto to = static_cast<size_t>(plan.to);
      if (plan.from == rank_.id()) {
        while (!pending_[next].sending) ++next;
        if (all[to].size() < taken[to] + sizeof(Handle)) {
          return fail(fmt::format("rank {} sent too few handles", plan.to));
        }
        std::memcpy(pending_[next++].handle.data(), all[to].data() + taken[to], sizeof(Handle));
      }
      taken[to] += sizeof(Handle);
    }
    return true;
  }

  Outcome<bool> connect() {
    const std::int64_t start = now_ns();
    std::uint64_t idle_rounds = 0;
    for (size_t left = pending_.size(); left > 0;) {
      const size_t before = left;
      for (Pending& pending : pending_) {
        if (pending.comm != nullptr) continue;
        BL_TRY(pending.sending ? poll_connect(pending) : poll_accept(pending));
        if (pending.comm != nullptr) --left;
      }
      if (left != before) continue;
      if (++idle_rounds % kRoundsPerNote == 0) rank_.note(missing());
      ::sched_yield();
    }
    rank_.note({});
    comms_.connect_ns = now_ns() - start;
    return true;
  }

  std::string missing() const {
    std::string text;
    for (const Pending& pending : pending_) {
      if (pending.comm == nullptr) text += "\n    " + label_of(pending) + ": not connected yet";
    }
    return text;
  }

  Outcome<bool> poll_connect(Pending& pending) {
    ncclNetDeviceHandle_v12_t* on_device = nullptr;
    const CallWatch::Inside inside(net_.watches->service, "connect");
    const ncclResult_t result = net_.calls.connect(net_.ctx, pending.device, pending.handle.data(),
                                                   &pending.comm, &on_device);
    if (result != ncclSuccess) return failed("connect", pending, result);
    return true;
  }

  Outcome<bool> poll_accept(Pending& pending) {
    ncclNetDeviceHandle_v12_t* on_device = nullptr;
    const CallWatch::Inside inside(net_.watches->service, "accept");
    const ncclResult_t accepted = net_.calls.accept(pending.listener, &pending.comm, &on_device);
    if (accepted != ncclSuccess) return failed("accept", pending, accepted);
    if (pending.comm == nullptr) return true;
    const ncclResult_t closed = net_.calls.closeListen(pending.listener);
    if (closed != ncclSuccess) return failed("closeListen", pending, closed);
    return true;
  }

  std::string label_of(const Pending& pending) const {
    const int peer = pending.sending ? pending.plan.to : pending.plan.from;
    return fmt::format("{} rank {} on comm {}, device {}",
                       pending.sending ? "send to" : "receive from", peer, pending.plan.index,
                       rank_.devices()[static_cast<size_t>(pending.device)].name);
  }

  void add_end(const Pending& pending) {
    const std::string label = label_of(pending);
    if (pending.sending) {
      auto end = std::make_unique<SendEnd>(net_, pending.comm, label, depth_.sends);
      rank_.watch(*end);
      comms_.sends.push_back({pending.plan, std::move(end)});
      return;
    }
    const Device& device = rank_.devices()[static_cast<size_t>(pending.device)];
    const AfterRecv after = rank_.memory().flushes(rank_.options().flush, device)
                                ? AfterRecv::kFlush
                                : AfterRecv::kNothing;
    auto end = std::make_unique<RecvEnd>(net_, pending.comm, label, depth_.recvs, after);
    rank_.watch(*end);
    comms_.recvs.push_back({pending.plan, std::move(end)});
  }

  Rank& rank_;
  const Net& net_;
  const CommDepth depth_;
  std::vector<Pending> pending_;
  Comms comms_;
};

}  // namespace

Outcome<Comms> open_comms(Rank& rank, const std::vector<CommPlan>& plans, CommDepth depth) {
  return Setup(rank, depth).run(plans);
}

Outcome<bool> close_comms(Rank& rank, Comms comms) {
  rank.unwatch_all();
  return rank.on_service([&]() -> Outcome<bool> {
    for (const SendComm& send : comms.sends) {
      const CallWatch::Inside inside(rank.net().watches->service, "closeSend");
      const ncclResult_t result = rank.net().calls.closeSend(send.end->comm());
      if (result != ncclSuccess) {
        return fail(std::string(NetFailure{"closeSend", result, nullptr, send.end.get()}));
      }
    }
    for (const RecvComm& recv : comms.recvs) {
      const CallWatch::Inside inside(rank.net().watches->service, "closeRecv");
      const ncclResult_t result = rank.net().calls.closeRecv(recv.end->comm());
      if (result != ncclSuccess) {
        return fail(std::string(NetFailure{"closeRecv", result, nullptr, recv.end.get()}));
      }
    }
    return true;
  });
}

std::vector<CommPlan> plan_pairs(int ranks, int comms, Ways ways) {
  std::vector<CommPlan> plans;
  for (int low = 0; low + 1 < ranks; low += 2) {
    for (int c = 0; c < comms; ++c) {
      plans.push_back({low, low + 1, c});
      if (ways == Ways::kBoth) plans.push_back({low + 1, low, c});
    }
  }
  return plans;
}

std::vector<CommPlan> plan_ring(int ranks, int comms) {
  std::vector<CommPlan> plans;
  for (int from = 0; from < ranks; ++from) {
    for (int c = 0; c < comms; ++c) plans.push_back({from, (from + 1) % ranks, c});
  }
  return plans;
}

}  // namespace beeline::perf
