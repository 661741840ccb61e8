// SPDX-License-Identifier: Apache-2.0
//
// Which states of paths the runs of this program have reached, by which events, and which kinds of
// faults met. The linker gives the calls of the table of states (path_machine.h) to coverage.cc.
// An event that cannot be carried out yet comes again, and counts each time: queues-made while a
// receiver still waits for the old generation, above all.
#pragma once

#include "tests/plugin/simulation/schedule.h"

namespace beeline::simulation {

// Counts which kinds of faults begin while another is in force between the same two hosts.
void count_faults(const RunOptions& run);
// Prints what was reached since the start of the program, and by name what was not.
void print_coverage();

}  // namespace beeline::simulation
