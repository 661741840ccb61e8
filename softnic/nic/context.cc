// SPDX-License-Identifier: Apache-2.0
#include "softnic/nic/context.h"

#include "softnic/nic/event_pipe.h"

namespace softnic {

Context::Context(std::shared_ptr<Runtime> the_runtime, std::uint32_t the_device,
                 std::uint32_t the_removals, EventPipe the_pipe,
                 beeline::UniqueFd the_events) noexcept
    : verbs_context{},
      runtime(std::move(the_runtime)),
      device(the_device),
      removals_at_open(the_removals),
      pipe(the_pipe),
      events(std::move(the_events)) {
  pthread_mutex_init(&context.mutex, nullptr);
  context.async_fd = events.get();
  context.cmd_fd = -1;
  context.num_comp_vectors = 1;
}

Context::~Context() {
  pthread_mutex_destroy(&context.mutex);
  if (runtime->is_ours()) remove_event_pipe(runtime->fabric(), pipe);
}

Pd::Pd(Context& the_owner) noexcept
    : ibv_pd{},
      owner(the_owner),
      number(static_cast<std::uint32_t>(the_owner.runtime->next_serial())) {
  ibv_pd::context = &the_owner.context;
  handle = number;
  owner.objects.fetch_add(1);
}

Pd::~Pd() { owner.objects.fetch_sub(1); }

}  // namespace softnic
