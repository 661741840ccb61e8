// SPDX-License-Identifier: Apache-2.0
#include "tools/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

#include "common/base/clock.h"

namespace beeline::top {
namespace {

volatile std::sig_atomic_t must_end = 0;

extern "C" void end_soon(int) { must_end = 1; }
extern "C" void do_nothing(int) {}  // interrupts the wait for a key

void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

Terminal::Terminal() {
  ::tcgetattr(STDIN_FILENO, &before_);
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // they would leave the terminal as it is now
  keys.c_cc[VQUIT] = _POSIX_VDISABLE;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  // They come only while key_within() waits.
  sigset_t held;
  ::sigemptyset(&held);
  for (const int signal : {SIGINT, SIGTERM, SIGWINCH}) ::sigaddset(&held, signal);
  ::sigprocmask(SIG_BLOCK, &held, nullptr);
  on_signal(SIGINT, end_soon);
  on_signal(SIGTERM, end_soon);
  on_signal(SIGWINCH, do_nothing);
  std::fputs("\033[?1049h\033[?25l", stdout);  // another screen, no cursor
}

Terminal::~Terminal() {
  std::fputs("\033[?25h\033[?1049l", stdout);
  std::fflush(stdout);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

bool Terminal::is_there() noexcept {
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
}

Size Terminal::size() noexcept {
  winsize window = {};
  const bool is_known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col != 0;
  return is_known ? Size{.columns = window.ws_col, .rows = window.ws_row} : Size{};
}

std::optional<char> Terminal::key_within(std::int64_t ns) {
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  const timespec time = {.tv_sec = ns / kNsPerSec, .tv_nsec = ns % kNsPerSec};
  sigset_t none;
  ::sigemptyset(&none);
  const int ready = ::ppoll(&input, 1, &time, &none);
  if (must_end != 0) return 'q';
  if (ready <= 0) return std::nullopt;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

}  // namespace beeline::top
