// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: finds the form of a call that belongs to a CUDA version.
#include <dlfcn.h>

#include "softnic/gpu/driver.h"

namespace softnic::gpu {
namespace {

// A handle of this library, from wherever and with whatever flags it was loaded.
void* own_library() {
  static void* const kLibrary = [] {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<void*>(&Driver::get), &info) == 0)
      return static_cast<void*>(nullptr);
    return ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return kLibrary;
}

// The newest form that exists in `version`. Sets `*is_too_old` if all forms are newer.
const CallRow* find_row(const Driver& driver, std::string_view name, int version,
                        bool* is_too_old) {
  const CallRow* found = nullptr;
  *is_too_old = false;
  for (const CallRow& row : kCalls) {
    if (row.base != name || driver.is_missing(row)) continue;
    if (row.since > version)
      *is_too_old = true;
    else if (found == nullptr || row.since > found->since)
      found = &row;
  }
  if (found != nullptr) *is_too_old = false;
  return found;
}

// The flags select the per-thread default stream, whose forms are aliases here, so they are
// ignored.
void* find_function(const CallRow& row) { return ::dlsym(own_library(), row.symbol); }

struct Answer {
  CuResult result = CuResult::kSuccess;
  int status = kProcNotFound;
};

Answer look_up(const Driver& driver, const char* name, void** function, int version,
               unsigned long long flags) {
  if (name == nullptr || function == nullptr || version > driver.settings.driver ||
      (flags & ~(kProcLegacyStream | kProcPerThreadStream)) != 0)
    return {CuResult::kInvalidValue, kProcNotFound};
  bool is_too_old = false;
  const CallRow* const row = find_row(driver, name, version, &is_too_old);
  *function = row == nullptr ? nullptr : find_function(*row);
  if (*function != nullptr) return {CuResult::kSuccess, kProcFound};
  return {CuResult::kSuccess, is_too_old ? kProcVersionNotSufficient : kProcNotFound};
}

}  // namespace

extern "C" {

CuResult cuGetProcAddress(const char* name, void** function, int version,
                          unsigned long long flags) {
  return enter<Stage::kAlways>(Call::k_cuGetProcAddress, [&](Driver& driver) {
    const Answer answer = look_up(driver, name, function, version, flags);
    if (answer.result != CuResult::kSuccess) return answer.result;
    return answer.status == kProcFound ? CuResult::kSuccess : CuResult::kNotFound;
  });
}

// This form reports a call that does not exist only by its status.
CuResult cuGetProcAddress_v2(const char* name, void** function, int version,
                             unsigned long long flags, int* status) {
  return enter<Stage::kAlways>(Call::k_cuGetProcAddress_v2, [&](Driver& driver) {
    const Answer answer = look_up(driver, name, function, version, flags);
    if (status != nullptr) *status = answer.status;
    return answer.result;
  });
}

}  // extern "C"
}  // namespace softnic::gpu
