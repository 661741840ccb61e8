// SPDX-License-Identifier: Apache-2.0
//
// The version of this build, from meson.build, and the commit that it was built from. They are
// compiled in one small file, so that a new commit recompiles nothing else.
#pragma once

namespace beeline {

extern const char kVersion[];   // "0.2.0~dev"
extern const char kRevision[];  // "251b7f5690", or "unknown revision" in sources without git
extern const char kBuild[];     // "0.2.0~dev (251b7f5690)"

}  // namespace beeline
