// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/coordinator.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>

#include "common/base/clock.h"
#include "tools/doctor/peers/verdicts.h"

namespace beeline::doctor {
namespace {

// Far more than a host should need, since a host that does not answer is reported as a fault.
constexpr std::int64_t kAnswerNs = 60 * kNsPerSec;
// A report of a host with many devices has some 100 KB.
constexpr std::size_t kLongestAnswer = std::size_t{64} << 20;
// Pairs that seem slow are measured again, since other work may have disturbed them. A rail that is
// slow with most others is so for a reason of its own. A single pair is measured until it is as
// fast as others, or this often.
constexpr int kMeasurements = 4;
constexpr int kMeasurementsOfSinglePairs = 16;

Outcome<void> send(Peer& peer, const Request& request) {
  Outcome<void> sent = peer.stream.send(encode(request));
  if (!sent) peer.failure = sent.error().text;
  if (request.ask != Ask::kStop && request.ask != Ask::kEnd) ++peer.unanswered;
  return sent;
}

Outcome<std::string> receive(Peer& peer, std::int64_t deadline_ns = now_ns() + kAnswerNs) {
  Outcome<std::string> line = peer.stream.receive(deadline_ns);
  if (!line) peer.failure = line.error().text;
  --peer.unanswered;
  return line;
}

// Waits until one of them has answered. The first one's answer if both have.
Peer& first_to_answer(Peer& a, Peer& b) {
  std::array<pollfd, 2> waiting = {pollfd{.fd = a.stream.fd(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = b.stream.fd(), .events = POLLIN, .revents = 0}};
  if (!a.stream.is_readable() && !b.stream.is_readable()) {
    (void)::poll(waiting.data(), waiting.size(), static_cast<int>(kAnswerNs / kNsPerMs));
  }
  return b.stream.is_readable() && !a.stream.is_readable() ? b : a;
}

// Fails if a host no longer answers.
Outcome<ProbedPair> probe(Peer& a, Peer& b, ProbedPair pair) {
  Request listen = {.ask = Ask::kListen, .in_gpu_memory = pair.in_gpu_memory};
  listen.rail = pair.a.rail;
  BL_TRY(send(a, listen));
  listen.rail = pair.b.rail;
  BL_TRY(send(b, listen));
  const Outcome<std::string> handle_a = decode_text(BL_TRY(receive(a)));
  const Outcome<std::string> handle_b = decode_text(BL_TRY(receive(b)));
  if (!handle_a || !handle_b) {
    pair.failure = handle_a ? handle_b.error().text : handle_a.error().text;
    return pair;
  }
  BL_TRY(send(a, {.ask = Ask::kProbe, .is_first = true, .handle = *handle_b}));
  BL_TRY(send(b, {.ask = Ask::kProbe, .is_first = false, .handle = *handle_a}));
  Peer& first = first_to_answer(a, b);
  Peer& second = &first == &a ? b : a;
  const ProbeResult early = BL_TRY(decode_result(BL_TRY(receive(first))));
  // Without it, the other end would wait for messages until its time is up.
  if (!early.failure.empty()) BL_TRY(send(second, {.ask = Ask::kStop}));
  const ProbeResult late = BL_TRY(decode_result(BL_TRY(receive(second))));
  return joined(std::move(pair), early, late);
}

// The rails of two hosts in steps: first those of the same position, and with `all` then those one
// position apart, two positions apart and so on.
std::vector<std::vector<ProbedPair>> steps_of(const Survey& survey, std::size_t a, std::size_t b,
                                              bool all) {
  const std::size_t rails_of_a = survey.hosts[a].rails.rails.size();
  const std::size_t rails_of_b = survey.hosts[b].rails.rails.size();
  const std::size_t most = std::max(rails_of_a, rails_of_b);
  std::vector<std::vector<ProbedPair>> steps;
  for (std::size_t apart = 0; apart < (all ? most : 1); ++apart) {
    auto& step = steps.emplace_back();
    for (std::size_t i = 0; i < rails_of_a; ++i) {
      const std::size_t k = (i + apart) % most;
      if (k < rails_of_b) step.push_back({.a = {a, i}, .b = {b, k}});
    }
  }
  return steps;
}

class Surveyor {
 public:
  Surveyor(std::vector<Peer> peers, const SurveyOptions& options)
      : peers_(std::move(peers)), options_(options) {
    for (Peer& peer : peers_) peer.stream.allow(kLongestAnswer);
  }

  Outcome<Survey> run() {
    BL_TRY(examine());
    open_plugins();
    probe_all();
    measure_again();
    for (Peer& peer : peers_) (void)send(peer, {.ask = Ask::kEnd});
    return std::move(survey_);
  }

 private:
  // The survey goes on without the hosts on which the doctor does not run.
  Outcome<void> examine() {
    const Request request = {.ask = Ask::kExamine, .seconds = options_.seconds};
    const auto more = static_cast<std::int64_t>(options_.seconds * static_cast<double>(kNsPerSec));
    for (Peer& peer : peers_) (void)send(peer, request);
    const std::int64_t deadline = now_ns() + kAnswerNs + more;
    std::vector<Peer> examined_peers;
    for (Peer& peer : peers_) {
      options_.progress(fmt::format("examining {} hosts: {} have answered", peers_.size(),
                                    examined_peers.size() + survey_.unexamined.size()));
      Outcome<Examined> examined = answer_of(peer, deadline);
      if (!examined) {
        const std::string name = peer.name.empty() ? "this host" : peer.name;
        survey_.unexamined.push_back({.name = name, .why = examined.error().text});
        continue;
      }
      if (!peer.name.empty()) examined->name = peer.name;
      peer.name = examined->name;
      survey_.hosts.push_back({.name = peer.name, .examined = *std::move(examined)});
      examined_peers.push_back(std::move(peer));
    }
    peers_ = std::move(examined_peers);
    if (!peers_.empty()) return {};
    return fail(fmt::format(
        "the doctor runs on none of the hosts: on {} it {}. Its own messages are above; check that "
        "the command of --launch works, and that the same beeline is in the same folder there",
        survey_.unexamined.front().name, survey_.unexamined.front().why));
  }

  static Outcome<Examined> answer_of(Peer& peer, std::int64_t deadline_ns) {
    if (!peer.failure.empty()) return fail(peer.failure);
    return decode_examined(BL_TRY(receive(peer, deadline_ns)));
  }

  void open_plugins() {
    options_.progress(fmt::format("loading the plugin on {} hosts", peers_.size()));
    for (Peer& peer : peers_) (void)send(peer, {.ask = Ask::kOpen});
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const Outcome<std::string> line = receive(peers_[i]);
      Outcome<RailsOfHost> rails = line ? decode_rails(*line) : fail(line.error());
      if (rails) {
        survey_.hosts[i].rails = *std::move(rails);
      } else {
        survey_.hosts[i].failure = line ? rails.error().text : text_of_lost(peers_[i]);
      }
    }
  }

  static std::string text_of_lost(const Peer& peer) { return "the doctor there " + peer.failure; }

  void probe_all() {
    const auto rounds = rounds_of(peers_.size());
    for (const auto& round : rounds) all_ += round.size();
    for (const auto& round : rounds) {
      std::vector<std::thread> threads;
      threads.reserve(round.size());
      for (const auto& [a, b] : round) {
        threads.emplace_back([this, a = a, b = b] { probe_hosts(a, b); });
      }
      for (std::thread& thread : threads) thread.join();
      done_ += round.size();
    }
  }

  // On a thread of its own; no other one uses these hosts.
  void probe_hosts(std::size_t a, std::size_t b) {
    const bool have_gpus = survey_.hosts[a].rails.has_gpu && survey_.hosts[b].rails.has_gpu;
    const auto steps = steps_of(survey_, a, b, peers_.size() == 2);
    for (const bool in_gpu_memory : {false, true}) {
      if (in_gpu_memory && !have_gpus) continue;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const std::size_t working = probe_step(steps[i], in_gpu_memory);
        // Each position has a network of its own. Waiting for each of the other pairs would take
        // minutes.
        if (i == 1 && working == 0) break;
      }
    }
  }

