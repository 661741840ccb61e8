// SPDX-License-Identifier: Apache-2.0
//
// The steps that two workers run with each other. Together they visit every kind of store to shared
// memory.
#pragma once

#include "tests/beds/fault/device_end.h"

namespace beeline::test {

// Runs all steps. Throws PeerGone if the peer turns out to be dead. `role` is 0 or 1.
void play_everything(DeviceEnds& ends, Link& link, int role);

// Runs the transfers only: connects the plain and the shaped device, and moves and verifies data
// both ways.
void play_transfers(DeviceEnds& ends, Link& link, int role);

}  // namespace beeline::test
