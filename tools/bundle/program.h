// SPDX-License-Identifier: Apache-2.0
//
// Runs another program, and keeps what it prints.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace beeline::bundle {

// Its stdout goes to the file `output`, and its stderr to `output`.err, if there is any. It is
// killed when its time is up. Returns how it ended: "status 0", "not there", "killed after 60 s".
std::string run_program(const std::vector<std::string>& words, const std::string& output,
                        std::chrono::seconds time);

}  // namespace beeline::bundle
