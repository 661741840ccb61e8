// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/recordings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace beeline::replay {
namespace {

Recording recording_of(const PageReader& page, std::uint32_t used) {
  Recording recording = {.host = page.host(),
                         .build = page.build(),
                         .pid = static_cast<std::int64_t>(page.pid()),
                         .rank = page.rank(),
                         .opened_ns = static_cast<std::int64_t>(page.opened_ns()),
                         .opened_unix_ns = static_cast<std::int64_t>(page.opened_unix_ns()),
                         .alive_ns = static_cast<std::int64_t>(page.alive_ns())};
  for (std::uint32_t i = 0; i < used; ++i) {
    std::optional<SlotView> slot = page.slot(i);
    if (!slot || slot->state == SlotState::kFree || slot->role == SlotRole::kListen) continue;
    recording.connections.push_back(*std::move(slot));
  }
  std::ranges::sort(recording.connections, {}, &SlotView::id);
  return recording;
}

}  // namespace

std::string Recording::name() const {
  const std::string process = fmt::format("pid {} on {}", pid, host);
  return rank ? fmt::format("rank {} ({})", *rank, process) : process;
}

std::string Recording::short_name() const { return rank ? fmt::format("rank {}", *rank) : name(); }

const Recording* peer_of(const SlotView& connection, std::span<const Recording> recordings) {
  const auto peer = std::ranges::find_if(recordings, [&](const Recording& recording) {
    return recording.host == connection.peer_host &&
           static_cast<std::uint64_t>(recording.pid) == connection.peer_pid;
  });
  return peer == recordings.end() ? nullptr : &*peer;
}

Outcome<Recording> read_recording(const std::string& path) {
  const Result<PageReader> page = PageReader::open(path);
  if (!page) return fail(path + ": " + describe(page.error()));
  return recording_of(*page, page->slots_used());
}

Outcome<Recordings> read_recordings_in(const std::string& directory) {
  Recordings recordings;
  recordings.left_out =
      BL_TRY(pages::visit_pages(directory, [&](const PageOwner& /*process*/, pages::Life /*life*/,
                                               const PageReader& page, std::uint32_t used) {
        // A process that has made no connection has nothing to tell.
        Recording recording = recording_of(page, used);
        if (!recording.connections.empty()) recordings.all.push_back(std::move(recording));
      }));
  std::ranges::sort(recordings.all, {},
                    [](const Recording& it) { return std::pair(it.host, it.pid); });
  return recordings;
}

}  // namespace beeline::replay
