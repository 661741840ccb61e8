// SPDX-License-Identifier: Apache-2.0
// Removes a device from the sysfs tree and puts it back. Its entries are renamed into removed/,
// which has the same directories as the tree; their relative links are dangling until they are
// back. A rename is atomic, and repeating one that is done is no error, so an interrupted removal
// can be repeated.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRemovedDir = "removed";

std::string link_text(const std::string& path) {
  std::error_code ignored;
  return fs::read_symlink(path, ignored).string();
}

// "devices/pci0000:10/.../0000:11:00.0", from the class link, which reads
// "../../devices/.../infiniband/NAME"; empty if the device has no entry at all.
std::string pci_dir_of(const std::string& root, const std::string& device) {
  for (const std::string& tree : {root, fmt::format("{}/{}", root, kRemovedDir)}) {
    const std::string text = link_text(fmt::format("{}/class/infiniband/{}", tree, device));
    const std::size_t start = text.find("devices/");
    const std::size_t end = text.rfind("/infiniband/");
    if (start < end && end != std::string::npos) return text.substr(start, end - start);
  }
  return {};
}

// Entries of class/CLASS that belong to the function, in the tree or in removed/.
void collect_class(const std::string& root, const std::string& class_dir,
                   const std::string& pci_dir, std::set<std::string>& entries) {
  const std::string inside = pci_dir + "/";
  std::error_code ignored;
  for (const std::string& tree : {root, fmt::format("{}/{}", root, kRemovedDir)})
    for (const auto& entry : fs::directory_iterator(fmt::format("{}/{}", tree, class_dir), ignored))
      if (link_text(entry.path()).find(inside) != std::string::npos)
        entries.insert(fmt::format("{}/{}", class_dir, entry.path().filename().string()));
}

// The entries of a device, in the order of removal: links before their targets. The directory of
// the PCI function stays. The link in class/infiniband is last, because the others are found
// through it.
std::vector<std::string> entries_of(const std::string& root, const std::string& device) {
  const std::string pci_dir = pci_dir_of(root, device);
  if (pci_dir.empty()) return {};
  std::set<std::string> links;
  collect_class(root, "class/infiniband_verbs", pci_dir, links);
  collect_class(root, "class/net", pci_dir, links);
  std::vector<std::string> entries(links.begin(), links.end());
  for (const char* kind : {"infiniband_verbs", "net", "infiniband"})
    entries.push_back(pci_dir + "/" + kind);
  entries.push_back("class/infiniband/" + device);
  return entries;
}

void move_entry(const std::string& from_tree, const std::string& to_tree, const std::string& path) {
  std::error_code ignored;
  const fs::path to = to_tree + "/" + path;
  fs::create_directories(to.parent_path(), ignored);
  fs::rename(from_tree + "/" + path, to, ignored);
}

}  // namespace

void show_device(const std::string& root, const std::string& device, bool present) {
  const std::string removed = fmt::format("{}/{}", root, kRemovedDir);
  std::vector<std::string> entries = entries_of(root, device);
  if (present) std::reverse(entries.begin(), entries.end());
  for (const std::string& entry : entries)
    move_entry(present ? removed : root, present ? root : removed, entry);
}

}  // namespace softnic
