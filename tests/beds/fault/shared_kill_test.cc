// SPDX-License-Identifier: Apache-2.0
//
// A sender is killed at every store to shared memory while it uses the peer's shared receive queue,
// wakes the peer, does atomic operations and writes hidden data. The peer must be notified of all
// messages that arrived, get every receive back, and find no lock held.
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>

#include "tests/beds/fault/kill_sites.h"
#include "tests/support/verbs_extras.h"

using namespace beeline::test;
using beeline::UniqueFd;

namespace {

constexpr size_t kBig = 300'000;  // more than one piece
constexpr size_t kHidden = 8192;
constexpr uint32_t kDepth = 8;
constexpr int kRounds = 12;
constexpr int kToldInMs = 800;  // softnic takes 0.3 s to send the event of a process that died
constexpr unsigned kStuckSeconds = 60;
constexpr size_t kPlausibleSites = 20;
constexpr Wire kWire{.access = kAtomicAccess, .timeout = 19, .retry_cnt = 2, .min_rnr_timer = 1};

// A peer that has died is no failure here.
template <class T>
void say(int line, const T& value) {
  (void)!::send(line, &value, sizeof value, MSG_NOSIGNAL);
}
template <class T>
T hear(int line) {
  T value;
  BL_MUST(::recv(line, &value, sizeof value, MSG_WAITALL) == sizeof value);
  return value;
}

struct Targets {
  Region memory;
  Region hidden;
  Region counter;
};

void be_victim(int line) {
  Endpoint end("softnic0");
  Buffer memory = end.buffer(kBig);
  Buffer word = end.buffer(8);
  say(line, address_of(end.qp));
  connect(end.qp, hear<QpAddress>(line), kWire);
  const auto to = hear<Targets>(line);
  const auto run = [&](const auto& work) {
    BL_MUST_OK(post(end.qp, work));
    must_complete(end.send_cq.get(), work.wr_id);
  };
  for (int round = 0; round < kRounds; ++round) {
    run(send_work(memory.part(0, 100), 1));
    if (round % 4 == 1) run(send_work(memory.all(), 2));
    run(write_imm_work(memory.part(0, 64), to.memory.moved(0, 64), 7, 3));
    run(fetch_add(word.all(), to.counter, 1, 4));
    run(write_work(memory.part(0, 200), to.hidden.moved(100, 200), 5));
    run(read_work(memory.part(0, 8), to.hidden.moved(0, 8), 6));
  }
}

// Receives from a shared queue, asleep between messages.
class Survivor {
 public:
  Survivor()
      : nic_("softnic1"),
        channel_(make_channel(nic_.context.get())),
        cq_(make_cq(channel_.get(), 256)),
        srq_(make_srq(nic_.pd.get(), kDepth)),
        fd_(make_memfd(kHidden)),
        hidden_(ibv_reg_dmabuf_mr(nic_.pd.get(), 0, kHidden, 0, fd_.get(), kAllAccess)) {
    BL_MUST(hidden_ != nullptr);
    qp_ = make_end(srq_.get());
    while (post_one()) {
    }
    BL_MUST_OK(arm_limit(srq_.get(), kDepth));  // the first receive that is used goes below it
  }

  void meet(int line) {
    connect(qp_.get(), hear<QpAddress>(line), kWire);
    say(line, address_of(qp_.get()));
    say(line, Targets{memory_.all(),
                      {0, kHidden, hidden_->lkey, hidden_->rkey},
                      counter_.part(aligned(), 8)});
  }

  void receive_until_cut(int line) {
    arm_and_drain();
    for (;;) {
      pollfd waiting[] = {{channel_->fd, POLLIN, 0}, {line, POLLIN, 0}};
      BL_MUST(::poll(waiting, 2, -1) > 0);
      if (waiting[0].revents != 0) {
        take_event();
        arm_and_drain();
      } else {
        return;
      }
    }
  }

  // The queue is armed, so there must be an event for any message since, even if its sender is
  // dead.
  void must_have_been_told() {
    pollfd waiting{channel_->fd, POLLIN, 0};
    if (::poll(&waiting, 1, kToldInMs) == 1) {
      take_event();
    } else {
      BL_MUST(is_empty(cq_.get()));
    }
    drain(false);
  }

  void must_be_whole() {
    BL_MUST_OK(modify_state(qp_.get(), IBV_QPS_ERR));
    bool low = false;  // whether there was an event that receives run low
    for (bool last = false; !last;) {
      const ibv_event_type type = next_event(nic_.context.get()).event_type;
      last = type == IBV_EVENT_QP_LAST_WQE_REACHED;
      low = low || type == IBV_EVENT_SRQ_LIMIT_REACHED;
    }
    drain(false);
    BL_MUST(is_empty(cq_.get()));
    qp_.reset();
    for (const uint64_t wr_id : use_up(nic_, srq_.get(), next_id_)) {
      BL_MUST(completed_.insert(wr_id).second);
    }
    if (!low) wait_for_event(nic_.context.get(), IBV_EVENT_SRQ_LIMIT_REACHED);
  }

