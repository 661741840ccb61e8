// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/doctor/record_paths.h"
#include "tools/doctor/replaced_addresses.h"

namespace beeline::doctor {
namespace {

using checks::Access;
using checks::Text;
using checks::Tree;
using Json = nlohmann::ordered_json;

constexpr int kMostLinks = 40;  // as the kernel follows
constexpr std::size_t kMostMessages = 200;

// Words of the kernel's messages about what the checks look at.
constexpr std::array<std::string_view, 11> kWords = {
    "AER:",    "bnxt", "DMAR", "infiniband",     "IO_PAGE_FAULT", "irdma",
    "libnccl", "mlx5", "NVRM", "nvidia_peermem", "rdma"};

bool is_text(const std::string& bytes) noexcept {
  return std::ranges::all_of(
      bytes, [](unsigned char c) { return c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f); });
}

// The part of a bridge's configuration space that the checks need: the register of access control,
// and the list that leads to it. The rest becomes zeros, because other capabilities contain serial
// numbers, which may be hardware addresses. The length says whether the user was allowed to read
// more than the first 256 bytes.
std::string access_control_of(const std::string& config) {
  constexpr std::size_t kExtended = 0x100;
  constexpr unsigned kAccessControl = 0x0d;
  std::string kept(config.size(), '\0');
  std::size_t used = std::min<std::size_t>(config.size(), kExtended + 0x10);
  std::size_t at = kExtended;
  for (int n = 0; n < 64 && at >= kExtended && at + 8 <= config.size(); ++n) {
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(config[at + i]));
    };
    const bool is_wanted = (byte(0) | byte(1) << 8) == kAccessControl;
    kept.replace(at, is_wanted ? 8 : 4, config, at, is_wanted ? 8 : 4);
    used = std::max(used, at + 8);
    at = byte(2) >> 4 | byte(3) << 4;
  }
  return kept.substr(0, used);
}

bool is_bridge(const Tree& tree, const std::string& config) {
  const std::string folder = config.substr(0, config.rfind('/'));
  return tree.line(folder + "/class").starts_with("0x0604");
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return text;
}

bool has(std::string_view text, std::string_view part) noexcept {
  return text.find(part) != std::string_view::npos;
}

// The lines that are accepted.
template <class IsWanted>
std::string lines_of(const std::string& text, IsWanted&& is_wanted) {
  std::string all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (is_wanted(line)) all += line + "\n";
    at = end + 1;
  }
  return all;
}

// Large files are shortened to what the checks read.
std::string shortened(const std::string& path, const std::string& text) {
  if (path == "/proc/cpuinfo") return text.substr(0, text.find("\n\n") + 1);  // one processor
  if (path == "/proc/self/mounts") {
    return lines_of(text, [](const std::string& line) { return has(line, " /dev/shm "); });
  }
  if (path == "/proc/self/status") {
    return lines_of(text, [](const std::string& line) {
      return line.starts_with("CapEff:") || line.starts_with("Cpus_allowed_list:");
    });
  }
  if (path != "/dev/kmsg") return text;
  const auto is_wanted = [](const std::string& line) {
    return std::ranges::any_of(kWords, [&line](std::string_view word) { return has(line, word); });
  };
  std::string wanted = lines_of(text, is_wanted);
  std::size_t at = wanted.size();
  for (std::size_t n = 0; n <= kMostMessages && at != 0 && at != std::string::npos; ++n) {
    at = wanted.rfind('\n', at - 1);
  }
  return at == 0 || at == std::string::npos ? wanted : wanted.substr(at + 1);
}

// Variables whose values contain the name of a host.
bool is_name_of_host(std::string_view variable) noexcept {
  return variable == "NCCL_HOSTID" || variable == "NCCL_COMM_ID";
}

const char* name_of(Access access) noexcept { return access == Access::kDenied ? "EACCES" : "EIO"; }

class Recorder {
 public:
  Recorder(const Tree& tree, bool with_addresses) : tree_(tree), with_addresses_(with_addresses) {}

  void add(const std::string& path) {
    if (path.ends_with("/libnccl.so.2")) return add_library(path);
    std::string place = resolve(path);
    if (place.empty()) return;
    if (const std::string target = tree_.link(place); !target.empty()) {
      return put(place, {{"@link", target}});
    }
    if (path.starts_with("/dev/infiniband/")) return add_device(place);
    const Text text = tree_.read(place);
    // A table has up to 1024 entries, of which few are in use; the others cannot be read, or are
    // zero.
    if (has(path, "/gid_attrs/") && !text.is_read()) return;
    if (has(path, "/gids/") && text.text.find_first_not_of("0:\n") == std::string::npos) return;
    switch (text.access) {
      case Access::kAbsent: return;
      case Access::kDenied:
      case Access::kFailed: return add_failure(place, text);
      case Access::kRead: return add_content(path, place, text.text);
    }
  }

