// SPDX-License-Identifier: Apache-2.0
//
// Properties that hold for every machine, from whichever description.
#pragma once

#include "topology/graph.h"

namespace beeline::fuzz {

// Checks distances, assignment, matrix, JSON and picture.
void hold_sound(const topology::Graph& graph);

// Checks that a file for NCCL can be read, describes the same machine to NCCL, and is written the
// same again.
void hold_written(const topology::Graph& graph);

}  // namespace beeline::fuzz
