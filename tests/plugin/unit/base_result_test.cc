// SPDX-License-Identifier: Apache-2.0
//
// Result, Status, Outcome and BL_TRY.
#include "common/base/result.h"

#include <memory>
#include <string>
#include <vector>

#include "common/base/problem.h"
#include "tests/support/catch.h"

namespace beeline {
namespace {

using TextResult = Result<int, std::string>;

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Errc::kInvalid, "halve an odd number");
  return n / 2;
}

Result<int> quarter(int n) { return BL_TRY(half(BL_TRY(half(n)))); }

Status check_even(int n) {
  BL_TRY(half(n));
  return {};
}

Status check_both(int a, int b) {
  BL_TRY(check_even(a));
  BL_TRY(check_even(b));
  return {};
}

TEST_CASE("result: holds a value", "[unit][base]") {
  const Result<int> result = half(42);
  REQUIRE(result);
  CHECK(result.has_value());
  CHECK(result.value() == 21);
  CHECK(*result == 21);
  CHECK(result.value_or(7) == 21);
}

TEST_CASE("result: an error keeps its code, errno and text", "[unit][base]") {
  const Result<int> result = fail(Errc::kSystem, "open the page", ENOENT);
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::kSystem);
  CHECK(result.error().sys_errno == ENOENT);
  CHECK(std::string(result.error().what) == "open the page");
  CHECK(result.value_or(7) == 7);
}

TEST_CASE("result: fail_errno takes errno as the call left it", "[unit][base]") {
  errno = EPERM;
  const Status status = fail_errno("lock memory");
  CHECK(status.error().code == Errc::kSystem);
  CHECK(status.error().sys_errno == EPERM);
}

TEST_CASE("result: operator-> reaches the value's members", "[unit][base]") {
  Result<std::string> result = std::string("rail");
  CHECK(result->size() == 4);
  result->push_back('s');
  CHECK(*result == "rails");
}

TEST_CASE("result: holds a value that can only be moved", "[unit][base]") {
  const auto make = []() -> Result<std::unique_ptr<int>> { return std::make_unique<int>(5); };
  const auto pass_on = [&]() -> Result<std::unique_ptr<int>> {
    std::unique_ptr<int> five = BL_TRY(make());
    *five += 1;
    return five;
  };
  Result<std::unique_ptr<int>> result = pass_on();
  REQUIRE(result);
  CHECK(**result == 6);
  const std::unique_ptr<int> owned = std::move(result).value();
  CHECK(*owned == 6);
}

TEST_CASE("result: value and error may be of one type", "[unit][base]") {
  const Result<std::string, std::string> good = std::string("text");
  const Result<std::string, std::string> bad = fail(std::string("text"));
  CHECK(good);
  CHECK_FALSE(bad);
  CHECK(*good == bad.error());
}

TEST_CASE("result: a literal is enough to fail with a string", "[unit][base]") {
  const TextResult result = fail("line 3: no such host");
  CHECK(result.error() == "line 3: no such host");
}

TEST_CASE("result: a string error moves through BL_TRY unchanged", "[unit][base]") {
  const auto parse = []() -> TextResult { return fail(std::string(100, 'x')); };
  const auto load = [&]() -> Result<std::vector<int>, std::string> {
    return std::vector<int>{BL_TRY(parse())};
  };
  CHECK(load().error() == std::string(100, 'x'));
}

TEST_CASE("result: BL_TRY nests", "[unit][base]") {
  CHECK(quarter(12).value() == 3);
  CHECK(quarter(6).error().code == Errc::kInvalid);
  CHECK(quarter(5).error().code == Errc::kInvalid);
}

TEST_CASE("status: default is success", "[unit][base]") {
  const Status status;
  CHECK(status);
  status.value();
}

TEST_CASE("status: BL_TRY stops at the first failure", "[unit][base]") {
  CHECK(check_both(2, 4));
  CHECK(check_both(1, 4).error().code == Errc::kInvalid);
  CHECK(check_both(2, 3).error().code == Errc::kInvalid);
}

TEST_CASE("status: other error types work too", "[unit][base]") {
  const Result<void, std::string> good;
  const Result<void, std::string> bad = fail("no");
  CHECK(good);
  CHECK_FALSE(bad);
  CHECK(bad.error() == "no");
}

TEST_CASE("problem: an error without a sentence becomes one with a sentence", "[unit][base]") {
  const auto read = []() -> Outcome<int> {
    return BL_TRY(Result<int>(fail(Errc::kSystem, "read the table", EACCES)));
  };
  const Problem problem = read().error();
  CHECK(problem.code == Errc::kSystem);
  CHECK(problem.sys_errno == EACCES);
  CHECK(problem.text == describe({Errc::kSystem, EACCES, "read the table"}));
}

TEST_CASE("problem: a sentence alone is enough", "[unit][base]") {
  const auto parse = []() -> Outcome<void> { return fail("line 3 has no colon"); };
  CHECK(parse().error().text == "line 3 has no colon");
  CHECK(parse().error().code == Errc::kInvalid);
}

TEST_CASE("error: describe names the attempt, the cause and the kind", "[unit][base]") {
  CHECK(describe({Errc::kSystem, ENOENT, "open the page"}) ==
        "open the page: No such file or directory");
  CHECK(describe({Errc::kTimeout, 0, "wait for the peer"}) == "wait for the peer (timeout)");
  CHECK(describe({Errc::kNoMemory, ENOMEM, "map the page"}) ==
        "map the page: Cannot allocate memory (no memory)");
}

TEST_CASE("error: every code has its own text", "[unit][base]") {
  std::vector<std::string> seen;
  for (auto code = Errc::kOk; code <= Errc::kInternal;
       code = static_cast<Errc>(static_cast<std::uint32_t>(code) + 1)) {
    const std::string words = to_string(code);
    CHECK(words != "unknown error");
    for (const std::string& other : seen) CHECK(words != other);
    seen.push_back(words);
  }
}

}  // namespace
}  // namespace beeline