  void must_be_unlocked() {
    const QpPtr loop = make_end(nullptr);
    connect(loop.get(), address_of(loop.get()), kWire);
    Buffer word(nic_.pd.get(), 8);
    BL_MUST_OK(post(loop.get(), fetch_add(word.all(), counter_.part(aligned(), 8), 1, 1)));
    must_complete(nic_.send_cq.get(), 1);
    const Region there{0, kHidden, hidden_->lkey, hidden_->rkey};
    BL_MUST_OK(post(loop.get(), write_work(word.all(), there.moved(0, 8), 2)));
    BL_MUST_OK(post(loop.get(), read_work(word.all(), there.moved(0, 8), 3)));
    must_complete(nic_.send_cq.get(), 2);
    must_complete(nic_.send_cq.get(), 3);
  }

 private:
  QpPtr make_end(ibv_srq* srq) {
    ibv_qp_init_attr attr = init_attr(nic_);
    attr.recv_cq = cq_.get();
    attr.srq = srq;
    QpPtr qp(ibv_create_qp(nic_.pd.get(), &attr));
    BL_MUST(qp != nullptr);
    return qp;
  }
  size_t aligned() { return (8 - reinterpret_cast<uintptr_t>(counter_.data()) % 8) % 8; }
  bool post_one() {
    const bool posted = post(srq_.get(), recv_work(memory_.all(), next_id_)) == 0;
    if (posted) ++next_id_;
    return posted;
  }
  void take_event() {
    BL_MUST(next_cq_event(channel_.get()) == cq_.get());
    ibv_ack_cq_events(cq_.get(), 1);
  }
  void arm_and_drain() {
    BL_MUST_OK(ibv_req_notify_cq(cq_.get(), 0));
    drain(true);
  }
  void drain(bool refill) {
    ibv_wc wc{};
    while (ibv_poll_cq(cq_.get(), 1, &wc) == 1) {
      BL_MUST(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR);
      BL_MUST(completed_.insert(wc.wr_id).second);
      if (refill) BL_MUST(post_one());
    }
  }

  Nic nic_;
  ChannelPtr channel_;
  CqPtr cq_;
  SrqPtr srq_;
  UniqueFd fd_;
  MrPtr hidden_;
  QpPtr qp_;
  Buffer memory_{nic_.pd.get(), kBig};
  Buffer counter_{nic_.pd.get(), 16, kAtomicAccess};
  uint64_t next_id_ = 0;
  std::set<uint64_t> completed_;
};

void be_survivor(int line) {
  Survivor survivor;
  survivor.meet(line);
  survivor.receive_until_cut(line);
  survivor.must_have_been_told();
  survivor.must_be_whole();
  survivor.must_be_unlocked();
}

pid_t start(void (*body)(int), UniqueFd line, UniqueFd& other, const KillOrder& order) {
  std::fflush(nullptr);
  const pid_t pid = fork();
  BL_MUST(pid >= 0);
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(kStuckSeconds);
  other.reset();
  for (const std::string& entry : order.environment()) {
    const size_t equals = entry.find('=');
    setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  try {
    body(line.get());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    _exit(1);
  }
  _exit(handles_left.load() == 0 ? 0 : 1);
}

// If the peer dies before the first message, there is nothing to check.
void be_patient_survivor(int line) {
  char byte = 0;
  if (::recv(line, &byte, 1, MSG_PEEK) == 1) be_survivor(line);
}

int ending_of(pid_t pid) {
  int status = 0;
  BL_MUST(waitpid(pid, &status, 0) == pid);
  return status;
}

KillResult run_once(const KillOrder& order) {
  softnic::FabricSpec spec = softnic::default_fabric();
  spec.clock_scale = 0.01;
  spec.hazards.hide = true;
  const TestFabric fabric(spec);
  int ends[2];
  BL_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  UniqueFd near(ends[0]);
  UniqueFd far(ends[1]);
  const pid_t victim = start(be_victim, UniqueFd(dup(near.get())), far, order);
  const pid_t survivor = start(be_patient_survivor, UniqueFd(dup(far.get())), near, {});
  near.reset();
  far.reset();
  KillResult result;
  const int victims = ending_of(victim);
  result.died = WIFSIGNALED(victims) && WTERMSIG(victims) == SIGKILL;
  if (!result.died && victims != 0) result.complaints.emplace_back("the victim failed by itself");
  if (ending_of(survivor) != 0) result.complaints.emplace_back("the survivor failed");
  return result;
}

}  // namespace

TEST_CASE("shared_kill: a sender may die at any store", "[fault][softnic]") {
  kill_everywhere("the sender", kPlausibleSites, run_once);
}
