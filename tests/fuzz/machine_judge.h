// SPDX-License-Identifier: Apache-2.0
//
// What holds for every machine, however it was described.
#pragma once

#include "topology/graph.h"

namespace beeline::fuzz {

// Distances, assignment, matrix, JSON and picture.
void hold_sound(const topology::Graph& graph);

// What is written for NCCL is read back, is the same machine to NCCL, and is written the same
// again.
void hold_written(const topology::Graph& graph);

}  // namespace beeline::fuzz
