// SPDX-License-Identifier: Apache-2.0
// `softnic ctl --script`; what a script is, is in faults/script.h.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>

#include "softnic/cli/common.h"
#include "softnic/cli/ctl.h"
#include "softnic/cli/stop_signals.h"
#include "softnic/faults/script.h"

namespace softnic::cli {
namespace {

std::optional<std::string> read_all(const std::string& file) {
  std::stringstream text;
  if (file == "-") {
    text << std::cin.rdbuf();
    return text.str();
  }
  std::ifstream stream(file, std::ios::binary);
  if (!stream.is_open()) return std::nullopt;
  text << stream.rdbuf();
  return stream.bad() ? std::nullopt : std::optional(text.str());
}

}  // namespace

int ctl_script(const std::string& name, const std::string& file) {
  const std::optional<std::string> text = read_all(file);
  if (!text) return complain(fmt::format("cannot read {}: {}", file, std::strerror(errno)));
  const Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return complain(fabric.error());
  const auto script = read_script(*fabric, *text, file == "-" ? "stdin" : file);
  if (!script) return complain(script.error(), kUsage);
  StopSignals signals;
  play(*fabric, *script, [&](uint64_t at_ns) { return signals.wait_until(at_ns); });
  return signals.exit_status();
}

}  // namespace softnic::cli
