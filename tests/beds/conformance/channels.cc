// SPDX-License-Identifier: Apache-2.0
// Completion channels: when an event is sent and when not.
#include <poll.h>

#include "tests/beds/conformance/catalogue.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

PairPlan channel_plan() {
  PairPlan plan;
  plan.a.channel = true;
  plan.b.channel = true;
  return plan;
}

// "event", "no event", or the mistake in the event.
std::string wakes(const End& end, const Cq& queue, Milliseconds patience) {
  pollfd waiting = {.fd = end.channel->fd, .events = POLLIN, .revents = 0};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) != 1) return "no event";
  ibv_cq* about = nullptr;
  void* user = nullptr;
  must(::ibv_get_cq_event(end.channel.get(), &about, &user) == 0, "ibv_get_cq_event");
  ::ibv_ack_cq_events(about, 1);
  return about == queue.get() ? "event" : "event of another queue";
}

void arm(const Cq& queue, bool solicited_only = false) {
  must_accept(::ibv_req_notify_cq(queue.get(), solicited_only ? 1 : 0), "ibv_req_notify_cq");
}

Work small_send(const Pair& pair) { return Work::send({pair.a.memory.piece(0, 8)}); }

void give_receive(const Pair& pair) {
  must_accept(post_receive(pair.b, {pair.b.memory.piece(0, 8)}), "ibv_post_recv");
}

std::string of_send(Lab& lab) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  arm(pair.a.sends);
  must_accept(post(pair.a, small_send(pair)), "ibv_post_send");
  return wakes(pair.a, pair.a.sends, kPatience);
}

std::string of_receive(Lab& lab, bool armed) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  if (armed) arm(pair.b.receives);
  std::string status = run(pair.a, small_send(pair));
  if (status != "SUCCESS") return status;
  return wakes(pair.b, pair.b.receives, armed ? kPatience : kSilence);
}

std::string once(Lab& lab) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  give_receive(pair);
  arm(pair.b.receives);
  (void)run(pair.a, small_send(pair));
  (void)run(pair.a, small_send(pair));
  const std::string first = wakes(pair.b, pair.b.receives, kPatience);
  return first + ", then " + wakes(pair.b, pair.b.receives, kSilence);
}

std::string what_was_there(Lab& lab) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  std::string status = run(pair.a, small_send(pair));
  if (status != "SUCCESS") return status;
  arm(pair.b.receives);
  return wakes(pair.b, pair.b.receives, kSilence);
}

std::string solicited_only(Lab& lab, unsigned flags) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  arm(pair.b.receives, true);
  std::string status = run(pair.a, small_send(pair).with_flags(flags));
  if (status != "SUCCESS") return status;
  return wakes(pair.b, pair.b.receives, flags != 0 ? kPatience : kSilence);
}

std::string solicited_failure(Lab& lab) {
  const Pair pair(lab, channel_plan());
  const Region& target = pair.b.memory;
  arm(pair.a.sends, true);
  const auto piece = pair.a.memory.piece(0, 8);
  must_accept(post(pair.a, Work::write({piece}, target.address(), target.rkey() ^ 0x5a5a5a5a)),
              "ibv_post_send");
  return wakes(pair.a, pair.a.sends, kPatience);
}

// Arming for any completion stays in effect when arming for solicited ones follows.
std::string any_then_solicited(Lab& lab) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  arm(pair.b.receives);
  arm(pair.b.receives, true);
  (void)run(pair.a, small_send(pair));
  return wakes(pair.b, pair.b.receives, kSilence);
}

std::string of_flush(Lab& lab) {
  const Pair pair(lab, channel_plan());
  give_receive(pair);
  arm(pair.b.receives);
  must_accept(move_to(pair.b, IBV_QPS_ERR), "to ERR");
  return wakes(pair.b, pair.b.receives, kPatience);
}

// The peer moves the queue pair of a sleeping program to ERR.
std::string of_breakage(Lab& lab) {
  const Pair pair(lab, channel_plan());
  const Region& target = pair.b.memory;
  give_receive(pair);
  arm(pair.b.receives);
  const auto piece = pair.a.memory.piece(0, 8);
  (void)run(pair.a, Work::write({piece}, target.address(), target.rkey() ^ 0x5a5a5a5a));
  return wakes(pair.b, pair.b.receives, kPatience);
}

std::string destroy_in_use(Lab& lab) {
  EndPlan plan;
  plan.channel = true;
  const End end(lab.a, plan);
  return verdict(::ibv_destroy_comp_channel(end.channel.get()));
}

std::string without_channel(Lab& lab) {
  const End end(lab.a);
  return verdict(::ibv_req_notify_cq(end.sends.get(), 0));
}

}  // namespace

void add_channels(Catalogue& all) {
  const auto receive = [](bool armed) { return [=](Lab& lab) { return of_receive(lab, armed); }; };
  const auto solicited = [](unsigned flags) {
    return [=](Lab& lab) { return solicited_only(lab, flags); };
  };
  const Catalogue ours = {
      {"channel.send", "event", of_send},
      {"channel.receive", "event", receive(true)},
      {"channel.not_armed", "no event", receive(false)},
      {"channel.once", "event, then no event", once},
      {"channel.what_was_there", kOpen, what_was_there},
      {"channel.solicited.by_flag", "event", solicited(IBV_SEND_SOLICITED)},
      {"channel.solicited.without_flag", "no event", solicited(0)},
      {"channel.solicited.failure", "event", solicited_failure},
      {"channel.any_then_solicited", kOpen, any_then_solicited},
      {"channel.flush", "event", of_flush},
      {"channel.breakage", "event", of_breakage},
      {"channel.destroy.in_use", "refused EBUSY", destroy_in_use},
      {"channel.arm_without", kOpen, without_channel},
  };
  all.insert(all.end(), ours.begin(), ours.end());
}

}  // namespace conformance
