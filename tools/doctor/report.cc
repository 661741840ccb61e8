// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>

#include "plugin/checks/kinds.h"
#include "tools/cli/text_width.h"
#include "topology/render/utf8.h"

namespace beeline::doctor {
namespace {

using Json = nlohmann::ordered_json;
using checks::Kind;
using tools::TextStyle;
using topology::printable;

std::string_view word_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::kOk: return "OK";
    case Severity::kUnknown: return "UNKNOWN";
    case Severity::kNote: return "NOTE";
    case Severity::kWarning: return "WARN";
    case Severity::kFailure: return "FAIL";
  }
  return "?";
}

std::size_t count(const std::vector<Finding>& findings, Severity severity) {
  return static_cast<std::size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

// Findings of one kind are one fault, on however many devices.
std::size_t count_kinds(const std::vector<Finding>& findings, Severity severity) {
  std::set<std::string_view> ids;
  for (const Finding& finding : findings) {
    if (finding.severity == severity) ids.insert(finding.id);
  }
  return ids.size();
}

std::string verdict(const std::vector<Finding>& findings) {
  const auto counted = [](std::size_t count, const char* thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
  };
  const std::size_t failures = count_kinds(findings, Severity::kFailure);
  const std::size_t warnings = count_kinds(findings, Severity::kWarning);
  const std::size_t unknown = count_kinds(findings, Severity::kUnknown);
  std::string text;
  if (failures > 0) text = counted(failures, "fault") + " will keep jobs from running";
  if (warnings > 0) {
    text += (failures > 0 ? ", " : "") + counted(warnings, "fault") +
            (warnings == 1 ? " makes" : " make") + " them slow or fragile";
  }
  if (failures == 0 && warnings > 0) {
    text =
        counted(warnings, "fault") + (warnings == 1 ? " makes" : " make") + " jobs slow or fragile";
  }
  if (text.empty() && unknown > 0) {
    return fmt::format("nothing wrong was found, but {} could not be checked",
                       counted(unknown, "thing"));
  }
  if (text.empty()) text = "nothing is wrong";
  if (unknown > 0) text += fmt::format("; {} could not be checked", counted(unknown, "thing"));
  return text;
}

// At the beginning of a line of the report.
std::string marked(Severity severity, const TextStyle& style) {
  const auto color = severity == Severity::kFailure   ? tools::Color::kRed
                     : severity == Severity::kWarning ? tools::Color::kYellow
                     : severity == Severity::kOk      ? tools::Color::kGreen
                                                      : tools::Color::kNone;
  const std::string_view word = word_of(severity);
  return tools::colored(word, color, style.in_color) + std::string(9 - word.size(), ' ');
}

// A command has no limit: it must stay on one line, to be pasted.
std::string row(const char* title, const std::string& text, std::size_t width = std::string::npos) {
  if (text.empty()) return {};
  return fmt::format("         {:<6}{}\n", title, tools::wrapped(printable(text), 15, width));
}

// The fact, and the id behind it or in the next line.
std::string with_id(const Finding& finding, std::size_t width) {
  const std::string fact = tools::wrapped(printable(finding.fact), 9, width);
  const std::string id = fmt::format("[{}]", finding.id);
  const std::size_t end = fact.rfind('\n');
  const std::size_t column = end == std::string::npos ? 9 + fact.size() : fact.size() - end - 1;
  return fact + (column + 2 + id.size() <= width ? "  " : "\n         ") + id;
}

// One paragraph for all findings of a kind: what was seen, each on a line, then the rest once. A
// command is shown for each, since its names differ.
std::string paragraph(std::span<const Finding> findings, const TextStyle& style) {
  const Finding& first = findings.front();
  std::string text;
  for (const Finding& finding : findings) {
    const bool is_first = &finding == &first;
    text += is_first ? marked(finding.severity, style) : "         ";
    text += is_first ? with_id(finding, style.width)
                     : tools::wrapped(printable(finding.fact), 9, style.width);
    text += '\n';
  }
  if (first.severity == Severity::kUnknown) return text;
  text += row("why", first.why, style.width);
  std::set<std::string_view> shown;
  for (const Finding& finding : findings) {
    if (shown.insert(finding.command).second) {
      text += row(shown.size() == 1 ? "run" : "", finding.command);
    }
  }
  shown.clear();
  for (const Finding& finding : findings) {
    if (shown.insert(finding.fix).second) text += row("fix", finding.fix, style.width);
  }
  if (first.source.empty()) return text;
  return text + row("from", first.source + (findings.size() > 1 ? ", ..." : ""), style.width);
}

// The areas in which nothing was found, with the number of things that were looked for.
std::string healthy_areas(const std::vector<Finding>& findings, const TextStyle& style) {
  std::set<std::string_view> found;
  for (const Finding& finding : findings) {
    if (const Kind* const kind = checks::find_kind(finding.id)) found.insert(kind->id);
  }
  std::string text;
  for (const checks::Area& area : checks::areas()) {
    std::string healthy;
    for (const Kind& kind : area.kinds) {
      if (found.contains(kind.id)) continue;
      healthy += (healthy.empty() ? "" : ", ") + std::string(kind.id);
    }
    if (healthy.empty()) continue;
    text += marked(Severity::kOk, style) + tools::wrapped(std::string(area.title), 9, style.width);
    text += fmt::format("\n         {}\n", tools::wrapped("not found: " + healthy, 9, style.width));
  }
  return text;
}

std::string in_table(std::string_view text) {
  std::string cell(text);
  for (std::size_t at = cell.find('|'); at != std::string::npos; at = cell.find('|', at + 2)) {
    cell.replace(at, 1, "\\|");
  }
  return cell;
}

// "ip link set NETDEV up": with names in capitals in place of the values. "${" belongs to the
// shell.
std::string with_capitals(std::string_view command) {
  std::string text;
  bool is_inside = false;
  for (const char c : command) {
    if (c == '{' && !text.ends_with('$')) {
      is_inside = true;
    } else if (c == '}' && is_inside) {
      is_inside = false;
    } else {
      text += is_inside && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
  }
  return text;
}

}  // namespace

bool has_problem(const std::vector<Finding>& findings) noexcept {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.severity >= Severity::kWarning; });
}

