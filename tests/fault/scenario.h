// SPDX-License-Identifier: Apache-2.0
//
// What two workers do with each other: a bit of everything that stores to shared memory.
#pragma once

#include "tests/fault/station.h"

namespace beeline::test {

// Throws PeerGone from wherever it is when the peer turns out to be dead. `role` is 0 or 1.
void play_everything(World& world, Link& link, int role);

// The short form: connects the plain and the shaped station and moves verified data both ways.
void play_transfers(World& world, Link& link, int role);

}  // namespace beeline::test
