// SPDX-License-Identifier: Apache-2.0
//
// The variables in which a launcher tells a process its rank, how many there are, and of which job.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
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

// It fits an int.
inline std::optional<std::uint32_t> launched_number(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (number < 0) return std::nullopt;
  return static_cast<std::uint32_t>(number);
}

struct LaunchedAs {
  Launcher by;              // the variables that tell it
  std::uint32_t rank = 0;   // of this process
  std::uint32_t ranks = 0;  // of the job
};
// A launcher of which only one variable is set is skipped.
inline std::optional<LaunchedAs> launched_as() noexcept {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank = launched_number(launcher.rank);
    const auto ranks = launched_number(launcher.ranks);
    if (rank && ranks) return LaunchedAs{.by = launcher, .rank = *rank, .ranks = *ranks};
  }
  return std::nullopt;
}

// A name that processes of one job have in common, and those of another do not: "48213.0", or
// "48213.0 node7:29500" if torchrun was started by srun. Empty: no launcher has told one.
inline std::string launched_job() {
  const auto joined = [](const char* variable, const char* separator, const char* second) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == '\0') return std::string();
    const char* const more = std::getenv(second);
    return more == nullptr || *more == '\0' ? std::string(text)
                                            : std::string(text) + separator + more;
  };
  std::string job = joined("SLURM_JOB_ID", ".", "SLURM_STEP_ID");
  if (job.empty()) job = joined("PMIX_NAMESPACE", "", "");
  const std::string meeting = joined("MASTER_ADDR", ":", "MASTER_PORT");
  if (!job.empty() && !meeting.empty()) job += " ";
  return job + meeting;
}

}  // namespace beeline
