// SPDX-License-Identifier: Apache-2.0
// Completion queues: size, order, and overrun.
#include <cerrno>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

std::string create(Lab& lab, int entries) {
  const Cq cq(::ibv_create_cq(lab.a.context.get(), entries, nullptr, nullptr, 0));
  if (cq == nullptr) return verdict_of_errno(false);
  return cq->cqe >= entries ? "accepted, as large as asked" : "accepted, smaller than asked";
}

std::string bad_vector(Lab& lab) {
  const int vector = lab.a.context->num_comp_vectors;
  const Cq cq(::ibv_create_cq(lab.a.context.get(), 16, nullptr, nullptr, vector));
  return verdict_of_errno(cq != nullptr);
}

std::string channel(Lab& lab) {
  ibv_comp_channel* made = ::ibv_create_comp_channel(lab.a.context.get());
  std::string answer = verdict_of_errno(made != nullptr);
  if (made != nullptr) ::ibv_destroy_comp_channel(made);
  return answer;
}

std::string in_use(Lab& lab) {
  const End end(lab.a);
  return verdict(::ibv_destroy_cq(end.sends.get()));
}

std::string poll_empty(Lab& lab) {
  const End end(lab.a);
  ibv_wc completion = {};
  return std::to_string(::ibv_poll_cq(end.sends.get(), 1, &completion));
}

Work small_write(const Pair& pair) {
  const Region& target = pair.b.memory;
  return Work::write({pair.a.memory.piece(0, 8)}, target.address(), target.rkey());
}

std::string poll_order(Lab& lab) {
  const Pair pair(lab);
  for (std::uint64_t id = 1; id <= 8; ++id) {
    must_accept(post(pair.a, small_write(pair).with_id(id)), "ibv_post_send");
  }
  const auto completions = next_many(pair.a.sends, 8);
  if (completions.size() != 8) return statuses(completions);
  for (std::size_t i = 0; i < 8; ++i) {
    if (completions[i].wr_id != i + 1) return "out of order";
  }
  return "in order";
}

// Requests complete in the order of posting, whatever their operations.
std::string mixed_order(Lab& lab) {
  const Pair pair(lab);
  const Region& own = pair.a.memory;
  const Region& target = pair.b.memory;
  must_accept(post_receive(pair.b, {target.piece(0, 64)}), "ibv_post_recv");
  const Work works[] = {
      Work::read({own.piece(0, 32 << 10)}, target.address(), target.rkey()),
      Work::write({own.piece(0, 8)}, target.address(), target.rkey()),
      Work::send({own.piece(0, 8)}),
      Work::read({own.piece(0, 8)}, target.address(), target.rkey()),
      Work::write({own.piece(0, 32 << 10)}, target.address(), target.rkey()),
  };
  std::uint64_t id = 0;
  for (const Work& work : works) must_accept(post(pair.a, work.with_id(++id)), "ibv_post_send");
  const auto completions = next_many(pair.a.sends, id);
  if (completions.size() != id) return statuses(completions);
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (completions[i].status != IBV_WC_SUCCESS) return statuses(completions);
    if (completions[i].wr_id != i + 1) return "out of order";
  }
  return "in order";
}

// A CQ that was created with one entry is full with exactly as many completions as its cqe field
// says.
std::string full_is_not_overrun(Lab& lab) {
  PairPlan plan;
  plan.a.cqe = 4;
  plan.a.cap.max_send_wr = 512;
  const Pair pair(lab, plan);
  const auto room = static_cast<std::size_t>(pair.a.sends->cqe);
  if (room > 512) return "larger than the queue";
  for (std::size_t i = 0; i < room; ++i) {
    must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  }
  const auto completions = next_many(pair.a.sends, room);
  if (completions.size() != room) return "completions missing";
  for (const ibv_wc& completion : completions) {
    if (completion.status != IBV_WC_SUCCESS) return word(completion.status);
  }
  return "all there";
}

std::string destroyed_qp(Lab& lab) {
  Pair pair(lab);
  must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  must_accept(post(pair.a, small_write(pair)), "ibv_post_send");
  if (!next(pair.a.sends)) return "nothing";
  pause(kSilence);  // the second completion arrives and is not polled
  must_accept(::ibv_destroy_qp(pair.a.qp.release()), "ibv_destroy_qp");
  return next(pair.a.sends, kSilence) ? "its completions stay" : "its completions vanish";
}

}  // namespace

void add_cq(Catalogue& all) {
  const auto of = [](int entries) { return [entries](Lab& lab) { return create(lab, entries); }; };
  const Catalogue ours = {
      {"cq.create.1", "accepted, as large as asked", of(1)},
      {"cq.create.1000", "accepted, as large as asked", of(1000)},
      {"cq.create.0", "refused EINVAL", of(0)},
      {"cq.create.negative", "refused EINVAL", of(-1)},
      {"cq.create.greatest", "accepted, as large as asked",
       [](Lab& lab) { return create(lab, lab.a.attr.max_cqe); }},
      {"cq.create.above_greatest", "refused EINVAL",
       [](Lab& lab) { return create(lab, lab.a.attr.max_cqe + 1); }},
      {"cq.create.bad_vector", "refused EINVAL", bad_vector},
      {"cq.channel", "accepted", channel},
      {"cq.destroy.in_use", "refused EBUSY", in_use},
      {"cq.poll.empty", "0", poll_empty},
      {"cq.poll.order", "in order", poll_order},
      {"cq.poll.order_of_all_operations", "in order", mixed_order},
      {"cq.full_is_not_overrun", "all there", full_is_not_overrun},
      {"cq.after_destroy_qp", kOpen, destroyed_qp},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
