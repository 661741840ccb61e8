// SPDX-License-Identifier: Apache-2.0
//
// Reads <gpu>, and the <nvlink>, <xgmi> and <c2c> elements below it.
#include "topology/read/nccl_gpu.h"

#include <algorithm>
#include <optional>

#include "topology/read/sysfs_text.h"

namespace beeline::topology {
namespace {

constexpr std::size_t kMaxGpuLinks = 128;  // a GPU has 18 today, to one switch or to 7 other GPUs
constexpr int kMaxCount = 10'000;
constexpr int kMaxMbytes = 10'000'000;
constexpr std::size_t kMaxWord = 40;  // bytes

std::string word_of(const XmlElement& element, std::string_view attribute) {
  const std::string* const text = element.find(attribute);
  if (text == nullptr) return {};
  std::size_t length = std::min(text->size(), kMaxWord);
  const auto is_inside_character = [text](std::size_t at) {
    return at < text->size() && (static_cast<unsigned char>((*text)[at]) & 0xC0U) == 0x80U;
  };
  while (length > 0 && is_inside_character(length)) --length;
  return text->substr(0, length);
}

int number_in(const XmlElement& element, std::string_view attribute, int most, int otherwise) {
  const std::string* const text = element.find(attribute);
  const std::optional<int> number = text == nullptr ? std::nullopt : parse_int(*text);
  return number && *number >= 0 && *number <= most ? *number : otherwise;
}

std::optional<GpuLinkKind> kind_of(const XmlElement& element) noexcept {
  if (element.name == "nvlink") return GpuLinkKind::kNvLink;
  if (element.name == "xgmi") return GpuLinkKind::kXgmi;
  if (element.name == "c2c") return GpuLinkKind::kC2c;
  return std::nullopt;
}

// Addresses become lower case, as the kernel writes them. Other text is not changed: NCCL writes
// such text for a switch that is not visible.
std::string target_of(const XmlElement& element) {
  const std::string text = word_of(element, "target");
  const auto address = parse_pci_address(text);
  return address ? to_string(*address) : text;
}

}  // namespace

GpuFacts read_gpu_facts(const XmlElement& gpu, const NoteAt& note) {
  GpuFacts facts{.number = number_in(gpu, "dev", kMaxNumber, -1),
                 .sm = number_in(gpu, "sm", kMaxNumber, -1),
                 .gcn = word_of(gpu, "gcn"),
                 .arch = word_of(gpu, "arch")};
  for (const XmlElement& child : gpu.children) {
    const auto kind = kind_of(child);
    if (!kind) continue;
    if (facts.links.size() >= kMaxGpuLinks) {
      note(child, "more links than a GPU has; the rest is ignored");
      break;
    }
    const std::string* const target_class = child.find("tclass");
    facts.links.push_back(
        {.kind = *kind,
         .target = *kind == GpuLinkKind::kC2c ? std::string() : target_of(child),
         .target_class = target_class == nullptr ? 0 : parse_pci_class(*target_class).value_or(0),
         .count = static_cast<std::uint32_t>(number_in(child, "count", kMaxCount, 1)),
         .mbytes_per_second = static_cast<std::uint32_t>(number_in(child, "bw", kMaxMbytes, 0))});
  }
  return facts;
}

}  // namespace beeline::topology
