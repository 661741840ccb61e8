// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verbs_work.h"

#include <poll.h>

#include <atomic>
#include <string>

namespace beeline::test {
namespace {

SendWork one_sided(ibv_wr_opcode opcode, const Region& local, const Region& remote,
                   uint64_t wr_id) {
  return {.opcode = opcode,
          .wr_id = wr_id,
          .local = {local.sge()},
          .remote_addr = remote.addr,
          .rkey = remote.rkey};
}

ibv_send_wr to_wr(const SendWork& work) {
  ibv_send_wr wr{};
  wr.wr_id = work.wr_id;
  wr.sg_list = const_cast<ibv_sge*>(work.local.data());
  wr.num_sge = static_cast<int>(work.local.size());
  wr.opcode = work.opcode;
  wr.send_flags = work.flags;
  wr.imm_data = work.imm;
  wr.wr.rdma.remote_addr = work.remote_addr;
  wr.wr.rdma.rkey = work.rkey;
  return wr;
}

ibv_recv_wr to_wr(const RecvWork& work) {
  ibv_recv_wr wr{};
  wr.wr_id = work.wr_id;
  wr.sg_list = const_cast<ibv_sge*>(work.local.data());
  wr.num_sge = static_cast<int>(work.local.size());
  return wr;
}

int call_post(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) { return ibv_post_send(qp, wr, bad); }
int call_post(ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr** bad) { return ibv_post_recv(qp, wr, bad); }

template <class Work>
int post_all(ibv_qp* qp, const std::vector<Work>& list, size_t* accepted) {
  using Wr = decltype(to_wr(std::declval<Work>()));
  std::vector<Wr> wrs;
  wrs.reserve(list.size());
  for (const Work& work : list) wrs.push_back(to_wr(work));
  for (size_t i = 1; i < wrs.size(); ++i) wrs[i - 1].next = &wrs[i];
  Wr* bad = nullptr;
  const int rc = call_post(qp, wrs.data(), &bad);
  // bad_wr is set only on failure, to one of these requests.
  if (rc != 0) BL_MUST(bad >= wrs.data() && bad < wrs.data() + wrs.size());
  if (accepted != nullptr) {
    *accepted = rc == 0 ? wrs.size() : static_cast<size_t>(bad - wrs.data());
  }
  return rc;
}

}  // namespace

SendWork write_work(const Region& from, const Region& to, uint64_t wr_id) {
  return one_sided(IBV_WR_RDMA_WRITE, from, to, wr_id);
}

SendWork write_imm_work(const Region& from, const Region& to, uint32_t imm, uint64_t wr_id) {
  SendWork work = one_sided(IBV_WR_RDMA_WRITE_WITH_IMM, from, to, wr_id);
  work.imm = imm;
  return work;
}

SendWork read_work(const Region& into, const Region& from, uint64_t wr_id) {
  return one_sided(IBV_WR_RDMA_READ, into, from, wr_id);
}

SendWork send_work(const Region& from, uint64_t wr_id) {
  return {.opcode = IBV_WR_SEND, .wr_id = wr_id, .local = {from.sge()}};
}

SendWork send_imm_work(const Region& from, uint32_t imm, uint64_t wr_id) {
  return {.opcode = IBV_WR_SEND_WITH_IMM, .wr_id = wr_id, .local = {from.sge()}, .imm = imm};
}

RecvWork recv_work(const Region& into, uint64_t wr_id) {
  return {.wr_id = wr_id, .local = {into.sge()}};
}

SendWork unsignaled(SendWork work) {
  work.flags &= ~static_cast<unsigned>(IBV_SEND_SIGNALED);
  return work;
}

SendWork nothing_work(uint64_t wr_id) { return {.opcode = IBV_WR_RDMA_WRITE, .wr_id = wr_id}; }

int post(ibv_qp* qp, const SendWork& work) { return post_all<SendWork>(qp, {work}, nullptr); }
int post(ibv_qp* qp, const RecvWork& work) { return post_all<RecvWork>(qp, {work}, nullptr); }

int post_list(ibv_qp* qp, const std::vector<SendWork>& list, size_t* accepted) {
  return post_all(qp, list, accepted);
}

int post_list(ibv_qp* qp, const std::vector<RecvWork>& list, size_t* accepted) {
  return post_all(qp, list, accepted);
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void spin(int turns) {
  static std::atomic<int> turned{0};
  for (int i = 0; i < turns; ++i) turned.fetch_add(1, std::memory_order_relaxed);
}

ibv_wc poll_one(ibv_cq* cq) { return poll_many(cq, 1).front(); }

std::vector<ibv_wc> poll_many(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> done;
  wait_until(
      [&] {
        std::vector<ibv_wc> batch(count - done.size());
        const int got = ibv_poll_cq(cq, static_cast<int>(batch.size()), batch.data());
        BL_MUST(got >= 0 && static_cast<size_t>(got) <= batch.size());
        done.insert(done.end(), batch.begin(), batch.begin() + got);
        return done.size() == count;
      },
      "completions");
  return done;
}

bool is_empty(ibv_cq* cq) {
  ibv_wc wc{};
  return ibv_poll_cq(cq, 1, &wc) == 0;
}

void must_complete(ibv_cq* cq, uint64_t wr_id) {
  const ibv_wc wc = poll_one(cq);
  if (wc.status == IBV_WC_SUCCESS && wc.wr_id == wr_id) return;
  throw MustError("work " + std::to_string(wr_id) + " was to succeed, but " +
                  std::to_string(wc.wr_id) + " completed: " + ibv_wc_status_str(wc.status));
}

ibv_async_event next_event(ibv_context* context) {
  pollfd waiting{context->async_fd, POLLIN, 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
  if (::poll(&waiting, 1, static_cast<int>(patience)) != 1) {
    throw MustError("waited too long for an asynchronous event");
  }
  ibv_async_event event{};
  BL_MUST(ibv_get_async_event(context, &event) == 0);
  ibv_ack_async_event(&event);
  return event;
}

bool has_event(ibv_context* context) {
  pollfd waiting{context->async_fd, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

ibv_async_event wait_for_event(ibv_context* context, ibv_event_type type) {
  for (;;) {
    const ibv_async_event event = next_event(context);
    if (event.event_type == type) return event;
  }
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  BL_MUST_OK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
  return attr.qp_state;
}

void wait_for_state(ibv_qp* qp, ibv_qp_state state) {
  wait_until([&] { return state_of(qp) == state; }, state_name(state));
}

}  // namespace beeline::test
