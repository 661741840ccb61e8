// SPDX-License-Identifier: Apache-2.0
// The grammar of the fabric file: the keys of each table, and how each value is read and checked.
// Rules between several values are in spec_check.h.
#include "softnic/spec/spec_toml.h"

#include <fmt/format.h>

#include "common/base/whole_file.h"
#include "softnic/spec/fabric_limits.h"
#include "softnic/spec/gid_words.h"
#include "softnic/spec/link_rate.h"
#include "softnic/spec/names.h"
#include "softnic/spec/spec_check.h"
#include "softnic/spec/toml_section.h"
#include "softnic/spec/units.h"

namespace softnic {
namespace {

const std::vector<std::string> kFileKeys{"clock_scale", "seed", "hazards", "host"};
const std::vector<std::string> kHazardKeys{"scatter", "hide", "bunch", "command"};
const std::vector<std::string> kHostKeys{"name", "numa_nodes", "device", "gpu"};
const std::vector<std::string> kPortKeys{"gbps",    "mtu",    "rate", "latency", "up",
                                         "network", "netdev", "lid",  "gids",    "gid_table_len"};
const std::vector<std::string> kDeviceKeys{"name", "link_layer", "pci", "numa", "ports"};
const std::vector<std::string> kGpuKeys{"name", "pci", "numa", "bar1_mib"};
const std::vector<std::string> kGidKeys{"index", "gid", "type"};

constexpr std::uint32_t kMaxNumaNodes = 64;  // the bits of one word of a node mask
constexpr std::size_t kMaxNetdevLen = 15;    // IFNAMSIZ without the terminating zero

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Reads a string that must be one of `words`.
template <class Value>
std::optional<Value> read_word(const Section& section, const char* key,
                               const std::vector<std::pair<std::string, Value>>& words) {
  const std::optional<std::string> text = section.text(key);
  if (!text) return std::nullopt;
  std::vector<std::string> known;
  for (const auto& [word, value] : words) {
    if (word == *text) return value;
    known.push_back('"' + word + '"');
  }
  section.add_error(key, fmt::format("\"{}\" is not one of {}", *text, list_text(known)));
  return std::nullopt;
}

void read_gid_value(const Section& section, GidSpec& gid) {
  const std::optional<std::string> text = section.text("gid");
  if (!text) return;
  const auto raw = parse_gid(*text);
  if (!raw) return section.add_error("gid", raw.error().text);
  gid.raw = *raw;
  if (gid.raw == GidSpec{}.raw)
    section.add_error("gid", "all zero stands for an empty entry; leave the entry out instead");
}

GidKind read_gid_kind(const Section& section, LinkLayer link_layer) {
  if (link_layer == LinkLayer::kInfiniBand)
    return read_word<GidKind>(section, "type", {{"ib", GidKind::kIb}}).value_or(GidKind::kIb);
  return read_word<GidKind>(section, "type",
                            {{"roce_v1", GidKind::kRoceV1}, {"roce_v2", GidKind::kRoceV2}})
      .value_or(GidKind::kRoceV2);
}

GidSpec read_gid(const Section& section, LinkLayer link_layer, std::uint32_t table_len) {
  section.reject_unknown_keys(kGidKeys);
  for (const char* key : {"index", "gid"})
    if (!section.has_key(key))
      section.add_error(key, "is missing: a gids entry is {index, gid, type}");
  GidSpec gid;
  gid.index = static_cast<std::uint32_t>(section.integer("index", 0, table_len - 1).value_or(0));
  read_gid_value(section, gid);
  gid.kind = read_gid_kind(section, link_layer);
  return gid;
}

// Reads a string with a unit: a rate or a time.
template <class Parse>
void read_quantity(const Section& section, const char* key, Parse parse, std::uint64_t& out) {
  const std::optional<std::string> text = section.text(key);
  if (!text) return;
  const auto parsed = parse(*text);
  if (!parsed) return section.add_error(key, parsed.error().text);
  out = *parsed;
}

void read_speeds(const Section& section, PortSpec& port) {
  if (const auto gbps = section.integer("gbps", 1, 800)) {
    port.gbps = static_cast<std::uint32_t>(*gbps);
    if (find_link_rate(port.gbps) == nullptr) {
      std::vector<std::string> known;
      for (const LinkRate& rate : link_rates()) known.push_back(std::to_string(rate.gbps));
      section.add_error("gbps", fmt::format("{} is not a port speed; the speeds are {}", *gbps,
                                            list_text(known)));
    }
  }
  if (const auto mtu = section.integer("mtu", 256, 4096)) {
    port.mtu = static_cast<std::uint32_t>(*mtu);
    if ((port.mtu & (port.mtu - 1)) != 0)
      section.add_error("mtu", fmt::format("{} is not 256, 512, 1024, 2048 or 4096", *mtu));
  }
  read_quantity(section, "rate", parse_rate, port.rate_bytes_s);
  read_quantity(section, "latency", parse_duration_ns, port.latency_ns);
}

void read_addresses(const Section& section, LinkLayer link_layer, PortSpec& port) {
  const bool ethernet = link_layer == LinkLayer::kEthernet;
  if (ethernet && section.has_key("lid"))
    section.add_error("lid", "a RoCE port has no LID; the key is for link_layer = \"infiniband\"");
  if (!ethernet && section.has_key("netdev"))
    section.add_error(
        "netdev",
        "an InfiniBand port has no network interface; the key is for link_layer = \"roce\"");
  port.lid = static_cast<std::uint16_t>(section.integer("lid", 1, kMaxUnicastLid).value_or(0));
  port.netdev = section.text("netdev").value_or("");
  if (section.has_key("netdev") && !is_plain_name(port.netdev, kMaxNetdevLen))
    section.add_error("netdev", fmt::format("\"{}\" is not an interface name: up to {} letters, "
                                            "digits, '-', '_', '.'",
                                            port.netdev, kMaxNetdevLen));
  port.gid_table_len =
      static_cast<std::uint32_t>(section.integer("gid_table_len", 1, kMaxGids).value_or(kMaxGids));
  for (const Section& gid : section.tables("gids", "a gids entry"))
    port.gids.push_back(read_gid(gid, link_layer, port.gid_table_len));
}

PortSpec read_port(const Section& section, LinkLayer link_layer) {
  PortSpec port;
  read_speeds(section, port);
  read_addresses(section, link_layer, port);
  port.up = section.boolean("up").value_or(true);
  port.network = section.text("network").value_or("");
  if (port.network.size() >= kNameLen)
    section.add_error("network", fmt::format("longer than {} characters", kNameLen - 1));
  return port;
}

std::vector<PortSpec> read_ports(const Section& section, LinkLayer link_layer) {
  if (!section.has_key("ports")) return {read_port(section, link_layer)};
  for (const std::string& key : kPortKeys)
    if (section.has_key(key.c_str()))
      section.add_error(key.c_str(),
                        "must be in each entry of \"ports\", because the device has \"ports\"");
  std::vector<PortSpec> ports;
  for (const Section& port : section.tables("ports", "a ports entry")) {
    port.reject_unknown_keys(kPortKeys);
    ports.push_back(read_port(port, link_layer));
  }
  if (ports.empty() || ports.size() > kMaxPorts)
    section.add_error("ports", fmt::format("{} ports; a device has 1 or 2", ports.size()));
  return ports;
}

int read_numa(const Section& section) {
  return static_cast<int>(section.integer("numa", -1, kMaxNumaNodes - 1).value_or(0));
}

DeviceSpec read_device(const Section& section, const std::string& name) {
  DeviceSpec device;
  device.name = name;
  device.link_layer =
      read_word<LinkLayer>(section, "link_layer",
                           {{"roce", LinkLayer::kEthernet}, {"infiniband", LinkLayer::kInfiniBand}})
          .value_or(LinkLayer::kEthernet);
  device.pci = section.text("pci").value_or("");
  device.numa = read_numa(section);
  device.ports = read_ports(section, device.link_layer);
  return device;
}

GpuSpec read_gpu(const Section& section, const std::string& name) {
  GpuSpec gpu{name, section.text("pci").value_or(""), read_numa(section)};
  if (const std::optional<std::int64_t> mib = section.integer("bar1_mib", 1, 1 << 20))
    gpu.bar1 = static_cast<std::uint64_t>(*mib) << 20;
  return gpu;
}

HazardSpec read_hazards(const Section& section) {
  section.reject_unknown_keys(kHazardKeys);
  HazardSpec hazards;
  hazards.scatter = section.boolean("scatter").value_or(false);
  hazards.hide = section.boolean("hide").value_or(false);
  read_quantity(section, "bunch", parse_duration_ns, hazards.bunch_ns);
  read_quantity(section, "command", parse_duration_ns, hazards.command_ns);
  return hazards;
}

// A host's tree is in the directory of the fabric's own files (fabric/fabric.h), whose names are
// reserved.
bool is_reserved(const std::string& host) {
  return host == "fabric" || host == "fabric.new" || host == "holders" || host == "log" ||
         host == "seats" || host.starts_with("arena.") || host.starts_with("ev.");
}

class FileReader {
 public:
  explicit FileReader(const std::string& file_name) : file_name_(file_name), error_(file_name) {}

