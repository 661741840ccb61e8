// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a host wait for at one moment, as a file. Files of several hosts tell who
// waits for whom between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tools/pages/processes.h"

namespace beeline::hang {

// The times of connections are by the clock of this host, on which it is `now_ns`. In the file they
// are by how much they are past, since other hosts have other clocks.
std::string snapshot_of(const pages::Processes& processes, std::int64_t now_ns);

Outcome<pages::Processes> read_snapshot(const std::string& path, std::int64_t now_ns);

}  // namespace beeline::hang
