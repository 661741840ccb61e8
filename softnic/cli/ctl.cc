// SPDX-License-Identifier: Apache-2.0
// See ctl.h; what the commands do is in fabric/port_command.h.
#include "softnic/cli/ctl.h"

#include "softnic/cli/common.h"
#include "softnic/fabric/port_command.h"

namespace softnic::cli {

int ctl(const std::string& name, const std::string& port,
        const std::vector<std::string>& commands) {
  std::vector<PortCommand> parsed;
  for (const std::string& text : commands) {
    const Outcome<PortCommand> command = parse_port_command(text);
    if (!command) return complain(command.error(), kUsage);
    parsed.push_back(*command);
  }
  const Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return complain(fabric.error());
  const Outcome<PortRef> found = find_port(*fabric, port);
  if (!found) return complain(found.error());
  for (const PortCommand& command : parsed) apply(*fabric, *found, command);
  return 0;
}

}  // namespace softnic::cli
