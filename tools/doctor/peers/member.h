// SPDX-License-Identifier: Apache-2.0
//
// The doctor on each of several hosts: does what the doctor that the user started asks it.
#pragma once

#include "tools/ranks/line_stream.h"

namespace beeline::doctor {

// Returns the exit status, when the other end has asked to end, or has ended.
int serve(ranks::LineStream stream);
// `beeline doctor --serve`, as a program with the stream on its stdin and stdout. SIGPIPE has to be
// ignored.
int serve_on_stdio();

}  // namespace beeline::doctor
