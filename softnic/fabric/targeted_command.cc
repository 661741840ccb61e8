// SPDX-License-Identifier: Apache-2.0
// Checks a command against its target. The checks depend only on the fabric file and never on
// earlier commands, so that a whole script can be checked before any of it is executed.
#include <fmt/format.h>

#include "softnic/fabric/port_command.h"
#include "softnic/spec/gid_words.h"

namespace softnic {
namespace {

using beeline::fail;

beeline::Outcome<void> check_gid(const Fabric& fabric, PortRef where, const PortCommand& command) {
  const PortRecord& port = port_at(fabric, where);
  if (command.value >= port.gid_table_len)
    return fail(fmt::format("{} has no GID {}: its table has {} entries, from 0",
                            port_name(fabric, where), command.value, port.gid_table_len));
  const bool infiniband = port.link_layer == LinkLayer::kInfiniBand;
  if (command.gid_kind && (*command.gid_kind == GidKind::kIb) != infiniband)
    return fail(fmt::format("{} is {}: its GIDs cannot be {}; choose {}", port_name(fabric, where),
                            infiniband ? "InfiniBand" : "RoCE", gid_kind_name(*command.gid_kind),
                            infiniband ? "ib" : "roce_v1 or roce_v2"));
  return {};
}

}  // namespace

beeline::Outcome<TargetedCommand> read_targeted_command(const Fabric& fabric,
                                                        const std::string& target,
                                                        const std::string& text) {
  const PortCommand command = BL_TRY(parse_port_command(text));
  const PortRef where = BL_TRY(find_port(fabric, target));
  if (is_for_device(command.kind) && target.find(':') != std::string::npos)
    return fail(fmt::format("\"{}\" is for the whole device: leave out {} after {}", text,
                            target.substr(target.find(':')), target.substr(0, target.find(':'))));
  if (command.kind == PortCommand::Kind::kGid) BL_TRY(check_gid(fabric, where, command));
  if (command.kind == PortCommand::Kind::kLid &&
      port_at(fabric, where).link_layer != LinkLayer::kInfiniBand)
    return fail(fmt::format("{} is RoCE: it has no LID", port_name(fabric, where)));
  return TargetedCommand{where, command};
}

}  // namespace softnic