  // The number of pairs that work.
  std::size_t probe_step(const std::vector<ProbedPair>& step, bool in_gpu_memory) {
    std::size_t working = 0;
    for (ProbedPair pair : step) {
      if (has_host_failed(pair)) break;
      pair.in_gpu_memory = in_gpu_memory;
      if (in_gpu_memory && has_failed_in_host_memory(pair)) continue;
      const Outcome<ProbedPair> probed = probe(peers_[pair.a.host], peers_[pair.b.host], pair);
      if (!probed) {
        end_probe(pair.a.host);
        end_probe(pair.b.host);
        break;
      }
      if (probed->failure.empty()) ++working;
      keep(*probed);
    }
    return working;
  }

  bool has_host_failed(const ProbedPair& pair) const {
    return !survey_.hosts[pair.a.host].failure.empty() ||
           !survey_.hosts[pair.b.host].failure.empty();
  }

  bool has_failed_in_host_memory(const ProbedPair& pair) {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(survey_.pairs, [&](const ProbedPair& other) {
      return other.a == pair.a && other.b == pair.b && !other.failure.empty();
    });
  }

  void keep(const ProbedPair& pair) {
    const std::lock_guard lock(mutex_);
    survey_.pairs.push_back(pair);
    options_.progress(fmt::format("probing: {} of {} pairs of hosts done, {} pairs of rails", done_,
                                  all_, survey_.pairs.size()));
  }

