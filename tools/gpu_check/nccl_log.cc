// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/nccl_log.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <strings.h>

#include <algorithm>
#include <fstream>

namespace beeline::gpu {
namespace {

// The text between `before` and `end` (a character, or the end of the line).
std::optional<std::string> after(const std::string& line, const std::string& before, char end) {
  const std::size_t found = line.find(before);
  if (found == std::string::npos) return std::nullopt;
  const std::size_t start = found + before.size();
  return line.substr(start, line.find(end, start) - start);
}

bool is_same_name(const std::string& one, const std::string& other) {
  return strcasecmp(one.c_str(), other.c_str()) == 0;
}

bool is_only(const std::set<std::string>& found, const std::string& wanted) {
  return std::all_of(found.begin(), found.end(),
                     [&](const std::string& one) { return is_same_name(one, wanted); });
}

void read_line(const std::string& line, NcclLog& log) {
  if (const auto version = after(line, "NCCL version ", '+')) log.version = *version;
  if (const auto plugin = after(line, "Loaded net plugin ", '\n')) log.plugin = *plugin;
  if (const auto network = after(line, "Using network ", '\n')) log.networks.insert(*network);
  if (line.find("AllReduce: ") != std::string::npos) {
    if (const auto proto = after(line, " proto ", ' ')) log.protos.insert(*proto);
  }
  if (const auto path = after(line, " via NET/", '\n')) {
    ++log.paths;
    if (path->find("/GDRDMA") != std::string::npos) ++log.direct_paths;
  }
  if (const auto warning = after(line, "NCCL WARN ", '\n')) log.warnings.push_back(*warning);
}

std::optional<std::string> find_memory_fault(const NcclLog& log, Memory memory) {
  if (log.paths == 0)
    return "NCCL's log has no line \"via NET/\", so nobody knows from which memory";
  if (memory == Memory::kHost && log.direct_paths > 0) {
    return fmt::format("NCCL used GPUDirect on {} of {} connections, and should have used none",
                       log.direct_paths, log.paths);
  }
  if (memory != Memory::kHost && log.direct_paths < log.paths) {
    return fmt::format("NCCL did not use GPUDirect on {} of {} connections, though asked for it",
                       log.paths - log.direct_paths, log.paths);
  }
  return std::nullopt;
}

}  // namespace

NcclLog read_nccl_log(const std::string& file) {
  NcclLog log;
  std::ifstream stream(file);
  log.exists = stream.good();
  for (std::string line; std::getline(stream, line);) read_line(line, log);
  return log;
}

std::optional<std::string> find_fault(const NcclLog& log, const Expected& expected) {
  if (!log.exists) return "NCCL wrote no log, so nobody knows which network it used";
  if (log.networks.empty()) return "NCCL's log has no line \"Using network\"";
  if (!is_only(log.networks, expected.net)) {
    return fmt::format("NCCL used network {}, not {}", fmt::join(log.networks, ", "), expected.net);
  }
  if (expected.by_plugin && !log.plugin.starts_with(expected.net + " (v")) {
    return fmt::format("NCCL's log has no line \"Loaded net plugin {} (v...)\"", expected.net);
  }
  if (!expected.proto.empty() && !is_only(log.protos, expected.proto)) {
    return fmt::format("NCCL used protocol {}, not {}", fmt::join(log.protos, ", "),
                       expected.proto);
  }
  return find_memory_fault(log, expected.memory);
}

}  // namespace beeline::gpu
