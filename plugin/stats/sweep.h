// SPDX-License-Identifier: Apache-2.0
//
// Takes away the pages of processes that died without doing so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clock.h"

namespace beeline {

// What a page's file name says.
struct PageOwner {
  std::int64_t pid;
  std::uint64_t start_time;
};
std::string page_file_name(const PageOwner& owner);
std::optional<PageOwner> parse_page_file_name(std::string_view name);

// A dead process's page is what tells why it died, so it stays for a while.
inline constexpr std::int64_t kDeadPageKeptNs = 3600 * kNsPerSec;

// A sweep keeps at most so many dead pages: the newest of those that it has looked at.
inline constexpr std::size_t kMostDeadPages = 64;
// A sweep looks at no more dead pages than this, so that init stays quick; later sweeps see the
// rest.
inline constexpr std::size_t kMostPagesOfASweep = 200;

// The first sweep that finds a page's owner dead stamps the file (it becomes read-only, its time
// now); one that finds the stamp at least `kept_ns` old removes it. Only regular files of this user
// with such a name and our magic are touched, and only if nobody has them locked. Failures are no
// concern of anybody: the next sweep tries again. Returns how many of the pages that it has looked
// at stay.
std::size_t sweep_dead_pages(const std::string& directory, std::int64_t kept_ns = kDeadPageKeptNs);

}  // namespace beeline
