// SPDX-License-Identifier: Apache-2.0
//
// UniqueFd: closed once, by its last owner.
#include "common/base/fd.h"

#include <fcntl.h>

#include "tests/support/catch.h"

namespace beeline {
namespace {

UniqueFd open_null() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

TEST_CASE("fd: empty until given a descriptor", "[unit][base]") {
  const UniqueFd fd;
  CHECK_FALSE(fd);
  CHECK(fd.get() == -1);
}

TEST_CASE("fd: descriptor 0 counts as one", "[unit][base]") {
  UniqueFd fd(0);
  CHECK(fd);
  CHECK(fd.release() == 0);
}

TEST_CASE("fd: the end of its life closes it", "[unit][base]") {
  int number = -1;
  {
    const UniqueFd fd = open_null();
    number = fd.get();
    REQUIRE(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("fd: moving hands it over without closing", "[unit][base]") {
  UniqueFd first = open_null();
  const int number = first.get();
  const UniqueFd second = std::move(first);
  CHECK(first.get() == -1);  // NOLINT(bugprone-use-after-move): empty is what a move leaves
  CHECK(second.get() == number);
  CHECK(is_open(number));
}

TEST_CASE("fd: assignment closes what was held before", "[unit][base]") {
  UniqueFd held = open_null();
  const int before = held.get();
  UniqueFd incoming = open_null();
  const int number = incoming.get();
  held = std::move(incoming);
  CHECK(held.get() == number);
  CHECK_FALSE(is_open(before));
}

TEST_CASE("fd: assignment to itself keeps it", "[unit][base]") {
  UniqueFd fd = open_null();
  const int number = fd.get();
  UniqueFd& same = fd;
  fd = std::move(same);
  CHECK(fd.get() == number);
  CHECK(is_open(number));
}

TEST_CASE("fd: release leaves closing to the caller", "[unit][base]") {
  int number = -1;
  {
    UniqueFd fd = open_null();
    number = fd.release();
    CHECK_FALSE(fd);
  }
  CHECK(is_open(number));
  ::close(number);
}

}  // namespace
}  // namespace beeline
