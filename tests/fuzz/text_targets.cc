// SPDX-License-Identifier: Apache-2.0
//
// Parsers that the readers of files use: XML documents, and numbers in texts.
#include <algorithm>
#include <array>

#include "tests/fuzz/topology_targets.h"
#include "topology/pci_address.h"
#include "topology/read/sysfs_text.h"
#include "topology/read/xml.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::topology;

// --- A document: one byte, which chooses how a DTD is treated, and the text ---

// The limits are small, so that small inputs reach them.
constexpr XmlLimits kLimits = {.bytes = 2048, .elements = 40, .depth = 8};

struct Extent {
  std::size_t elements = 0;
  std::size_t depth = 0;
};

// Line numbers never decrease, neither from parent to child nor from one child to the next.
Extent extent_of(const XmlElement& element, std::size_t& line) {
  hold(!element.name.empty(), "an element has a name");
  hold(element.line >= line, "an element stands behind those before it");
  line = element.line;
  for (const auto& [key, value] : element.attributes) {
    hold(element.find(key) == &value, "an attribute is there once");
  }
  Extent extent{.elements = 1, .depth = 1};
  for (const XmlElement& child : element.children) {
    const Extent below = extent_of(child, line);
    extent.elements += below.elements;
    extent.depth = std::max(extent.depth, 1 + below.depth);
  }
  return extent;
}

bool take_xml(ByteView bytes) {
  if (bytes.empty()) return false;
  XmlLimits limits = kLimits;
  if ((bytes[0] & std::byte{1}) != std::byte{0}) limits.doctype = Doctype::kNameOnly;
  const std::string text = text_of(bytes.subspan(1));
  const auto root = parse_xml(text, "x.xml", limits);
  if (!root) {
    hold(root.error().text.starts_with("x.xml:"), "an error names the file");
    return false;
  }
  hold(text.size() <= limits.bytes, "a long text is refused");
  std::size_t line = 1;
  const Extent extent = extent_of(*root, line);
  hold(extent.elements <= limits.elements, "many elements are refused");
  hold(extent.depth <= limits.depth, "deep elements are refused");
  return true;
}

std::vector<Bytes> xml_seeds() {
  std::string many;
  for (std::size_t i = 1; i < kLimits.elements; ++i) many += "<b c='d'/>\n";
  std::string deep;
  for (std::size_t i = 1; i < kLimits.depth; ++i) deep.insert(0, "<a>").append("</a>");
  return {bytes_of("0<a/>"),
          bytes_of("1<!DOCTYPE a SYSTEM 'a.dtd'>\n<a b='1' c='&lt;&#65;'>d</a>"),
          bytes_of("0<a>" + many + "</a>"),
          bytes_of("0<a>" + deep + "</a>"),
          bytes_of("0<?xml version='1.0' encoding='iso-8859-1'?><!-- e --><a><![CDATA[<]]></a>"),
          bytes_of("0<a>" + std::string(kLimits.bytes - 7, ' ') + "</a>")};
}

// --- A word ---

constexpr std::size_t kMostListBytes = std::size_t{1} << 14;
constexpr int kMostCpus = 1 << 16;

bool take_numbers(const std::string& text) {
  const auto hex = parse_hex(text);
  const auto number = parse_int(text);
  const auto pci_class = parse_pci_class(text);
  hold(!pci_class || *pci_class <= 0xff'ffff, "a class has 24 bits");
  hold(!pci_class || hex, "a class is a number");
  const auto width = parse_link_width(text);
  hold(!width || (*width >= 1 && *width <= 32), "a link has 1 to 32 lanes");
  const auto rate = parse_link_rate(text);
  if (rate && *rate != 0) {
    hold(parse_link_rate(link_rate_text(*rate)) == rate, "a rate is read as it is written");
  }
  const auto port_rate = parse_port_rate(text);
  hold(!rate || !port_rate, "a rate has one unit");
  return hex || number || width || rate || port_rate;
}

bool take_processors(const std::string& text) {
  const std::string mask = mask_of_list(text);
  hold(is_cpu_list(text) == !mask.empty(), "a list has a mask");
  const auto ends = ends_of_list(text);
  hold(ends.has_value() == !mask.empty(), "a list has ends");
  if (ends) {
    hold(std::min(ends->first, ends->second) >= 0, "processors count from 0");
    hold(std::max(ends->first, ends->second) < kMostCpus, "a machine has so many processors");
  }
  const auto list = list_of_mask(mask.empty() ? text : mask);
  hold(mask.empty() || (list && !list->empty()), "a mask is one");
  if (list && !list->empty() && list->size() <= kMostListBytes) {
    hold(is_cpu_list(*list), "a mask's list is one");
    hold(list_of_mask(mask_of_list(*list)) == list, "the same after another way through");
  }
  return list.has_value();
}

bool take_address(const std::string& text) {
  const auto address = parse_pci_address(text);
  if (!address) return false;
  hold(address->device < 32 && address->function < 8, "an address that PCI has");
  hold(parse_pci_address(to_string(*address)) == address, "an address is read as it is written");
  return true;
}

bool take_word(ByteView bytes) {
  const std::string text = text_of(bytes);
  const std::array taken = {take_numbers(text), take_processors(text), take_address(text)};
  return std::ranges::count(taken, true) > 0;
}

std::vector<Bytes> word_seeds() {
  std::vector<Bytes> seeds;
  for (const char* text :
       {"0x020700", "-1", "16.0 GT/s PCIe", "2.5GT/s", "x16", "400 Gb/sec (4X NDR)",
        "0000ffff,00000000,0000ffff", "0x1ffffffffffffffff", "0-31,64-95,7", "10000:3b:1f.7"}) {
    seeds.push_back(bytes_of(text));
  }
  return seeds;
}

constexpr std::array<Target, 2> kTextTargets = {
    {{"xml", take_xml, xml_seeds}, {"words", take_word, word_seeds}}};

}  // namespace

std::span<const Target> text_targets() { return kTextTargets; }

}  // namespace beeline::fuzz
