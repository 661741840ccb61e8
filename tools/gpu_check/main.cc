// SPDX-License-Identifier: Apache-2.0
//
// Runs real NCCL over a network plugin on one GPU. The ranks are processes that NCCL treats as
// separate machines, so that all data goes through the network. Prints one table, and exits with 0
// if every element was right, 1 if anything was wrong, 77 if this machine lacks a GPU or NCCL.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>

#include "tools/gpu_check/checking.h"
#include "tools/gpu_check/launched.h"
#include "tools/gpu_check/options.h"
#include "tools/gpu_check/team.h"

namespace beeline::gpu {
namespace {

constexpr int kFine = 0;
constexpr int kWrong = 1;
constexpr int kUnavailable = 77;

// The folder of NCCL's logs. It is kept if the caller named it, or if something was wrong.
class LogFolder {
 public:
  explicit LogFolder(std::string given) : path_(std::move(given)), is_ours_(path_.empty()) {
    if (!is_ours_) return;
    path_ = std::filesystem::temp_directory_path() / "gpu-check-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  LogFolder(const LogFolder&) = delete;
  LogFolder& operator=(const LogFolder&) = delete;
  ~LogFolder() {
    std::error_code ignored;
    if (is_ours_ && !is_kept_ && !path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }
  void keep() { is_kept_ = true; }

 private:
  std::string path_;
  bool is_ours_;
  bool is_kept_ = false;
};

int check_machine(const Options& options) {
  const Outcome<Report> machine = probe_machine(options.limit);
  if (!machine) {
    fmt::print("gpu-check: {}\n", machine.error().text);
    return kWrong;
  }
  if (machine->kind == ReportKind::kUnavailable) {
    fmt::print("gpu-check: this machine cannot run it\n  {}\n", machine->text.data());
    return kUnavailable;
  }
  fmt::print("{}\n", machine->text.data());
  if (options.task == Task::kProbe) return kFine;

  LogFolder logs(options.log_folder);
  if (check_by_runs(options, logs.path())) return kFine;
  logs.keep();
  fmt::print("NCCL's logs are in {}\n", logs.path());
  return kWrong;
}

int do_task(const Options& options) {
  switch (options.task) {
    case Task::kCheck:
    case Task::kProbe: return check_machine(options);
    case Task::kReadLogs: return check_by_logs(options) ? kFine : kWrong;
    case Task::kBeRank: break;
  }
  const Outcome<void> became = become_rank(options);
  fmt::print(stderr, "gpu-check: {}\n", became.error().text);
  return kWrong;
}

}  // namespace
}  // namespace beeline::gpu

int main(int argc, char** argv) {
  using namespace beeline::gpu;
  try {
    return do_task(read_options(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu-check: %s\n", error.what());
    return 2;
  }
}