std::string text_report(const std::string& host, const std::vector<Finding>& findings, bool all,
                        const TextStyle& style) {
  std::string text =
      tools::wrapped(fmt::format("{}: {}", printable(host), verdict(findings)), 0, style.width) +
      "\n";
  for (auto at = findings.begin(); at != findings.end();) {
    const auto end = std::find_if(at, findings.end(), [at](const Finding& finding) {
      return finding.id != at->id || finding.severity != at->severity;
    });
    text += "\n" + paragraph({at, end}, style);
    at = end;
  }
  if (all) text += "\n" + healthy_areas(findings, style);
  return text;
}

std::string json_report(const std::string& host, const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"id", finding.id},
                    {"severity", to_string(finding.severity)},
                    {"subject", printable(finding.subject)},
                    {"fact", printable(finding.fact)},
                    {"why", finding.why},
                    {"fix", printable(finding.fix)},
                    {"command", printable(finding.command)},
                    {"source", printable(finding.source)}});
  }
  const Json document = {{"host", printable(host)},
                         {"verdict", verdict(findings)},
                         {"failures", count(findings, Severity::kFailure)},
                         {"warnings", count(findings, Severity::kWarning)},
                         {"unknown", count(findings, Severity::kUnknown)},
                         {"findings", list}};
  return document.dump(1) + "\n";
}

std::string kinds_table() {
  std::string text;
  for (const checks::Area& area : checks::areas()) {
    text += fmt::format("{}### {}\n\n| finding | what it means | what to do |\n|---|---|---|\n",
                        text.empty() ? "" : "\n", area.title);
    for (const Kind& kind : area.kinds) {
      const std::string words = in_table(with_capitals(kind.command));
      const std::string command = words.empty() ? "" : "`" + words + "`";
      const std::string fix = in_table(kind.fix);
      text += fmt::format("| `{}` ({}) | {}: {} | {}{}{} |\n", kind.id, word_of(kind.severity),
                          in_table(kind.title), in_table(kind.why), command,
                          command.empty() || fix.empty() ? "" : "; ", fix);
    }
  }
  return text;
}

std::string kinds_text(const TextStyle& style) {
  std::string text;
  for (const checks::Area& area : checks::areas()) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n",
                        tools::colored(area.title, tools::Color::kBold, style.in_color));
    for (const Kind& kind : area.kinds) {
      text += fmt::format("\n{}{}\n", marked(kind.severity, style), kind.id);
      text += row("what", std::string(kind.title), style.width);
      text += row("why", std::string(kind.why), style.width);
      text +=
          row("run", with_capitals(kind.command)) + row("fix", std::string(kind.fix), style.width);
    }
  }
  return text;
}

std::string kinds_json() {
  Json list = Json::array();
  for (const checks::Area& area : checks::areas()) {
    for (const Kind& kind : area.kinds) {
      list.push_back({{"id", kind.id},
                      {"severity", to_string(kind.severity)},
                      {"area", area.title},
                      {"title", kind.title},
                      {"why", kind.why},
                      {"command", with_capitals(kind.command)},
                      {"fix", kind.fix}});
    }
  }
  return list.dump(1) + "\n";
}

}  // namespace beeline::doctor
