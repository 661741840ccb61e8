// SPDX-License-Identifier: Apache-2.0
//
// Does to shared memory what `softnic run` and `softnic ctl` do, with kill points. Usage:
//   kill_maker FABRIC               creates the fabric, holds it and releases it
//   kill_maker FABRIC PORT COMMAND  gives one of its ports a command
#include <cstdio>

#include "softnic/fabric/fabric.h"
#include "softnic/fabric/port_command.h"
#include "tests/beds/fault/scenario_fabric.h"

namespace beeline::test {
namespace {

beeline::Outcome<void> make(const std::string& name) {
  const softnic::FabricSpec spec = scenario_fabric();
  BL_TRY(softnic::Holder::hold(name, &spec));
  return {};
}

beeline::Outcome<void> command(const std::string& name, const std::string& port,
                               const std::string& text) {
  const softnic::Fabric fabric = BL_TRY(softnic::Fabric::open(name));
  const softnic::PortRef where = BL_TRY(softnic::find_port(fabric, port));
  softnic::apply(fabric, where, BL_TRY(softnic::parse_port_command(text)));
  return {};
}

}  // namespace
}  // namespace beeline::test

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return 2;
  const beeline::Outcome<void> done =
      argc == 2 ? beeline::test::make(argv[1]) : beeline::test::command(argv[1], argv[2], argv[3]);
  if (done) return 0;
  std::fprintf(stderr, "%s\n", done.error().text.c_str());
  return 1;
}