  // After the other host of a probe no longer answers, or this one.
  void end_probe(std::size_t host) {
    Peer& peer = peers_[host];
    if (peer.failure.empty() && peer.unanswered > 0) (void)send(peer, {.ask = Ask::kStop});
    while (peer.failure.empty() && peer.unanswered > 0) (void)receive(peer);
    if (!peer.failure.empty()) survey_.hosts[host].failure = text_of_lost(peer);
  }

  void measure_again() {
    for (int n = 1; n < kMeasurementsOfSinglePairs; ++n) {
      const PairSet odd = n < kMeasurements ? odd_pairs(survey_) : single_odd_pairs(survey_);
      if (!odd.empty()) {
        options_.progress(
            fmt::format("measuring {} pairs of rails again, which seem slow", odd.size()));
      }
      for (const std::size_t i : odd) measure_again(survey_.pairs[i]);
    }
  }

  void measure_again(ProbedPair& pair) {
    if (has_host_failed(pair)) return;
    const Outcome<ProbedPair> again = probe(peers_[pair.a.host], peers_[pair.b.host], pair);
    if (!again) {
      end_probe(pair.a.host);
      end_probe(pair.b.host);
      return;
    }
    pair.failure = again->failure;
    pair.is_wrong = again->is_wrong;
    pair.gbytes_per_s = std::max(pair.gbytes_per_s, again->gbytes_per_s);
    pair.round_trip_us = std::min(pair.round_trip_us, again->round_trip_us);
  }

  std::vector<Peer> peers_;
  const SurveyOptions& options_;
  std::size_t all_ = 0;   // pairs of hosts
  std::size_t done_ = 0;  // of them
  std::mutex mutex_;      // for survey_.pairs
  Survey survey_;
};

}  // namespace

ProbedPair joined(ProbedPair pair, const ProbeResult& early, const ProbeResult& late) {
  pair.failure = early.failure.empty() ? late.failure : early.failure;
  pair.is_wrong = early.is_wrong || late.is_wrong;
  pair.round_trip_us = std::min(early.round_trip_us, late.round_trip_us);
  pair.gbytes_per_s = std::min(early.gbytes_per_s, late.gbytes_per_s);
  return pair;
}

std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds_of(std::size_t hosts) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> rounds;
  for (std::size_t bit = 1; bit < hosts; bit *= 2) {
    auto& round = rounds.emplace_back();
    for (std::size_t a = 0; a < hosts; ++a) {
      const std::size_t b = a ^ bit;
      if (a < b && b < hosts) round.emplace_back(a, b);
    }
  }
  return rounds;
}

Outcome<Survey> survey_hosts(std::vector<Peer> peers, const SurveyOptions& options) {
  return Surveyor(std::move(peers), options).run();
}

}  // namespace beeline::doctor
