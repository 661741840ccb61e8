// SPDX-License-Identifier: Apache-2.0
// `softnic ctl` without a script.
#include "softnic/cli/common.h"
#include "softnic/cli/subcommands.h"
#include "softnic/fabric/port_command.h"

namespace softnic::cli {

int ctl(const std::string& name, const std::string& target,
        const std::vector<std::string>& commands) {
  for (const std::string& text : commands) {
    const beeline::Outcome<PortCommand> command = parse_port_command(text);
    if (!command) return report_error(command.error().text, kUsage);
  }
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return report_error(fabric.error().text);
  std::vector<TargetedCommand> ready;
  for (const std::string& text : commands) {
    const beeline::Outcome<TargetedCommand> command = read_targeted_command(*fabric, target, text);
    if (!command) return report_error(command.error().text);
    ready.push_back(*command);
  }
  for (const TargetedCommand& command : ready) apply(*fabric, command);
  return 0;
}

}  // namespace softnic::cli
