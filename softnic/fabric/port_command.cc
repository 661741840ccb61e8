// SPDX-License-Identifier: Apache-2.0
// From the words of `softnic ctl` to the port record. A fault's values are written before the
// trouble bit that makes senders look at them; events go out last, when all else can be seen.
#include "softnic/fabric/port_command.h"

#include <fmt/format.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <charconv>

#include "softnic/fabric/events.h"
#include "softnic/spec/names.h"
#include "softnic/spec/sysfs_tree.h"
#include "softnic/spec/units.h"
#include "softnic/spec/wc_status.h"

namespace softnic {
namespace {

using beeline::fail;
using Kind = PortCommand::Kind;

const std::vector<std::string> kSpellings{
    "down", "up", "rate=RATE", "latency=TIME", "error=STATUS@N", "corrupt@N", "reset"};

Outcome<uint64_t> parse_count(const std::string& text) {
  uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc{} || rest != end || count == 0)
    return fail(fmt::format(
        "\"{}\" is not a count: after @ comes 1 for the next work request, 2 for the one after it",
        text));
  return count;
}

Outcome<PortCommand> parse_error(const std::string& value) {
  const size_t at = value.find('@');
  if (at == std::string::npos)
    return fail(
        fmt::format("\"error={}\" lacks @N: write for example error=retry_exc_err@1", value));
  PortCommand command{Kind::kError, 0, 0};
  command.status = BL_TRY(parse_wc_status(value.substr(0, at)));
  command.value = BL_TRY(parse_count(value.substr(at + 1)));
  return command;
}

// The error for a command that has no such word, or lacks what belongs behind it.
std::string unknown_command(const std::string& text) {
  std::vector<std::string> words = kSpellings;
  for (std::string& word : words) word.resize(std::min(word.size(), word.find_first_of("=@")));
  const std::string meant = nearest(text.substr(0, text.find_first_of("=@")), words);
  const auto known = std::find(words.begin(), words.end(), meant);
  if (known != words.end())
    return fmt::format("unknown command \"{}\"; did you mean {}?", text,
                       kSpellings[static_cast<size_t>(known - words.begin())]);
  return fmt::format("unknown command \"{}\"; there are {}", text, listing(kSpellings));
}

// "h0/softnic0:1", taken apart.
struct PortText {
  std::string host;  // empty: any
  std::string device;
  std::string port;  // empty: 1
};

PortText split_port(const std::string& text) {
  PortText parts;
  const size_t slash = text.find('/');
  const size_t start = slash == std::string::npos ? 0 : slash + 1;
  const size_t colon = text.find(':', start);
  if (slash != std::string::npos) parts.host = text.substr(0, slash);
  parts.device = text.substr(start, colon == std::string::npos ? colon : colon - start);
  if (colon != std::string::npos) parts.port = text.substr(colon + 1);
  return parts;
}

std::vector<std::string> host_names(const FabricHeader& header) {
  std::vector<std::string> names;
  for (uint32_t h = 0; h < header.host_count; ++h) names.emplace_back(header.hosts[h].name);
  return names;
}

// The different names of devices on `host`, or on all hosts if it is empty.
std::vector<std::string> device_names(const FabricHeader& header, const std::string& host) {
  std::vector<std::string> names;
  for (uint32_t d = 0; d < header.device_count; ++d) {
    const DeviceRecord& device = header.devices[d];
    if (!host.empty() && host != header.hosts[device.host].name) continue;
    if (std::find(names.begin(), names.end(), device.name) == names.end())
      names.emplace_back(device.name);
  }
  return names;
}

Outcome<uint32_t> find_device(const Fabric& fabric, const PortText& wanted) {
  const FabricHeader& header = fabric.header();
  if (!wanted.host.empty() && !fabric.find_host(wanted.host))
    return fail(fmt::format("no host \"{}\" in fabric {}; there are {}", wanted.host, fabric.name(),
                            listing(host_names(header))));
  std::vector<std::string> owners;
  uint32_t found = 0;
  for (uint32_t d = 0; d < header.device_count; ++d) {
    const DeviceRecord& device = header.devices[d];
    const std::string host = header.hosts[device.host].name;
    if (wanted.device != device.name || (!wanted.host.empty() && wanted.host != host)) continue;
    owners.push_back(host);
    found = d;
  }
  if (owners.empty())
    return fail(fmt::format(
        "no device \"{}\" on {}; there are {}", wanted.device,
        wanted.host.empty() ? "any host of fabric " + fabric.name() : "host " + wanted.host,
        listing(device_names(header, wanted.host))));
  if (owners.size() > 1)
    return fail(fmt::format("{0} is on {1}: say which, for example {2}/{0}", wanted.device,
                            listing(owners), owners.front()));
  return found;
}

Outcome<uint32_t> find_port_index(const DeviceRecord& device, const std::string& text) {
  if (text.empty()) return 0u;
  for (uint32_t number = 1; number <= device.port_count; ++number)
    if (text == std::to_string(number)) return number - 1;
  return fail(fmt::format("no port \"{}\" on {}; it has {}", text, device.name,
                          device.port_count == 1 ? "port 1 only" : "ports 1 and 2"));
}

void update_shaped(PortRecord& port) {
  if (port.rate_bytes_s.load() != 0 || port.latency_ns.load() != 0)
    port.trouble.fetch_or(kTroubleShaped);
  else
    port.trouble.fetch_and(~uint32_t{kTroubleShaped});
}

void shape(PortRecord& port, uint64_t rate_bytes_s, uint64_t latency_ns) {
  port.rate_bytes_s.store(rate_bytes_s);
  port.latency_ns.store(latency_ns);
  // What was reserved at the old rate is void.
  port.egress_free_ns.store(0);
  port.ingress_free_ns.store(0);
  update_shaped(port);
}

void disarm(PortRecord& port) {
  port.trouble.fetch_and(~uint32_t{kTroubleError | kTroubleCorrupt});
  port.error_countdown.store(0);
  port.corrupt_countdown.store(0);
}

void switch_port(PortRecord& port, bool up) {
  if (up) {
    port.trouble.fetch_and(~uint32_t{kTroubleDown});
  } else {
    port.trouble.fetch_or(kTroubleDown);
  }
}

bool is_up(const PortRecord& port) { return (port.trouble.load() & kTroubleDown) == 0; }

// sysfs shows what the port is, not what this call made of it: another process may have switched it
// back meanwhile, and whoever writes last looks again.
void show_state(const Fabric& fabric, PortRef where) {
  const FabricHeader& header = fabric.header();
  const DeviceRecord& device = header.devices[where.device];
  const PortRecord& port = device.ports[where.port];
  const std::string root = fabric.sysfs_root(header.hosts[device.host].name);
  bool shown = false;
  do {
    shown = is_up(port);
    show_port_state(root, device.name, where.port + 1, shown);
  } while (is_up(port) != shown);
}

// Once for every change, or twice if who told it died before noting that.
void tell_state(const Fabric& fabric, PortRef where) {
  PortRecord& port = fabric.header().devices[where.device].ports[where.port];
  for (bool up = is_up(port); (port.told_down.load() == 0) != up; up = is_up(port)) {
    send_port_event(fabric, where.device, where.port + 1,
                    up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    port.told_down.store(up ? 0 : 1);
  }
}

}  // namespace

Outcome<PortCommand> parse_port_command(const std::string& text) {
  if (text == "down") return PortCommand{Kind::kDown, 0, 0};
  if (text == "up") return PortCommand{Kind::kUp, 0, 0};
  if (text == "reset") return PortCommand{Kind::kReset, 0, 0};
  if (text.starts_with("rate="))
    return PortCommand{Kind::kRate, BL_TRY(parse_rate(text.substr(5))), 0};
  if (text.starts_with("latency="))
    return PortCommand{Kind::kLatency, BL_TRY(parse_duration_ns(text.substr(8))), 0};
  if (text.starts_with("error=")) return parse_error(text.substr(6));
  if (text.starts_with("corrupt@"))
    return PortCommand{Kind::kCorrupt, BL_TRY(parse_count(text.substr(8))), 0};
  return fail(unknown_command(text));
}

Outcome<PortRef> find_port(const Fabric& fabric, const std::string& text) {
  const PortText wanted = split_port(text);
  const uint32_t device = BL_TRY(find_device(fabric, wanted));
  const uint32_t port = BL_TRY(find_port_index(fabric.header().devices[device], wanted.port));
  return PortRef{device, port};
}

void apply(const Fabric& fabric, PortRef where, const PortCommand& command) {
  PortRecord& port = fabric.header().devices[where.device].ports[where.port];
  switch (command.kind) {
    case Kind::kDown: switch_port(port, false); break;
    case Kind::kUp: switch_port(port, true); break;
    case Kind::kRate: shape(port, command.value, port.latency_ns.load()); break;
    case Kind::kLatency: shape(port, port.rate_bytes_s.load(), command.value); break;
    case Kind::kError:
      port.error_status.store(command.status);
      port.error_countdown.store(command.value);
      port.trouble.fetch_or(kTroubleError);
      break;
    case Kind::kCorrupt:
      port.corrupt_countdown.store(command.value);
      port.trouble.fetch_or(kTroubleCorrupt);
      break;
    case Kind::kReset:
      shape(port, port.file_rate, port.file_latency);
      disarm(port);
      switch_port(port, true);
      break;
  }
  fabric.header().generation.fetch_add(1);
  show_state(fabric, where);
  tell_state(fabric, where);
}

}  // namespace softnic
