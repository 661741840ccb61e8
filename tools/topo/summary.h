// SPDX-License-Identifier: Apache-2.0
//
// A machine as text for a person: how much of what in one line, then the sections from the devices
// to what is wrong, so that the answers stand where a terminal is when the text has run through.
#pragma once

#include <string>

#include "topology/assignment.h"

namespace beeline::topo {

std::string summary(const topology::Graph& graph, const topology::Assignment& assignment);

}  // namespace beeline::topo
