// SPDX-License-Identifier: Apache-2.0
//
// A machine as text. The first screen says which NIC serves which GPU, and whether anything is
// wrong.
#pragma once

#include <string>
#include <string_view>

#include "tools/cli/text_style.h"
#include "topology/assignment.h"

namespace beeline::topo {

std::string summary(const topology::Graph& graph, const topology::Assignment& assignment,
                    const tools::TextStyle& style);

// The data that the summary leaves out: every device, all distances, and standby NICs.
std::string details(const topology::Graph& graph, const topology::Assignment& assignment,
                    const tools::TextStyle& style);

// Source, name and counts, without a line break.
std::string headline(const topology::Graph& graph);

// Makes lines safe for a terminal, because names in them may contain any bytes.
std::string shown(std::string_view lines);

}  // namespace beeline::topo
