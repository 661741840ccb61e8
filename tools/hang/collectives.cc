// SPDX-License-Identifier: Apache-2.0
#include "tools/hang/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/cli/shallow_json.h"

namespace beeline::hang {
namespace {

using Json = nlohmann::ordered_json;
using Counts = std::map<std::string, std::uint64_t>;
using Group = std::pair<Counts, std::vector<const CalledRank*>>;

constexpr int kMostDeepAnswer = 10;
constexpr std::size_t kMostNamed = 4;

std::string printable(std::string text) {
  std::ranges::replace_if(
      text, [](char c) { return c < 0x20 || c >= 0x7f; }, '?');
  return text.substr(0, 64);
}

CalledRank rank_from(const Json& json) {
  CalledRank rank = {
      .rank = json.at("rank"), .host = printable(json.at("host")), .pid = json.at("pid")};
  for (const auto& [name, count] : json.at("collective_counts").items())
    rank.counts[printable(name)] = count;
  return rank;
}

// "rank 7 (pid 4711 on 10.0.0.5)", "ranks 7, 9, 12, 13 and 4 more"
std::string names_of(const std::vector<const CalledRank*>& ranks) {
  if (ranks.size() == 1) {
    const CalledRank& one = *ranks.front();
    return fmt::format("rank {} (pid {} on {})", one.rank, one.pid, one.host);
  }
  std::string text = "ranks";
  const char* before = " ";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i)
    text += std::exchange(before, ", ") + std::to_string(ranks[i]->rank);
  if (ranks.size() > kMostNamed) text += fmt::format(" and {} more", ranks.size() - kMostNamed);
  return text;
}

struct Difference {
  std::vector<std::pair<std::string, std::uint64_t>> missing;  // that most others have called
  std::vector<std::pair<std::string, std::uint64_t>> extra;    // that most others have not
};

Difference difference_of(const Counts& counts, const Counts& most) {
  Difference found;
  for (const auto& [name, count] : most) {
    const auto own = counts.find(name);
    const std::uint64_t called = own == counts.end() ? 0 : own->second;
    if (called < count) found.missing.emplace_back(name, called + 1);
    if (called > count) found.extra.emplace_back(name, count + 1);
  }
  return found;
}

std::string listed(const std::vector<std::pair<std::string, std::uint64_t>>& calls) {
  std::string text;
  for (const auto& [name, number] : calls)
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", name, number);
  return text;
}

std::string sentence(const Group& group, const Group& most, const std::string& hash) {
  const Difference found = difference_of(group.first, most.first);
  const char* const has = group.second.size() == 1 ? "has" : "have";
  const std::string others = fmt::format("{} {}", most.second.size(),
                                         most.second.size() == 1 ? "other has" : "others have");
  if (!found.missing.empty() && !found.extra.empty()) {
    return fmt::format(
        "communicator {}: {} {} called {} in the place of {}, which {} called: the "
        "order of collectives differs",
        hash, names_of(group.second), has, listed(found.extra), listed(found.missing), others);
  }
  if (!found.missing.empty()) {
    return fmt::format("communicator {}: {} {} not called {}; {}", hash, names_of(group.second),
                       has, listed(found.missing), others);
  }
  return fmt::format("communicator {}: {} {} called {}; {} not", hash, names_of(group.second), has,
                     listed(found.extra), others);
}

}  // namespace

Outcome<std::vector<Communicator>> communicators_in(const std::string& answer) {
  const std::size_t begin = answer.find('{');
  if (begin == std::string::npos) return fail(std::string("it gives no JSON: NCCL before 2.28.7"));
  try {
    const Json document = Json::parse(answer.begin() + static_cast<std::ptrdiff_t>(begin),
                                      answer.end(), tools::AtMostDeep{kMostDeepAnswer});
    std::vector<Communicator> communicators;
    for (const Json& json : document.at("communicators")) {
      Communicator& made = communicators.emplace_back();
      made.hash = printable(json.at("hash"));
      for (const Json& rank : json.at("ranks")) made.ranks.push_back(rank_from(rank));
      if (!json.contains("missing_ranks")) continue;
      for (const Json& rank : json.at("missing_ranks")) made.silent.push_back(rank.at("rank"));
    }
    return communicators;
  } catch (const std::exception& error) {
    return fail(std::string("its answer is not understood: ") + error.what());
  }
}

bool is_of(std::span<const Communicator> communicators, std::span<const pages::Process> processes) {
  return std::ranges::any_of(communicators, [&](const Communicator& one) {
    return std::ranges::any_of(one.ranks, [&](const CalledRank& rank) {
      return std::ranges::find(processes, rank.pid, &pages::Process::pid) != processes.end();
    });
  });
}

std::set<std::string> what_differs(std::span<const Communicator> communicators) {
  std::set<std::string> sentences;
  for (const Communicator& one : communicators) {
    std::map<Counts, std::vector<const CalledRank*>> by_counts;
    for (const CalledRank& rank : one.ranks) by_counts[rank.counts].push_back(&rank);
    if (!one.silent.empty()) {
      sentences.insert(
          fmt::format("communicator {}: {} of its ranks {} not answer NCCL, first rank {}",
                      one.hash, one.silent.size(), one.silent.size() == 1 ? "does" : "do",
                      *std::ranges::min_element(one.silent)));
    }
    if (by_counts.size() < 2) continue;
    const auto most = std::ranges::max_element(
        by_counts, {}, [](const auto& group) { return group.second.size(); });
    for (auto group = by_counts.begin(); group != by_counts.end(); ++group) {
      if (group == most) continue;
      sentences.insert(
          sentence({group->first, group->second}, {most->first, most->second}, one.hash));
    }
  }
  return sentences;
}

}  // namespace beeline::hang
