// SPDX-License-Identifier: Apache-2.0
//
// Targets for the readers of machine descriptions, and one for the graph that they build.
#pragma once

#include <string>
#include <string_view>

#include "tests/fuzz/targets.h"

namespace beeline::fuzz {

std::span<const Target> machine_targets();  // "nccl_xml", "topology_file"
std::span<const Target> text_targets();     // "xml", "words"
std::span<const Target> graph_targets();    // "graph"

std::string text_of(ByteView bytes);
Bytes bytes_of(std::string_view text);

}  // namespace beeline::fuzz
