// SPDX-License-Identifier: Apache-2.0
//
// The variables in which a launcher tells a process its rank, and how many there are.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace beeline {

struct Launcher {
  const char* rank;
  const char* ranks;
};
// torchrun first: what it starts also has the variables of the srun that started torchrun.
inline constexpr std::array kLaunchers = {
    Launcher{"RANK", "WORLD_SIZE"},
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"PMI_RANK", "PMI_SIZE"},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS"},
};

inline std::optional<std::uint32_t> launched_number(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

struct LaunchedAs {
  std::optional<std::uint32_t> rank = {};   // of this process
  std::optional<std::uint32_t> ranks = {};  // of the job, of which the same launcher has told
};
inline LaunchedAs launched_as() noexcept {
  for (const Launcher& launcher : kLaunchers) {
    if (const auto rank = launched_number(launcher.rank)) {
      return {.rank = rank, .ranks = launched_number(launcher.ranks)};
    }
  }
  return {};
}

}  // namespace beeline
