// SPDX-License-Identifier: Apache-2.0
//
// Parses a small XML document into a tree. Anyone may have written the file, so entities are
// refused, and limits apply that no description of a machine comes near.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/problem.h"
#include "common/base/whole_file.h"

namespace beeline::topology {

struct XmlElement {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> attributes = {};
  std::vector<XmlElement> children = {};
  std::size_t line = 0;

  // Null if there is no such attribute.
  const std::string* find(std::string_view attribute) const noexcept;
};

// hwloc's files begin with the name of a DTD, which is not needed.
enum class Doctype { kRefused, kNameOnly };

struct XmlLimits {
  std::size_t bytes = kMostFileBytes;
  std::size_t elements = 200'000;
  std::size_t depth = 400;  // a PCI domain has 256 buses, and so bridges in a row
  Doctype doctype = Doctype::kRefused;
};

// Returns the root. The error names file, line, cause and fix: "dgx.xml:12: ...".
Outcome<XmlElement> parse_xml(std::string_view text, const std::string& file,
                              const XmlLimits& limits = {});

}  // namespace beeline::topology
