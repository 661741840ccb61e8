// SPDX-License-Identifier: Apache-2.0
#include "common/check/assert.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "common/base/fd.h"
#include "common/base/result.h"
#include "tests/plugin/unit/check_assert_off.h"
#include "tests/support/catch.h"
#include "tests/support/must.h"

namespace beeline {
namespace {

struct Ending {
  int signal = 0;
  std::string said;  // on stderr
};

// Runs the body in a process of its own.
Ending ending_of(const std::function<void()>& body) {
  int ends[2];
  BL_MUST(::pipe(ends) == 0);
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = ::fork();
  BL_MUST(child >= 0);
  if (child == 0) {
    ::signal(SIGABRT, SIG_DFL);  // Catch2 would report it
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::dup2(to.get(), STDERR_FILENO);
    body();
    ::_exit(0);
  }
  to.reset();
  Ending ending;
  char part[512];
  for (ssize_t got; (got = ::read(from.get(), part, sizeof part)) > 0;)
    ending.said.append(part, static_cast<std::size_t>(got));
  int status = 0;
  BL_MUST(::waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  return ending;
}

TEST_CASE("assert: a promise that holds costs one evaluation, and says nothing", "[unit][check]") {
  int evaluated = 0;
  const Ending ending = ending_of([] { BL_ASSERT(true, "it holds"); });
  CHECK(ending.signal == 0);
  CHECK(ending.said == "");
  BL_ASSERT(++evaluated == 1, "it is evaluated once");
#ifndef BL_NO_ASSERTIONS
  CHECK(evaluated == 1);
#endif
}

#ifndef BL_NO_ASSERTIONS  // all lanes are built with assertions
TEST_CASE("assert: a broken promise ends the process, and says which and where", "[unit][check]") {
  const int line = __LINE__ + 1;
  const Ending ending = ending_of([] { BL_ASSERT(1 + 1 == 3, "two ones are three"); });
  CHECK(ending.signal == SIGABRT);
  const std::string said = "tests/plugin/unit/check_assert_test.cc:" + std::to_string(line) +
                           ": assertion failed: 1 + 1 == 3: two ones are three\n";
  INFO(ending.said);
  CHECK(ending.said.find(said) != std::string::npos);
}

TEST_CASE("assert: whoever asks a Result for what it does not hold ends the process",
          "[unit][check]") {
  const Result<int> failed = fail(Errc::kInvalid, "be valid");
  const Status done;
  CHECK(ending_of([&] { (void)failed.value(); }).signal == SIGABRT);
  CHECK(ending_of([&] { (void)Result<int>(1).error(); }).signal == SIGABRT);
  CHECK(ending_of([&] { (void)done.error(); }).signal == SIGABRT);
  CHECK(ending_of([] { (void)Status(fail(Errc::kOk, "succeed")); }).signal == SIGABRT);
}
#endif

TEST_CASE("assert: without assertions, a condition is compiled and not evaluated",
          "[unit][check]") {
  CHECK(test::evaluations_without_assertions() == 0);
}

}  // namespace
}  // namespace beeline
