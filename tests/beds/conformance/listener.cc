// SPDX-License-Identifier: Apache-2.0
// Waiting for asynchronous events.
#include <fcntl.h>
#include <poll.h>

#include "tests/beds/conformance/lab.h"
#include "tests/beds/conformance/words.h"

namespace conformance {
namespace {

constexpr Milliseconds kEventPatience{5000};

struct Heard {
  std::string what;
  const void* object = nullptr;
};

const void* object_of(const ibv_async_event& event) {
  // The members of the union are pointers, so any of them gives the address of the object.
  return event.element.qp;
}

Heard hear_next(ibv_context* context, Milliseconds patience) {
  pollfd waiting = {.fd = context->async_fd, .events = POLLIN, .revents = 0};
  ibv_async_event event = {};
  if (::poll(&waiting, 1, static_cast<int>(patience.count())) != 1 ||
      ::ibv_get_async_event(context, &event) != 0) {
    return {"no event"};
  }
  Heard heard{word(event.event_type), object_of(event)};
  ::ibv_ack_async_event(&event);
  return heard;
}

}  // namespace

Listener::Listener(const Device& device) : context_(device.context.get()) {
  const int flags = ::fcntl(context_->async_fd, F_GETFL);
  must(::fcntl(context_->async_fd, F_SETFL, flags | O_NONBLOCK) == 0, "fcntl");
  while (hear_next(context_, Milliseconds{0}).what != "no event") {
  }
}

std::string Listener::hear(const void* object) const {
  const Heard heard = hear_next(context_, kEventPatience);
  if (heard.what == "no event" || heard.object == object) return heard.what;
  return heard.what + " of another object";
}

}  // namespace conformance
