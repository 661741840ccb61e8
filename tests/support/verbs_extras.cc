// SPDX-License-Identifier: Apache-2.0
#include "tests/support/verbs_extras.h"

#include <poll.h>
#include <sys/mman.h>

namespace beeline::test {

SrqPtr make_srq(ibv_pd* pd, uint32_t depth, uint32_t max_sge) {
  ibv_srq_init_attr init{};
  init.attr.max_wr = depth;
  init.attr.max_sge = max_sge;
  SrqPtr srq(ibv_create_srq(pd, &init));
  BL_MUST(srq != nullptr);
  return srq;
}

uint32_t depth_of(ibv_srq* srq) {
  ibv_srq_attr attr{};
  BL_MUST_OK(ibv_query_srq(srq, &attr));
  return attr.max_wr;
}

int arm_limit(ibv_srq* srq, uint32_t limit) {
  ibv_srq_attr attr{};
  attr.srq_limit = limit;
  return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

QpPtr make_qp_on(const Nic& nic, ibv_srq* srq, const QpShape& shape) {
  ibv_qp_init_attr attr = init_attr(nic, shape);
  attr.srq = srq;
  QpPtr qp(ibv_create_qp(nic.pd.get(), &attr));
  BL_MUST(qp != nullptr);
  return qp;
}

int post(ibv_srq* srq, const RecvWork& work) { return post_list(srq, {work}); }

int post_list(ibv_srq* srq, const std::vector<RecvWork>& list, size_t* accepted) {
  std::vector<ibv_recv_wr> wrs(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    wrs[i].wr_id = list[i].wr_id;
    wrs[i].sg_list = const_cast<ibv_sge*>(list[i].local.data());
    wrs[i].num_sge = static_cast<int>(list[i].local.size());
    wrs[i].next = i + 1 < list.size() ? &wrs[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  const int rc = ibv_post_srq_recv(srq, wrs.data(), &bad);
  if (rc != 0) BL_MUST(bad >= wrs.data() && bad < wrs.data() + wrs.size());
  if (accepted != nullptr) {
    *accepted = rc == 0 ? list.size() : static_cast<size_t>(bad - wrs.data());
  }
  return rc;
}

std::set<uint64_t> use_up(const Nic& nic, ibv_srq* srq, uint64_t first_id) {
  const QpPtr sender = make_qp(nic);
  const CqPtr cq = make_cq(nic.context.get(), 1024);
  ibv_qp_init_attr attr = init_attr(nic);
  attr.recv_cq = cq.get();
  attr.srq = srq;
  const QpPtr receiver(ibv_create_qp(nic.pd.get(), &attr));
  BL_MUST(receiver != nullptr);
  connect_both(sender.get(), receiver.get(), {.rnr_retry = 0});
  while (post(srq, RecvWork{.wr_id = first_id}) == 0) ++first_id;
  std::set<uint64_t> used;
  for (;;) {
    BL_MUST_OK(post(sender.get(), SendWork{.opcode = IBV_WR_SEND, .wr_id = used.size()}));
    const ibv_wc sent = poll_one(nic.send_cq.get());
    if (sent.status == IBV_WC_RNR_RETRY_EXC_ERR) break;
    BL_MUST(sent.status == IBV_WC_SUCCESS);
    const ibv_wc wc = poll_one(cq.get());
    BL_MUST(wc.status == IBV_WC_SUCCESS);
    BL_MUST(used.insert(wc.wr_id).second);
  }
  BL_MUST(used.size() == depth_of(srq));
  return used;
}

ChannelPtr make_channel(ibv_context* context) {
  ChannelPtr channel(ibv_create_comp_channel(context));
  BL_MUST(channel != nullptr);
  return channel;
}

CqPtr make_cq(ibv_comp_channel* channel, int cqe, void* cq_context) {
  CqPtr cq(ibv_create_cq(channel->context, cqe, cq_context, channel, 0));
  BL_MUST(cq != nullptr);
  return cq;
}

bool is_readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, 0) == 1;
}

bool has_cq_event(ibv_comp_channel* channel) { return is_readable(channel->fd); }

ibv_cq* next_cq_event(ibv_comp_channel* channel) {
  pollfd waiting{channel->fd, POLLIN, 0};
  const auto patience = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count();
  if (::poll(&waiting, 1, static_cast<int>(patience)) != 1) {
    throw MustError("waited too long for a completion event");
  }
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  BL_MUST(ibv_get_cq_event(channel, &cq, &cq_context) == 0);
  BL_MUST(cq != nullptr && cq_context == cq->cq_context);
  return cq;
}

AtomicWork fetch_add(const Region& into, const Region& target, uint64_t add, uint64_t wr_id) {
  return {.wr_id = wr_id,
          .local = {into.sge()},
          .remote_addr = target.addr,
          .rkey = target.rkey,
          .compare_add = add};
}

AtomicWork compare_swap(const Region& into, const Region& target, uint64_t compare, uint64_t swap,
                        uint64_t wr_id) {
  AtomicWork work = fetch_add(into, target, compare, wr_id);
  work.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  work.swap = swap;
  return work;
}

int post(ibv_qp* qp, const AtomicWork& work) {
  ibv_send_wr wr{};
  wr.wr_id = work.wr_id;
  wr.sg_list = const_cast<ibv_sge*>(work.local.data());
  wr.num_sge = static_cast<int>(work.local.size());
  wr.opcode = work.opcode;
  wr.send_flags = work.flags;
  wr.wr.atomic.remote_addr = work.remote_addr;
  wr.wr.atomic.rkey = work.rkey;
  wr.wr.atomic.compare_add = work.compare_add;
  wr.wr.atomic.swap = work.swap;
  ibv_send_wr* bad = nullptr;
  const int rc = ibv_post_send(qp, &wr, &bad);
  if (rc != 0) BL_MUST(bad == &wr);
  return rc;
}

Flusher::Flusher(const Nic& nic) : local_(nic.pd.get(), 1), cq_(make_cq(nic.context.get(), 4)) {
  ibv_qp_init_attr attr = init_attr(nic);
  attr.send_cq = cq_.get();
  qp_.reset(ibv_create_qp(nic.pd.get(), &attr));
  BL_MUST(qp_ != nullptr);
  connect(qp_.get(), address_of(qp_.get()));
}

void Flusher::flush(const Region& memory) {
  BL_MUST_OK(post(qp_.get(), read_work(local_.all(), memory.moved(0, 1), 1)));
  must_complete(cq_.get(), 1);
}

UniqueFd make_memfd(size_t size) {
  UniqueFd fd(memfd_create("test-memory", MFD_CLOEXEC));
  BL_MUST(fd && ftruncate(fd.get(), static_cast<off_t>(size)) == 0);
  return fd;
}

}  // namespace beeline::test
