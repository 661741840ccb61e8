// SPDX-License-Identifier: Apache-2.0
// `softnic ctl --script`. faults/script.h describes scripts.
#include <fmt/format.h>

#include "softnic/cli/common.h"
#include "softnic/cli/stop_signals.h"
#include "softnic/cli/subcommands.h"
#include "softnic/faults/script.h"
#include "softnic/spec/read_text.h"

namespace softnic::cli {
int ctl_script(const std::string& name, const std::string& file) {
  const auto text = read_text(file == "-" ? "/dev/stdin" : file);
  if (!text) return report_error(fmt::format("cannot read {}: {}", file, text.error().text));
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return report_error(fabric.error().text);
  const auto script = read_script(*fabric, *text, file == "-" ? "stdin" : file);
  if (!script) return report_error(script.error().text, kUsage);
  StopSignals signals;
  play(*fabric, *script, [&](std::uint64_t at_ns) { return signals.wait_until(at_ns); });
  return signals.exit_status();
}

}  // namespace softnic::cli
