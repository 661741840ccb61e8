// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/comp_channel.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "softnic/fabric/events.h"
#include "softnic/nic/cq.h"
#include "softnic/nic/event_pipe.h"

namespace softnic {

CompChannel* CompChannel::create(Context& the_owner) {
  EventPipe pipe{kChannelDevice, the_owner.runtime->slot(), 0};
  beeline::UniqueFd events = make_event_pipe(the_owner.runtime->fabric(), pipe);
  return events ? new CompChannel(the_owner, pipe, std::move(events)) : nullptr;
}

CompChannel::CompChannel(Context& the_owner, EventPipe the_pipe,
                         beeline::UniqueFd the_events) noexcept
    : ibv_comp_channel{}, owner(the_owner), pipe(the_pipe), events(std::move(the_events)) {
  context = &owner.context;
  fd = events.get();
  owner.objects.fetch_add(1);
}

CompChannel::~CompChannel() {
  owner.objects.fetch_sub(1);
  if (owner.runtime->is_ours()) remove_event_pipe(owner.runtime->fabric(), pipe);
}

int CompChannel::next_event(ibv_cq** cq, void** cq_context) {
  for (;;) {
    EventRecord record;
    if (::read(fd, &record, sizeof record) != sizeof record) return -1;
    bool found = false;  // the queue may have been destroyed since the event was written
    owner.runtime->cqs().for_each([&](Cq& candidate) {
      if (candidate.serial() != record.serial) return;
      found = true;
      candidate.count_channel_event();
      *cq = candidate.plain();
      *cq_context = candidate.cq_context;
    });
    if (found) return 0;
  }
}

// Reads each waiting event once and writes those of other queues back.
void CompChannel::forget(std::uint64_t serial) {
  const PrivateDir& files = owner.runtime->fabric().files();
  const beeline::UniqueFd own = files.open_file(event_pipe_name(pipe), O_NONBLOCK);
  int waiting = 0;
  if (!own || ::ioctl(own.get(), FIONREAD, &waiting) != 0) return;
  EventRecord record;
  for (std::size_t left = static_cast<std::size_t>(waiting) / sizeof record; left != 0; --left) {
    if (::read(own.get(), &record, sizeof record) != sizeof record) return;
    if (record.serial != serial) send_event(owner.runtime->fabric(), pipe, record);
  }
}

}  // namespace softnic
