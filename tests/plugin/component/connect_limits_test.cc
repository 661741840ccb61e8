// SPDX-License-Identifier: Apache-2.0
//
// A process without free file descriptors or threads: the error names the limit and how to raise
// it, and connections work again once there is room.
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <limits>

#include "tests/plugin/component/connect_raw_peer.h"

using namespace beeline;
using namespace beeline::test;

namespace {

// As long as it lives, this process has only `left` free descriptors.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t left) {
    BL_MUST(getrlimit(RLIMIT_NOFILE, &before_) == 0);
    while (free_below(kLimit) > left) {
      UniqueFd fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
      BL_MUST(static_cast<bool>(fd));
      held_.push_back(std::move(fd));
    }
    const rlimit few{.rlim_cur = kLimit, .rlim_max = before_.rlim_max};
    BL_MUST(setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  static constexpr rlim_t kLimit = 256;

  static rlim_t free_below(rlim_t limit) {
    rlim_t free = 0;
    for (rlim_t fd = 0; fd < limit; ++fd) {
      if (fcntl(static_cast<int>(fd), F_GETFD) < 0) ++free;
    }
    return free;
  }

  rlimit before_{};
  std::vector<UniqueFd> held_;
};

// As long as it lives, no thread can be created, since its stack would be too large.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_t huge;
    BL_MUST(pthread_getattr_default_np(&before_) == 0 && pthread_attr_init(&huge) == 0);
    BL_MUST(pthread_attr_setstacksize(&huge, std::size_t{1} << 47) == 0);
    BL_MUST(pthread_setattr_default_np(&huge) == 0);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() { pthread_setattr_default_np(&before_); }

 private:
  pthread_attr_t before_{};
};

constexpr const char* kAdvice =
    "; this process may have 256 files open: raise the limit with ulimit -n, up to ";

}  // namespace

TEST_CASE_METHOD(TwoPlanes,
                 "limits: without descriptors listen fails, and the log says which limit it is",
                 "[component][connect]") {
  Ticket ticket;
  const rlim_t left = GENERATE(rlim_t{0}, rlim_t{1}, rlim_t{2});  // each time another open fails
  {
    const DescriptorLimit few(left);
    const auto listener =
        a.plane().listen(table->alone(find_device(*table, "softnic0")), ticket.handle());
    REQUIRE_FALSE(listener);
    CHECK(listener.error().sys_errno == EMFILE);
  }
  CHECK(log.has(kAdvice));
  CHECK(log.count(LogLevel::kWarn) == 1);
  const CommPair comm = join(a, b);
  prove_write(*comm.receiver, *comm.sender);
}

TEST_CASE_METHOD(TwoPlanes,
                 "limits: without descriptors connect fails, and the log says which limit it is",
                 "[component][connect]") {
  Ticket unused;
  Ticket ticket;
  Listener* const own = b.listen(unused);  // starts b's control thread
  Listener* const listener = a.listen(ticket);
  {
    const DescriptorLimit few(0);
    CHECK(b.wait_connect_error(ticket).sys_errno == EMFILE);
  }
  CHECK(log.has(kAdvice));
  const ConnectionPtr sender = b.wait_connect(ticket);
  const ConnectionPtr receiver = a.wait_accept(listener);
  prove_write(*receiver, *sender);
  a.plane().close(listener);
  b.plane().close(own);
}

TEST_CASE_METHOD(TwoPlanes,
                 "limits: without a thread listen and connect fail, and the log says why, once",
                 "[component][connect]") {
  Ticket ticket;
  Listener* listener = nullptr;
  const bool connecting = GENERATE(false, true);
  if (connecting) listener = a.listen(ticket);
  {
    const NoThreads none;
    if (connecting) {
      CHECK(b.wait_connect_error(ticket).sys_errno == EAGAIN);
    } else {
      Ticket unused;
      const auto failed =
          a.plane().listen(table->alone(find_device(*table, "softnic0")), unused.handle());
      REQUIRE_FALSE(failed);
      CHECK(failed.error().sys_errno == EAGAIN);
    }
  }
  CHECK(log.count(LogLevel::kWarn) == 1);
  CHECK(log.has("start the control thread: Resource temporarily unavailable"));
  CHECK(log.has("this user may run no more threads"));
  const CommPair comm = join(a, b);
  prove_write(*comm.receiver, *comm.sender);
  a.plane().close(listener);
}
