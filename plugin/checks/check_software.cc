// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <set>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

using Version = std::array<int, 3>;

// The versions that no longer use a plugin after a process has destroyed its last communicator.
constexpr Version kForgetsFrom = {2, 27, 3};
constexpr Version kForgetsTo = {2, 29, 7};

std::vector<std::string> library_folders(const Environ& environ) {
  std::vector<std::string> folders;
  if (const auto path = environ.get("LD_LIBRARY_PATH")) {
    for (std::string& part : split(*path, ":")) {
      if (part.starts_with('/')) folders.push_back(std::move(part));
    }
  }
  for (const char* const folder :
       {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib",
        "/usr/local/cuda/lib64", "/opt/nccl/lib"}) {
    folders.emplace_back(folder);
  }
  return folders;
}

// "libnccl.so.2.28.9": the target of the link, which has the version in its name.
std::optional<Version> version_of(const std::string& target) {
  Version version{};
  const std::string name = target.substr(target.rfind('/') + 1);
  if (std::sscanf(name.c_str(), "libnccl.so.%d.%d.%d", version.data(), version.data() + 1,
                  version.data() + 2) == 3) {
    return version;
  }
  return {};
}

std::string text_of(const Version& version) {
  return std::to_string(version[0]) + "." + std::to_string(version[1]) + "." +
         std::to_string(version[2]);
}

// Words of the kernel's messages, in this order.
struct Fault {
  std::array<std::string_view, 3> words;  // unused ones are empty
  const char* meaning;
};
constexpr std::array kFaults = {
    Fault{{"Port module event", "High Temperature"}, "a transceiver is too hot"},
    Fault{{"mlx5", "health", "compromised"}, "the firmware of an adapter has failed"},
    Fault{{"mlx5", "health", "fatal"}, "the firmware of an adapter has failed"},
    Fault{{"bnxt_en", "Error recovery"}, "an adapter has been reset"},
    Fault{{"bnxt_en", "firmware", "reset"}, "an adapter has been reset"},
    Fault{{"NVRM: Xid", ": 79,"}, "a GPU has fallen off the bus"},
    Fault{{"NVRM: Xid", ": 74,"}, "an NVLink has failed"},
    Fault{{"AER:", "Uncorrect"}, "a PCIe link has lost data"},
    Fault{{"DMAR:", "fault"}, "the IOMMU has refused a transfer"},
    Fault{{"IO_PAGE_FAULT"}, "the IOMMU has refused a transfer"},
};

bool is_message_of(const Fault& fault, std::string_view line) {
  for (const std::string_view word : fault.words) {
    const auto* const found = std::search(
        line.begin(), line.end(), word.begin(), word.end(),
        [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    if (found == line.end() && !word.empty()) return false;
    line.remove_prefix(static_cast<std::size_t>(found - line.begin()));
  }
  return true;
}

// For grep.
std::string pattern_of(const Fault& fault) {
  std::string pattern;
  for (const std::string_view word : fault.words) {
    if (!word.empty()) append_item(pattern, word, ".*");
  }
  return pattern;
}

// "6,1234,5678,-;mlx5_core 0000:3b:00.0: ...": the text begins behind the semicolon.
std::string message_of(const std::string& line) {
  const std::size_t at = line.find(';');
  return at == std::string::npos ? line : line.substr(at + 1);
}

}  // namespace

void check_nccl(const Host& host, Findings& found) {
  std::set<Version> versions;
  std::string places;
  for (const std::string& folder : library_folders(host.environ)) {
    const std::string path = folder + "/libnccl.so.2";
    const auto version = version_of(host.tree.link(path));
    if (!version || !versions.insert(*version).second) continue;
    places += (places.empty() ? "" : ", ") + text_of(*version) + " in " + folder;
  }
  const auto forgets = std::ranges::find_if(versions, [](const Version& version) {
    return version >= kForgetsFrom && version <= kForgetsTo;
  });
  if (forgets != versions.end() && host.environ.get("NCCL_NET_PLUGIN_REF_COUNT") != "1") {
    found.add("nccl-forgets-plugin", {.fact = "NCCL is installed: " + places});
  }
  if (versions.size() > 1) found.add("several-nccl", {.fact = "NCCL is installed: " + places});
}

void check_kernel_log(const Host& host, Findings& found) {
  const Text log = host.tree.read("/dev/kmsg");
  if (!log.is_read()) {
    if (log.access == Access::kAbsent) return;
    return found.add_unknown("kernel-log", {.fact = "the kernel's log cannot be read: " + log.error,
                                            .source = "/dev/kmsg"});
  }
  const std::vector<std::string> lines = split(log.text, "\n");
  for (const Fault& fault : kFaults) {
    int count = 0;
    std::string last;
    for (const std::string& line : lines) {
      if (!is_message_of(fault, line)) continue;
      ++count;
      last = message_of(line);
    }
    if (count == 0) continue;
    found.add(
        "kernel-log",
        {.fact = std::string(fault.meaning) + ": '" + last + "'" +
                 (count > 1 ? ", and " + std::to_string(count - 1) + " more of the kind" : ""),
         .source = "/dev/kmsg"},
        {{"pattern", pattern_of(fault)}});
  }
}

}  // namespace beeline::checks
