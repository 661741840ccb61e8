// SPDX-License-Identifier: Apache-2.0
#include "tests/beds/fault/step.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace beeline::test {
namespace {

std::atomic<const char*> current{"the beginning"};

void say(const char* text) noexcept { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

void on_alarm(int) {
  say("stuck in: ");
  say(current.load());
  say("\n");
  std::abort();
}

}  // namespace

void step(const char* name) noexcept { current.store(name); }

void abort_if_stuck(unsigned seconds) noexcept {
  ::signal(SIGALRM, on_alarm);
  ::alarm(seconds);
}

}  // namespace beeline::test
