// SPDX-License-Identifier: Apache-2.0
//
// The error of slow functions whose failure the user will read: the kind of error, and a sentence
// that names the thing, the cause and the fix. Fast functions have Error (result.h), which does not
// allocate.
#pragma once

#include <string>
#include <utility>

#include "common/base/result.h"

namespace beeline {

struct Problem {
  // The kind of error is kInvalid, for callers that only need the text.
  Problem(std::string sentence) : text(std::move(sentence)) {}
  Problem(const char* sentence) : text(sentence) {}
  Problem(Errc kind, std::string sentence) : code(kind), text(std::move(sentence)) {}
  Problem(const Error& error)
      : code(error.code), sys_errno(error.sys_errno), text(describe(error)) {}

  Errc code = Errc::kInvalid;
  int sys_errno = 0;  // 0: no system call failed
  std::string text;
};

template <class T>
using Outcome = Result<T, Problem>;

}  // namespace beeline
