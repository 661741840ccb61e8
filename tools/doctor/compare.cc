// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/cli/text_width.h"
#include "topology/render/name_list.h"
#include "topology/render/table.h"
#include "topology/render/utf8.h"

namespace beeline::doctor {
namespace {

using topology::printable;
using Names = std::vector<std::string>;

constexpr std::size_t kMostNamed = 6;
constexpr const char* kNone = "none";

// A fact or a finding, and the hosts that have each of its values.
struct Row {
  std::string name;
  std::map<std::string, Names> hosts_of = {};  // by value
};

// In the order in which the hosts name them. A host without the fact has the value "none".
std::vector<Row> rows_of(const std::vector<Examined>& hosts) {
  std::vector<Row> rows;
  std::map<std::string, std::size_t> row_of;
  for (const Examined& host : hosts) {
    for (const auto& [name, value] : host.card) {
      if (row_of.try_emplace(name, rows.size()).second) rows.push_back({.name = name});
    }
  }
  for (const Examined& host : hosts) {
    std::map<std::string, std::string> values(host.card.begin(), host.card.end());
    for (const auto& [name, row] : row_of) {
      const std::string& value = values[name];
      rows[row].hosts_of[value.empty() ? kNone : value].push_back(host.name);
    }
  }
  return rows;
}

// Failures and warnings. Their subjects are names of devices, which are the same on hosts of a
// kind.
std::vector<Row> problems_of(const std::vector<Examined>& hosts) {
  std::map<std::string, Names> hosts_with;
  for (const Examined& host : hosts) {
    std::set<std::string> own;
    for (const Finding& finding : host.findings) {
      if (finding.severity < Severity::kWarning) continue;
      const std::string about = finding.subject.empty() ? "" : " (" + finding.subject + ")";
      own.insert(std::string(finding.id) + about);
    }
    for (const std::string& problem : own) hosts_with[problem].push_back(host.name);
  }
  std::vector<Row> rows;
  for (const auto& [problem, names] : hosts_with) {
    if (names.size() == hosts.size()) continue;
    rows.push_back({.name = problem, .hosts_of = {{"", names}}});
  }
  return rows;
}

bool differs(const Row& row) noexcept { return row.hosts_of.size() > 1; }

std::string named(const Names& names) {
  std::string all = topology::folded(names);
  if (names.size() <= kMostNamed || all.find(',') == std::string::npos) return all;
  return topology::folded(Names(names.begin(), names.begin() + kMostNamed)) +
         fmt::format(" and {} more", names.size() - kMostNamed);
}

// "28.39.1002 on 63 hosts; 28.36.1010 on node7": the values by the number of their hosts.
std::string values_text(const Row& row) {
  std::vector<std::pair<std::string, Names>> values(row.hosts_of.begin(), row.hosts_of.end());
  std::ranges::stable_sort(
      values, [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  std::string text;
  for (const auto& [value, names] : values) {
    const bool is_usual = text.empty() && names.size() > 1;
    text += fmt::format("{}{} on {}", text.empty() ? "" : "; ", value,
                        is_usual ? fmt::format("{} hosts", names.size()) : named(names));
  }
  return printable(text);
}

// The hosts that do not have the most frequent value of a fact, or have a problem.
std::set<std::string> odd_hosts(const std::vector<Row>& facts, const std::vector<Row>& problems) {
  std::set<std::string> odd;
  for (const Row& row : facts) {
    if (!differs(row)) continue;
    const auto usual = std::ranges::max_element(
        row.hosts_of, {}, [](const auto& value) { return value.second.size(); });
    for (auto at = row.hosts_of.begin(); at != row.hosts_of.end(); ++at) {
      if (at != usual) odd.insert(at->second.begin(), at->second.end());
    }
  }
  for (const Row& row : problems) {
    odd.insert(row.hosts_of.begin()->second.begin(), row.hosts_of.begin()->second.end());
  }
  return odd;
}

}  // namespace

std::string different_facts(const std::vector<Examined>& hosts, std::size_t width) {
  std::vector<topology::Cells> table;
  for (const Row& row : rows_of(hosts)) {
    if (differs(row)) table.push_back({printable(row.name), values_text(row)});
  }
  return table.empty() ? "" : topology::aligned(table, width);
}

std::string compare_text(const std::vector<Examined>& hosts, std::size_t width) {
  const std::vector<Row> facts = rows_of(hosts);
  const std::vector<Row> problems = problems_of(hosts);
  const std::set<std::string> odd = odd_hosts(facts, problems);
  if (odd.empty()) return fmt::format("{} hosts: no difference\n", hosts.size());
  std::string text = tools::fitted(
      fmt::format("{} hosts: {} {} from the others: {}\n", hosts.size(), odd.size(),
                  odd.size() == 1 ? "differs" : "differ", named(Names(odd.begin(), odd.end()))),
      width);
  if (const std::string table = different_facts(hosts, width); !table.empty()) {
    text += "\nDifferent\n" + table;
  }
  std::vector<topology::Cells> table;
  table.reserve(problems.size());
  for (const Row& row : problems) {
    table.push_back({printable(row.name), printable(named(row.hosts_of.begin()->second))});
  }
  if (!table.empty()) text += "\nFound on some\n" + topology::aligned(table, width);
  return text;
}

std::string compare_json(const std::vector<Examined>& hosts) {
  using Json = nlohmann::ordered_json;
  Json document = {
      {"hosts", Json::array()}, {"different", Json::array()}, {"found", Json::array()}};
  for (const Examined& host : hosts) document["hosts"].push_back(printable(host.name));
  const auto hosts_of = [](const Names& names) {
    Json list = Json::array();
    for (const std::string& name : names) list.push_back(printable(name));
    return list;
  };
  for (const Row& row : rows_of(hosts)) {
    if (!differs(row)) continue;
    Json values = Json::array();
    for (const auto& [value, names] : row.hosts_of) {
      values.push_back({{"value", printable(value)}, {"hosts", hosts_of(names)}});
    }
    document["different"].push_back({{"fact", printable(row.name)}, {"values", values}});
  }
  for (const Row& row : problems_of(hosts)) {
    document["found"].push_back(
        {{"finding", printable(row.name)}, {"hosts", hosts_of(row.hosts_of.begin()->second)}});
  }
  return document.dump(1) + "\n";
}

bool do_differ(const std::vector<Examined>& hosts) {
  return !problems_of(hosts).empty() || std::ranges::any_of(rows_of(hosts), differs);
}

}  // namespace beeline::doctor