  beeline::Outcome<FabricSpec> read(const std::string& text) {
    const Section file = BL_TRY(Section::parse(text, file_name_, error_));
    file.reject_unknown_keys(kFileKeys);
    spec_.clock_scale = file.number("clock_scale", 0.0001, 1000).value_or(1.0);
    const std::int64_t seed =
        file.integer("seed", 0, INT64_MAX).value_or(static_cast<std::int64_t>(spec_.seed));
    spec_.seed = static_cast<std::uint64_t>(seed);
    if (const std::optional<Section> hazards = file.table("hazards", "[hazards]"))
      spec_.hazards = read_hazards(*hazards);
    for (const Section& host : file.tables("host", "[[host]]")) read_hosts(host);
    if (error_.empty()) check_whole();
    if (!error_.empty()) return beeline::fail(error_.text());
    return std::move(spec_);
  }

 private:
  void read_hosts(const Section& section) {
    section.reject_unknown_keys(kHostKeys);
    const std::vector<std::string> names = section.names(kMaxHosts, kNameLen - 1);
    for (std::size_t i = 0; i < names.size() && error_.empty(); ++i)
      read_host(section.for_expansion({i, names.size()}), names[i]);
  }

  void read_host(const Section& section, const std::string& name) {
    if (is_reserved(name))
      section.add_error(
          "name", fmt::format("\"{}\" is reserved: every fabric has a file of this name", name));
    HostSpec& host = spec_.hosts.emplace_back();
    host.name = name;
    host.numa_nodes =
        static_cast<std::uint32_t>(section.integer("numa_nodes", 1, kMaxNumaNodes).value_or(1));
    lines_[name] = section.line();
    for (const Section& device : section.tables("device", "[[host.device]]"))
      read_devices(device, host);
    for (const Section& gpu : section.tables("gpu", "[[host.gpu]]")) read_gpus(gpu, host);
  }

