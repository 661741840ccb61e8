// SPDX-License-Identifier: Apache-2.0
// See ctl.h; what the commands do is in fabric/port_command.h.
#include "softnic/cli/ctl.h"

#include "softnic/cli/common.h"
#include "softnic/fabric/port_command.h"

namespace softnic::cli {

int ctl(const std::string& name, const std::string& target,
        const std::vector<std::string>& commands) {
  for (const std::string& text : commands) {
    const beeline::Outcome<PortCommand> command = parse_port_command(text);
    if (!command) return complain(command.error().text, kUsage);
  }
  const beeline::Outcome<Fabric> fabric = Fabric::open(fabric_name(name));
  if (!fabric) return complain(fabric.error().text);
  std::vector<Order> orders;
  for (const std::string& text : commands) {
    const beeline::Outcome<Order> order = read_order(*fabric, target, text);
    if (!order) return complain(order.error().text);
    orders.push_back(*order);
  }
  for (const Order& order : orders) apply(*fabric, order);
  return 0;
}

}  // namespace softnic::cli
