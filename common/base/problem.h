// SPDX-License-Identifier: Apache-2.0
//
// The error of a function that is called rarely and whose failure a person will read: the kind of
// error, and a sentence that names the thing, the cause and the fix. On the path of a message there
// is Error instead (result.h), which does not allocate.
#pragma once

#include <string>
#include <utility>

#include "common/base/result.h"

namespace beeline {

struct Problem {
  // Where the text says it all, the kind of error is "makes no sense".
  Problem(std::string sentence) : text(std::move(sentence)) {}
  Problem(const char* sentence) : text(sentence) {}
  Problem(Errc kind, std::string sentence) : code(kind), text(std::move(sentence)) {}
  Problem(const Error& error)
      : code(error.code), sys_errno(error.sys_errno), text(describe(error)) {}

  Errc code = Errc::kInvalid;
  int sys_errno = 0;  // 0: no system call is to blame
  std::string text;
};

template <class T>
using Outcome = Result<T, Problem>;

}  // namespace beeline
