// SPDX-License-Identifier: Apache-2.0
#include "softnic/gpu/gpus.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "softnic/gpu/pages.h"

namespace softnic::gpu {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long kNvidia = 0x10de;
constexpr unsigned long kVgaController = 0x0300;
constexpr unsigned long k3dController = 0x0302;
constexpr std::size_t kBar1Line = 1;  // of the file `resource`

// Reads a number from a file such as `vendor`; returns `otherwise` if there is none.
long read_number(const fs::path& file, long otherwise) {
  std::ifstream in(file);
  std::string word;
  if (!(in >> word)) return otherwise;
  return std::strtol(word.c_str(), nullptr, 0);
}

// The size of BAR1, or 0 if the tree does not give it.
std::uint64_t read_bar1(const fs::path& function) {
  std::ifstream in(function / "resource");
  std::string line;
  for (std::size_t i = 0; i <= kBar1Line; ++i)
    if (!std::getline(in, line)) return 0;
  std::istringstream words(line);
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  words >> std::hex >> std::showbase >> first >> last;
  return last > first ? last - first + 1 : 0;
}

bool is_gpu(const fs::path& function) {
  const auto device_class = static_cast<unsigned long>(read_number(function / "class", 0)) >> 8;
  return read_number(function / "vendor", 0) == kNvidia &&
         (device_class == kVgaController || device_class == k3dController);
}

// A UUID that is the same in every process of the host and different for each GPU.
Uuid uuid_of(const std::string& root, const PciAddress& pci) {
  Uuid uuid{};
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  const std::string key = root + "/" + pci.text();
  for (std::size_t round = 0; round < 2; ++round) {
    for (const char letter : key)
      hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
    std::memcpy(uuid.bytes + round * sizeof hash, &hash, sizeof hash);
  }
  return uuid;
}

std::vector<Gpu> gpus_of_tree(const std::string& root) {
  std::vector<Gpu> gpus;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root + "/bus/pci/devices", ignored)) {
    const fs::path& function = entry.path();
    Gpu gpu;
    if (!is_gpu(function) || !parse_pci_address(function.filename().string(), &gpu.pci)) continue;
    const auto device = static_cast<std::uint32_t>(read_number(function / "device", 0));
    gpu.pci_ids = device << 16 | static_cast<std::uint32_t>(kNvidia);
    gpu.numa = static_cast<int>(read_number(function / "numa_node", -1));
    gpu.bar1 = read_bar1(function);
    gpus.push_back(gpu);
  }
  std::sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
  return gpus;
}

// If more GPUs are wanted than the tree has, adds GPUs on buses of their own.
void invent(std::vector<Gpu>& gpus, std::size_t count) {
  PciAddress pci;
  while (gpus.size() < count) {
    ++pci.bus;
    if (std::none_of(gpus.begin(), gpus.end(),
                     [&](const Gpu& gpu) { return gpu.pci.bus == pci.bus; })) {
      gpus.push_back({});
      gpus.back().pci = pci;
    }
  }
}

// Parses CUDA_VISIBLE_DEVICES as the driver does: ordinals up to the first invalid or repeated one.
std::vector<Gpu> choose(const std::vector<Gpu>& gpus, const char* visible) {
  std::vector<Gpu> chosen;
  std::istringstream words(visible);
  std::string word;
  while (std::getline(words, word, ',')) {
    char* end = nullptr;
    const unsigned long ordinal = std::strtoul(word.c_str(), &end, 10);
    if (word.empty() || *end != 0 || ordinal >= gpus.size()) break;
    const Gpu& gpu = gpus[ordinal];
    if (std::any_of(chosen.begin(), chosen.end(),
                    [&](const Gpu& other) { return other.pci == gpu.pci; }))
      return {};
    chosen.push_back(gpu);
  }
  return chosen;
}

}  // namespace

std::string PciAddress::text() const {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%x", domain, bus, device, function);
  return text.data();
}

bool parse_pci_address(const std::string& text, PciAddress* out) {
  PciAddress pci;
  int used = 0;
  const auto whole = [&] { return used == static_cast<int>(text.size()); };
  const char* const from = text.c_str();
  bool good = std::sscanf(from, "%x:%x:%x.%x%n", &pci.domain, &pci.bus, &pci.device, &pci.function,
                          &used) == 4 &&
              whole();
  if (!good) {
    pci = {};
    good =
        std::sscanf(from, "%x:%x:%x%n", &pci.domain, &pci.bus, &pci.device, &used) == 3 && whole();
  }
  if (!good) {
    pci = {};
    good = std::sscanf(from, "%x:%x.%x%n", &pci.bus, &pci.device, &pci.function, &used) == 3 &&
           whole();
  }
  if (good) *out = pci;
  return good;
}

std::vector<Gpu> find_gpus(const std::string& root, const Settings& settings, const char* visible) {
  std::vector<Gpu> gpus;
  if (root.empty()) {
    invent(gpus, 1);
  } else {
    gpus = gpus_of_tree(root);
  }
  if (settings.gpus) {
    const auto count = static_cast<std::size_t>(*settings.gpus);
    if (gpus.size() > count) gpus.resize(count);
    invent(gpus, count);
  }
  if (gpus.size() > kMaxGpus) gpus.resize(kMaxGpus);
  for (Gpu& gpu : gpus) gpu.uuid = uuid_of(root, gpu.pci);
  return visible == nullptr ? gpus : choose(gpus, visible);
}

}  // namespace softnic::gpu
