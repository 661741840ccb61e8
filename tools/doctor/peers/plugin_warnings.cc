// SPDX-License-Identifier: Apache-2.0
//
// A logger of NCCL's interface has no context argument, so this one has to use globals.
#include "tools/doctor/peers/plugin_warnings.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <utility>

namespace beeline::doctor {
namespace {

constexpr std::size_t kMostWarnings = 100;
// The plugin begins each line of the log with it.
constexpr std::string_view kPrefix = "NET/Beeline : ";

std::mutex kept_mutex;
std::vector<std::string> kept_warnings;

}  // namespace

void keep_warning(ncclDebugLogLevel level, unsigned long /*flags*/, const char* /*file*/,
                  int /*line*/, const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  std::array<char, 2048> text;  // NOLINT: vsnprintf writes it
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  std::string_view warning = text.data();
  if (warning.starts_with(kPrefix)) warning.remove_prefix(kPrefix.size());
  const std::lock_guard lock(kept_mutex);
  if (kept_warnings.size() < kMostWarnings) kept_warnings.emplace_back(warning);
}

std::vector<std::string> take_warnings() {
  const std::lock_guard lock(kept_mutex);
  return std::exchange(kept_warnings, {});
}

}  // namespace beeline::doctor
