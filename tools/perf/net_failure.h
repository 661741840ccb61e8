// SPDX-License-Identifier: Apache-2.0
//
// The failure of a call to the plugin or to the CUDA driver. It is small, so that measured loops
// can return it, and is converted to a sentence outside them.
#pragma once

#include <string>

#include "common/base/result.h"
#include "include/nccl/net_common.h"

namespace beeline::perf {

class End;

struct NetFailure {
  const char* call = "";
  ncclResult_t result = ncclSuccess;
  const char* complaint = nullptr;  // a description, where the result alone is not enough
  const End* end = nullptr;

  operator std::string() const;  // NOLINT(google-explicit-constructor): fail() converts errors
};

template <class T>
using NetResult = Result<T, NetFailure>;

}  // namespace beeline::perf