  void add_counter(const std::string& path, std::uint64_t value) {
    put(resolve(path), std::to_string(value) + "\n");
  }

  void add_text(const std::string& place, const std::string& text) {
    put(place, with_addresses_ ? text : addresses_.in_text(text));
  }

  std::string finish() {
    return document_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  // Follows the links in the folders of the path, and records them. Empty if there are too many.
  std::string resolve(const std::string& path) {
    std::string done;
    std::string rest = path.substr(1);
    for (int links = 0; links < kMostLinks;) {
      const std::size_t end = rest.find('/');
      const std::string name = rest.substr(0, end);
      if (end == std::string::npos) return checks::below(done, name);
      rest = rest.substr(end + 1);
      if (name == "..") {
        done.resize(done.empty() ? 0 : done.rfind('/'));
        continue;
      }
      const std::string here = checks::below(done, name);
      // The link to the process that makes the record.
      const std::string target = here == "/proc/self" ? "" : tree_.link(here);
      if (target.empty()) {
        done = here;
        continue;
      }
      put(here, {{"@link", target}});
      ++links;
      if (target.starts_with('/')) done.clear();
      rest = checks::below(target.substr(target.starts_with('/') ? 1 : 0), rest);
    }
    return {};
  }

  // The name of a library contains its version, which is enough.
  void add_library(const std::string& path) {
    const std::string target = tree_.link(path);
    if (!target.empty()) put(path, {{"@link", target.substr(target.rfind('/') + 1)}});
  }

  // A device file has no content; whether it can be opened is what matters.
  void add_device(const std::string& place) {
    const Access access = tree_.access(place);
    if (access == Access::kAbsent) return;
    if (access == Access::kRead) return put(place, "");
    put(place, {{"@error", name_of(access)}});
  }

  void add_failure(const std::string& place, const Text& text) {
    if (!tree_.names(place).empty()) return;  // a folder
    put(place, {{"@error", name_of(text.access)}});
  }

  void add_content(const std::string& path, const std::string& place, const std::string& content) {
    if (path.starts_with("/sys/bus/pci/") && path.ends_with("/config")) {
      if (is_bridge(tree_, place)) put(place, {{"@hex", hex(access_control_of(content))}});
      return;
    }
    if (!is_text(content)) return put(place, {{"@hex", hex(content)}});
    const std::string text = shortened(path, content);
    if (with_addresses_) return put(place, text);
    if (path == "/proc/net/route") return put(place, addresses_.in_routes(text));
    const bool has_addresses = path == "/dev/kmsg" || path == "/etc/nccl.conf" ||
                               path.starts_with("/proc/net/bonding/") || has(path, "/gids/") ||
                               path.ends_with("/address");
    put(place, has_addresses ? addresses_.in_text(text) : text);
  }

  void put(const std::string& place, Json value) {
    Json* at = &document_;
    for (std::size_t from = 1; from <= place.size();) {
      const std::size_t end = std::min(place.find('/', from), place.size());
      at = &(*at)[place.substr(from, end - from)];
      from = end + 1;
    }
    if (at->is_null()) *at = std::move(value);
  }

  const Tree& tree_;
  bool with_addresses_;
  ReplacedAddresses addresses_;
  Json document_ = Json::object();
};

}  // namespace

std::string record_of(const Tree& tree, const Environ& environ, const checks::VerbsView& verbs,
                      const checks::PluginView& plugins, const checks::CounterSamples& counters,
                      bool with_addresses) {
  Recorder recorder(tree, with_addresses);
  // As they were before the second reading, and not as they are now.
  for (const auto& [path, value] : counters.first) recorder.add_counter(path, value);
  // The hardware addresses first: GIDs may contain them.
  each_recorded_path(tree, [&](const std::string& path) {
    if (path.ends_with("/address")) recorder.add(path);
  });
  each_recorded_path(tree, [&](const std::string& path) { recorder.add(path); });
  std::string variables;
  for (const Environ::Variable& variable : environ.variables()) {
    if (!is_recorded(variable.name)) continue;
    std::string value =
        is_name_of_host(variable.name) && !with_addresses ? "REPLACED" : variable.value;
    std::ranges::replace(value, '\n', ' ');
    variables += variable.name + "=" + value + "\n";
  }
  recorder.add_text(kEnvironment, variables);
  recorder.add_text(kVerbs, to_text(verbs));
  recorder.add_text(kPlugins, to_text(plugins, with_addresses));
  for (const auto& [path, value] : counters.second) {
    recorder.add_text(kSecondReading + path, std::to_string(value) + "\n");
  }
  return recorder.finish();
}

}  // namespace beeline::doctor
