// SPDX-License-Identifier: Apache-2.0
//
// A machine as text for a person. The first screen answers which NIC is for which GPU, and whether
// anything is wrong.
#pragma once

#include <string>
#include <string_view>

#include "topology/assignment.h"

namespace beeline::topo {

std::string summary(const topology::Graph& graph, const topology::Assignment& assignment);

// What the summary leaves out: every device, all distances, and who stands by.
std::string details(const topology::Graph& graph, const topology::Assignment& assignment);

// Source, name and counts, without a line's end.
std::string headline(const topology::Graph& graph);

// Lines, as a terminal takes them: names in them may be any bytes.
std::string shown(std::string_view lines);

}  // namespace beeline::topo
