// SPDX-License-Identifier: Apache-2.0
// `softnic ctl --script`. faults/script.h describes scripts.
#include "softnic/faults/script.h"
#include "common/base/whole_file.h"
#include "softnic/cli/common.h"
#include "softnic/cli/stop_signals.h"
#include "softnic/cli/subcommands.h"

namespace softnic::cli {
int ctl_script(const std::string& name, const std::string& file) {
  const bool is_stdin = file == "-";  // somebody may be typing
  const auto text =
      beeline::read_whole_file(is_stdin ? "/dev/stdin" : file, beeline::kMostFileBytes,
                               is_stdin ? beeline::kNoLimit : beeline::kMostSilence);
  if (!text) return report_error(text.error().text);
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return report_error(fabric.error().text);
  const auto script = read_script(*fabric, *text, is_stdin ? "stdin" : file);
  if (!script) return report_error(script.error().text, kUsage);
  StopSignals signals;
  play(*fabric, *script, [&](std::uint64_t at_ns) { return signals.wait_until(at_ns); });
  return signals.exit_status();
}

}  // namespace softnic::cli
