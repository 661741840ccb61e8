// SPDX-License-Identifier: Apache-2.0
//
// Finds the statistics pages in a folder that may be believed. Any user may make a file there with
// the name of a page, so its owner decides: the user of the process while it runs, and afterwards
// only the user who reads, because nothing tells any more whose process it was.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "include/beeline/stats_page.h"
#include "plugin/stats/sweep.h"
#include "tools/pages/page_reader.h"

namespace beeline::pages {

enum class Life : std::uint8_t {
  kRuns,
  kStopped,  // by a signal or a debugger
  kEnded,
};

// So many slots of the pages of one user are read at most, so that no user can fill the memory of
// another one's command.
inline constexpr std::size_t kMostSlotsOfUser = std::size_t{64} * BEELINE_STATS_MOST_SLOTS;

// Why a page was not read.
enum class Reason : std::uint8_t {
  kForbidden,     // this user may not open it
  kOtherVersion,  // of Beeline
  kDamaged,
  kForged,     // the process is of another user than the file
  kOfEnded,    // the process has ended, and the file is of another user than this one
  kTooMany,    // see kMostSlotsOfUser
  kElsewhere,  // on the host on which `beeline hang --save` has read it
};

struct LeftOut {
  std::map<Reason, std::vector<uid_t>> owners;  // of the files, one for each

  std::size_t count() const;
  // Those of which the processes may run.
  std::size_t of_running() const;
  // A line for each reason, with what to do about it.
  std::string remarks() const;
  // The same as an error, for where nothing else was found.
  Problem as_error() const;
};

// None: it is believed. `process` is the user of the process, none if it has ended.
std::optional<Reason> why_not_believed(std::optional<uid_t> process, uid_t file, uid_t reader);

// The last argument is how many slots are used: asked once, since another user may change it.
using Visit = std::function<void(const PageOwner&, Life, const PageReader&, std::uint32_t)>;
Outcome<LeftOut> visit_pages(const std::string& directory, const Visit& visit);

}  // namespace beeline::pages
