// SPDX-License-Identifier: Apache-2.0
//
// A call to the plugin, or to the CUDA driver, that did not do what it must. Small, so that the
// measured loops can pass it up; it turns into a sentence on its way to the user.
#pragma once

#include <string>

#include "common/base/result.h"
#include "include/nccl/net_common.h"

namespace beeline::perf {

class End;

struct NetFailure {
  const char* call = "";
  ncclResult_t result = ncclSuccess;
  const char* complaint = nullptr;  // in words, where the result does not say enough
  const End* end = nullptr;

  operator std::string() const;  // NOLINT(google-explicit-constructor): fail() converts errors
};

template <class T>
using NetResult = Result<T, NetFailure>;

const char* to_string(ncclResult_t result);

}  // namespace beeline::perf