  void read_devices(const Section& section, HostSpec& host) {
    section.reject_unknown_keys(joined(kDeviceKeys, kPortKeys));
    const std::vector<std::string> names = section.names(kMaxDevices, kNameLen - 1);
    for (std::size_t i = 0; i < names.size() && error_.empty(); ++i) {
      const Section one = section.for_expansion({i, names.size()});
      host.devices.push_back(read_device(one, names[i]));
      remember_lines(one, host, host.devices.back());
    }
  }

  void read_gpus(const Section& section, HostSpec& host) {
    section.reject_unknown_keys(kGpuKeys);
    const std::vector<std::string> names = section.names(kMaxDevices, kNameLen - 1);
    for (std::size_t i = 0; i < names.size() && error_.empty(); ++i) {
      host.gpus.push_back(read_gpu(section.for_expansion({i, names.size()}), names[i]));
      lines_[host.name + "/" + names[i]] = section.line();
    }
  }

  void remember_lines(const Section& section, const HostSpec& host, const DeviceSpec& device) {
    lines_[device_place(host, device)] = section.line();
    const std::vector<Section> ports = section.tables("ports", "a ports entry");
    for (std::size_t p = 0; p < ports.size(); ++p)
      lines_[port_place(host, device, p)] = ports[p].line();
  }

  // A port without a table of its own is defined by the table of its device.
  std::uint32_t line_of(std::string place) const {
    for (;;) {
      const auto entry = lines_.find(place);
      if (entry != lines_.end()) return entry->second;
      const std::size_t cut = place.find_last_of(":/");
      if (cut == std::string::npos) return 0;
      place.resize(cut);
    }
  }

  void check_whole() {
    complete(spec_);
    if (const std::optional<SpecFault> fault = find_fault(spec_))
      error_.at(line_of(fault->place), fault->reason);
  }

  const std::string file_name_;
  FirstError error_;
  FabricSpec spec_;
  LineNumbers lines_;
};

}  // namespace

beeline::Outcome<FabricSpec> parse_fabric(const std::string& text, const std::string& file_name) {
  return FileReader(file_name).read(text);
}

beeline::Outcome<FabricSpec> read_fabric_file(const std::string& path) {
  const auto text = beeline::read_whole_file(path);
  if (!text) return beeline::fail("the fabric file " + text.error().text);
  return parse_fabric(*text, path);
}

}  // namespace softnic
