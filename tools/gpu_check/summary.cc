// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

namespace beeline::gpu {
namespace {

// Makes a text fit into one field of a table and of its Markdown.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '|'; }, ' ');
  return text;
}

}  // namespace

void Summary::begin(const Run& run) {
  for (const Case& one : run.cases) parts_[key(run)].lines[one.op];
}

void Summary::add_case(const Run& run, const Case& one, const CaseResult& result) {
  Line& line = parts_[key(run)].lines[one.op];
  line.wrong += result.wrong;
  if (result.wrong == 0) line.right += static_cast<std::uint64_t>(run.rounds);
  line.seconds += result.seconds;
}

void Summary::add_fault(const Run& run, const std::string& what) {
  Part& part = parts_[key(run)];
  if (part.faults++ == 0) {
    part.first_fault =
        one_line(run.settings.proto.empty() ? what : run.settings.proto + ", " + what);
  }
}

void Summary::discount(const Run& run) { parts_[key(run)].counts = false; }

void Summary::add_log(const Run& run, const NcclLog& log) {
  Part& part = parts_[key(run)];
  if (!log.networks.empty()) part.network = *log.networks.begin();
  if (!log.plugin.empty()) part.network = log.plugin;
  if (!log.version.empty()) part.nccl = log.version;
}

std::string Summary::result_of(const Line& line, bool counts) {
  if (line.wrong > 0) return fmt::format("WRONG: {} elements", line.wrong);
  if (line.right == 0) return "WRONG: it never ran";
  if (!counts) return "WRONG: not counted, see \"the run\"";
  return fmt::format("right, {} times", line.right);
}

bool Summary::write(const std::string& file) const {
  const std::string unfinished = file + ".new";
  std::ofstream stream(unfinished);
  for (const auto& [key, part] : parts_) {
    const std::string where =
        fmt::format("{}\t{}\t{}\t{}", part.network, part.nccl, key.first, to_string(key.second));
    for (const auto& [op, line] : part.lines) {
      stream << fmt::format("{}\t{}\t{}\t{:.3f}\n", to_string(op), where,
                            result_of(line, part.counts), line.seconds);
    }
    if (part.faults > 0) {
      const std::string more =
          part.faults == 1 ? "" : fmt::format(" (and {} more)", part.faults - 1);
      stream << fmt::format("the run\t{}\tWRONG: {}{}\t-\n", where, part.first_fault, more);
    }
  }
  stream.close();
  return stream.good() && std::rename(unfinished.c_str(), file.c_str()) == 0;
}

}  // namespace beeline::gpu
