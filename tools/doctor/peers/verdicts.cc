// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "plugin/checks/findings.h"

namespace beeline::doctor {
namespace {

// A pair is slow below this share of the median of comparable pairs. A link that has lost half of
// its lanes or of its speed is below it.
constexpr double kSlow = 0.6;
// All pairs together are slow below this share of what their ports carry. Half is left for a PCIe
// slot of an older generation, for one connection at a time and for memory that is far away.
constexpr double kShareOfPort = 0.4;
constexpr double kLate = 3;
constexpr double kLateAtLeastUs = 10;
// A rail is slow if so many of its pairs are.
constexpr double kMostPairs = 0.75;

bool has_failed(const ProbedPair& pair) { return !pair.failure.empty(); }

int speed_of(const Survey& survey, const RailOfHost& rail) {
  return survey.hosts[rail.host].rails.rails[rail.rail].mbps;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// The pairs that worked, by the speed that the slower of their ports reports. The memory of a GPU
// is farther from some rails than from others, so these pairs are not compared.
using Alike = std::map<int, std::vector<std::size_t>>;

Alike alike_pairs(const Survey& survey) {
  Alike alike;
  for (std::size_t i = 0; i < survey.pairs.size(); ++i) {
    const ProbedPair& pair = survey.pairs[i];
    if (has_failed(pair) || pair.in_gpu_memory) continue;
    alike[std::min(speed_of(survey, pair.a), speed_of(survey, pair.b))].push_back(i);
  }
  return alike;
}

template <class Value>
double median_of(const Survey& survey, const std::vector<std::size_t>& pairs, Value value) {
  std::vector<double> values;
  values.reserve(pairs.size());
  for (const std::size_t i : pairs) values.push_back(survey.pairs[i].*value);
  return median(std::move(values));
}

double gbytes_of(int mbps) { return mbps / 8e3; }

// A software device (softnic, rxe, siw) reports any speed, and moves what the processor copies.
bool is_card(const Survey& survey, const RailOfHost& rail) {
  const SurveyedHost& host = survey.hosts[rail.host];
  const std::string& name = host.rails.rails[rail.rail].name;
  // The finding is about the device, so its subject has no number of a port.
  const std::string device = name.substr(0, name.find(':'));
  const auto has = [&](const std::string& fact, auto&& accepts) {
    return std::ranges::any_of(host.examined.card, [&](const auto& row) {
      return row.first == device + ": " + fact && accepts(row.second);
    });
  };
  return has("PCIe", [](const std::string&) { return true; }) &&
         has("model", [](const std::string& model) { return model != "softnic"; });
}

// Sets of rails that reach each other, directly or through others. A rail that reaches none is a
// set of its own.
class Networks {
 public:
  explicit Networks(const Survey& survey) {
    for (const ProbedPair& pair : survey.pairs) {
      parent_.try_emplace(pair.a, pair.a);
      parent_.try_emplace(pair.b, pair.b);
      if (!has_failed(pair) || pair.is_wrong) join(pair.a, pair.b);
    }
    for (const auto& [rail, parent] : parent_) ++sizes_[root_of(rail)];
  }

  bool is_alone(const RailOfHost& rail) const { return sizes_.at(root_of(rail)) == 1; }
  bool are_together(const RailOfHost& a, const RailOfHost& b) const {
    return root_of(a) == root_of(b);
  }

 private:
  RailOfHost root_of(RailOfHost rail) const {
    while (parent_.at(rail) != rail) rail = parent_.at(rail);
    return rail;
  }
  void join(const RailOfHost& a, const RailOfHost& b) { parent_.at(root_of(a)) = root_of(b); }

  std::map<RailOfHost, RailOfHost> parent_;
  std::map<RailOfHost, std::size_t> sizes_;
};

// The pairs of each rail in one kind of memory.
std::map<RailOfHost, std::vector<std::size_t>> pairs_by_rail(const Survey& survey,
                                                             bool in_gpu_memory) {
  std::map<RailOfHost, std::vector<std::size_t>> pairs;
  for (std::size_t i = 0; i < survey.pairs.size(); ++i) {
    if (survey.pairs[i].in_gpu_memory != in_gpu_memory) continue;
    pairs[survey.pairs[i].a].push_back(i);
    pairs[survey.pairs[i].b].push_back(i);
  }
  return pairs;
}

struct SlowRail {
  RailOfHost rail;
  std::vector<std::size_t> slow;  // these of its pairs
  std::size_t all = 0;            // so many of its pairs work
};

// The rails that explain most of the odd pairs.
std::vector<SlowRail> slow_rails(const Survey& survey, const PairSet& odd) {
  std::vector<SlowRail> rails;
  for (const auto& [rail, pairs] : pairs_by_rail(survey, false)) {
    SlowRail found{.rail = rail, .slow = {}, .all = 0};
    for (const std::size_t i : pairs) {
      if (has_failed(survey.pairs[i])) continue;
      ++found.all;
      if (odd.contains(i)) found.slow.push_back(i);
    }
    const bool is_slow = found.slow.size() > 1 && static_cast<double>(found.slow.size()) >=
                                                      kMostPairs * static_cast<double>(found.all);
    if (is_slow) rails.push_back(std::move(found));
  }
  return rails;
}

class Judge {
 public:
  explicit Judge(const Survey& survey) : survey_(survey) {}

  std::vector<Finding> run() {
    for (const UnexaminedHost& host : survey_.unexamined) {
      findings_.add("host-not-examined",
                    {.subject = host.name, .fact = host.name + ": the doctor there " + host.why});
    }
    for (const SurveyedHost& host : survey_.hosts) {
      if (!host.failure.empty()) {
        findings_.add("host-not-probed",
                      {.subject = host.name, .fact = host.name + ": " + host.failure});
      }
    }
    repeat_own_findings();
    find_lost_hosts();
    find_lost_rails(false);
    find_lost_rails(true);
    find_lost_pairs();
    find_all_slow();
    find_slow(slow_pairs(survey_), "moves",
              [](const ProbedPair& pair) { return fmt::format("{:.2f} GB/s", pair.gbytes_per_s); });
    find_slow(late_pairs(survey_), "answers after",
              [](const ProbedPair& pair) { return fmt::format("{:.0f} us", pair.round_trip_us); });
    return findings_.take();
  }

 private:
  // Repeats the warnings and failures of the examination of each host.
  void repeat_own_findings() {
    for (const SurveyedHost& host : survey_.hosts) {
      for (const Finding& finding : host.examined.findings) {
        if (finding.severity < Severity::kWarning) continue;
        findings_.add(finding.id, {.subject = host.name + (finding.subject.empty() ? "" : " ") +
                                              finding.subject,
                                   .fact = host.name + ": " + finding.fact,
                                   .severity = finding.severity});
      }
    }
  }

  std::string pair_name(const ProbedPair& pair) const {
    return name_of(survey_, pair.a) + " and " + name_of(survey_, pair.b) +
           (pair.in_gpu_memory ? " (GPU memory)" : "");
  }

  std::string reason_of(const std::vector<std::size_t>& pairs) const {
    return survey_.pairs[pairs.front()].failure;
  }

  bool is_open(std::size_t pair) const {
    const ProbedPair& probed = survey_.pairs[pair];
    return has_failed(probed) && !probed.is_wrong && !explained_.contains(pair);
  }

  // Two hosts of which no pair works, and hosts that reach no other.
  void find_lost_hosts() {
    std::map<std::size_t, std::vector<std::size_t>> by_host;
    for (std::size_t i = 0; i < survey_.pairs.size(); ++i) {
      by_host[survey_.pairs[i].a.host].push_back(i);
      by_host[survey_.pairs[i].b.host].push_back(i);
    }
    for (const auto& [host, pairs] : by_host) {
      if (pairs.size() < 2 ||
          !std::ranges::all_of(pairs, [&](std::size_t i) { return is_open(i); }))
        continue;
      std::set<std::string> others;
      for (const std::size_t i : pairs) {
        const ProbedPair& pair = survey_.pairs[i];
        others.insert(survey_.hosts[pair.a.host == host ? pair.b.host : pair.a.host].name);
      }
      std::string names;
      for (const std::string& other : others) names += (names.empty() ? "" : ", ") + other;
      const std::string& name = survey_.hosts[host].name;
      findings_.add("host-unreachable",
                    {.subject = name,
                     .fact = fmt::format("no rail of {} reaches a rail of {}: {}", name, names,
                                         reason_of(pairs))});
      explained_.insert(pairs.begin(), pairs.end());
    }
  }

  // Rails that reach none, of hosts that do. A rail with a single pair may not be the one at fault.
  void find_lost_rails(bool in_gpu_memory) {
    PairSet explained;
    for (const auto& [rail, pairs] : pairs_by_rail(survey_, in_gpu_memory)) {
      const bool is_lost =
          pairs.size() > 1 && std::ranges::all_of(pairs, [&](std::size_t i) { return is_open(i); });
      if (!is_lost) continue;
      const std::string name = name_of(survey_, rail) + (in_gpu_memory ? " (GPU memory)" : "");
      findings_.add("rail-unreachable",
                    {.subject = name,
                     .fact = fmt::format("{} reaches none of the {} rails that were tried: {}",
                                         name, pairs.size(), reason_of(pairs))});
      explained.insert(pairs.begin(), pairs.end());
    }
    explained_.merge(explained);
  }

  void find_lost_pairs() {
    const Networks networks(survey_);
    std::size_t apart = 0;
    for (std::size_t i = 0; i < survey_.pairs.size(); ++i) {
      const ProbedPair& pair = survey_.pairs[i];
      const std::string name = pair_name(pair);
      if (pair.is_wrong) {
        findings_.add("data-wrong",
                      {.subject = name, .fact = fmt::format("between {}, {}", name, pair.failure)});
      }
      if (!is_open(i)) continue;
      if (!networks.are_together(pair.a, pair.b) && !networks.is_alone(pair.a) &&
          !networks.is_alone(pair.b)) {
        ++apart;
      } else {
        findings_.add("pair-unreachable",
                      {.subject = name,
                       .fact = fmt::format("{} do not reach each other: {}", name, pair.failure)});
      }
    }
    if (apart > 0) {
      findings_.add(
          "rails-apart",
          {.fact = fmt::format("{} of the {} pairs of rails that were tried are on networks "
                               "that do not reach each other",
                               apart, survey_.pairs.size())});
    }
  }

  // If all are equally slow, none of them is slower than the median.
  void find_all_slow() {
    for (const auto& [mbps, pairs] : alike_pairs(survey_)) {
      const double expected = gbytes_of(mbps);
      const double usual = median_of(survey_, pairs, &ProbedPair::gbytes_per_s);
      const bool are_cards = std::ranges::all_of(pairs, [&](std::size_t i) {
        return is_card(survey_, survey_.pairs[i].a) && is_card(survey_, survey_.pairs[i].b);
      });
      if (usual >= kShareOfPort * expected || !are_cards) continue;
      const std::string rails = fmt::format("rails of {} Gb/s", mbps / 1000);
      findings_.add("rails-below-their-ports",
                    {.subject = rails,
                     .fact = fmt::format("{} move {:.2f} GB/s, the median of {} pair{}, but their "
                                         "ports carry {:.1f} GB/s",
                                         rails, usual, pairs.size(), pairs.size() == 1 ? "" : "s",
                                         expected)});
    }
  }

  template <class Text>
  void find_slow(PairSet open, const char* verb, Text text) {
    for (const SlowRail& rail : slow_rails(survey_, open)) {
      const std::string name = name_of(survey_, rail.rail);
      findings_.add("rail-slow",
                    {.subject = name,
                     .fact = fmt::format("{} {} {} with {} of {} other rails; {}", name, verb,
                                         text(survey_.pairs[rail.slow.front()]), rail.slow.size(),
                                         rail.all, usual(rail.slow, text))});
      for (const std::size_t i : rail.slow) open.erase(i);
    }
    for (const std::size_t i : open) {
      const std::string name = pair_name(survey_.pairs[i]);
      findings_.add("pair-slow", {.subject = name,
                                  .fact = fmt::format("the path between {} {} {}; {}", name, verb,
                                                      text(survey_.pairs[i]), usual({i}, text))});
    }
  }

  // "the median of comparable pairs is 48.12 GB/s"
  template <class Text>
  std::string usual(const std::vector<std::size_t>& slow, Text text) const {
    for (const auto& [key, pairs] : alike_pairs(survey_)) {
      if (std::ranges::find(pairs, slow.front()) == pairs.end()) continue;
      ProbedPair usual;
      usual.gbytes_per_s = median_of(survey_, pairs, &ProbedPair::gbytes_per_s);
      usual.round_trip_us = median_of(survey_, pairs, &ProbedPair::round_trip_us);
      return "the median of comparable pairs is " + text(usual);
    }
    return {};
  }

  const Survey& survey_;
  checks::Findings findings_;
  PairSet explained_;  // failures that a finding explains
};

}  // namespace

std::string name_of(const Survey& survey, const RailOfHost& rail) {
  const SurveyedHost& host = survey.hosts[rail.host];
  return host.name + " " + host.rails.rails[rail.rail].name;
}

PairSet slow_pairs(const Survey& survey) {
  PairSet slow;
  for (const auto& [key, pairs] : alike_pairs(survey)) {
    const double usual = median_of(survey, pairs, &ProbedPair::gbytes_per_s);
    for (const std::size_t i : pairs) {
      if (survey.pairs[i].gbytes_per_s < kSlow * usual) slow.insert(i);
    }
  }
  return slow;
}

PairSet late_pairs(const Survey& survey) {
  const PairSet slow = slow_pairs(survey);
  PairSet late;
  for (const auto& [key, pairs] : alike_pairs(survey)) {
    const double usual = median_of(survey, pairs, &ProbedPair::round_trip_us);
    for (const std::size_t i : pairs) {
      const double own = survey.pairs[i].round_trip_us;
      if (!slow.contains(i) && own > kLate * usual && own > usual + kLateAtLeastUs) late.insert(i);
    }
  }
  return late;
}

PairSet odd_pairs(const Survey& survey) {
  PairSet odd = slow_pairs(survey);
  odd.merge(late_pairs(survey));
  return odd;
}

PairSet single_odd_pairs(const Survey& survey) {
  PairSet single;
  for (const PairSet& odd : {slow_pairs(survey), late_pairs(survey)}) {
    PairSet open = odd;
    for (const SlowRail& rail : slow_rails(survey, odd)) {
      for (const std::size_t i : rail.slow) open.erase(i);
    }
    single.merge(open);
  }
  return single;
}

std::vector<Finding> judge(const Survey& survey) { return Judge(survey).run(); }

}  // namespace beeline::doctor
