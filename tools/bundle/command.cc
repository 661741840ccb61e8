// SPDX-License-Identifier: Apache-2.0
#include "tools/bundle/command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "common/base/host.h"
#include "common/base/version.h"
#include "tools/bundle/files.h"
#include "tools/bundle/program.h"
#include "tools/cli/exit_status.h"
#include "tools/cli/progress.h"
#include "tools/pages/processes.h"
#include "tools/pages/trusted_pages.h"

namespace beeline::bundle {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kTimeOfPart(60);

struct Options {
  std::string file;
  std::string directory = pages::usual_directory();
};

struct Part {
  std::string file;
  std::vector<std::string> words;
  const char* what;
};

// The command itself is asked, so that a part that fails is missing alone.
std::vector<Part> parts_of(const std::string& beeline, const std::string& pages) {
  return {
      {"hang.json", {beeline, "hang", "--json", "--dir", pages}, "who waits for whom"},
      {"hang-snapshot.json",
       {beeline, "hang", "--save", "-", "--dir", pages},
       "the same as a file for beeline hang, with those of other hosts"},
      {"top.json", {beeline, "top", "--json", "--dir", pages}, "what moves"},
      {"replay.txt", {beeline, "replay", "--dir", pages}, "what connections did"},
      {"metrics.txt", {beeline, "export", "--dir", pages}, "counters, also of ports"},
      {"doctor.txt", {beeline, "doctor"}, "what is wrong with this host"},
      {"doctor-record.json",
       {beeline, "doctor", "--record", "-"},
       "the files that the doctor reads, for beeline doctor --root"},
      {"topo.json", {beeline, "topo", "--json"}, "GPUs, NICs and what is between them"},
      {"info.json", {beeline, "info", "--json"}, "versions, devices and parameters"},
      {"kernel-log.txt", {"dmesg", "--time-format", "iso"}, "the kernel's log"},
      {"nvidia-smi.txt", {"nvidia-smi", "-q"}, "the state of the GPUs"},
      {"ibv_devinfo.txt", {"ibv_devinfo", "-v"}, "the RDMA devices"},
      {"ip.txt", {"ip", "-statistics", "address"}, "the network interfaces"},
  };
}

// A folder that only this user can read, and that is removed at the end.
class Scratch {
 public:
  Scratch() {
    const char* const set = std::getenv("TMPDIR");
    std::string name =
        std::string(set != nullptr && *set != '\0' ? set : "/tmp") + "/beeline-XXXXXX";
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

std::string fill(const std::string& folder, const Options& options) {
  std::string contents = fmt::format("Made on {} by beeline bundle {}.\n\n", host_name(), kBuild);
  tools::Progress progress("collecting");
  for (const Part& part : parts_of(fs::read_symlink("/proc/self/exe"), options.directory)) {
    progress.say("collecting " + part.file);
    const std::string end = run_program(part.words, folder + "/" + part.file, kTimeOfPart);
    contents += fmt::format("{:<20} {}; {}\n", part.file, part.what, end);
  }
  progress.say("collecting files of processes");
  std::set<std::string> running;  // their pages
  if (const auto found = pages::read_processes(options.directory)) {
    for (const pages::Process& process : found->all) {
      if (process.life == pages::Life::kEnded) continue;
      copy_process(process.pid, fmt::format("{}/processes/{}", folder, process.pid));
      running.insert(page_file_name({process.pid, process.start_time}));
    }
  }
  contents +=
      "processes/PID        states and times of each process, and its NCCL_ and BEELINE_ "
      "variables\n";
  fs::create_directory(folder + "/pages");
  const std::size_t left_out = copy_pages(options.directory, running, folder + "/pages");
  contents += fmt::format(
      "pages/               the statistics pages, for beeline replay FILE...; {} had no room\n",
      left_out);
  std::ofstream(folder + "/CONTENTS.txt") << contents;
  return contents;
}

int run(const Options& options) {
  const Scratch scratch;
  if (scratch.path().empty()) {
    return tools::print_error(
        Problem("no temporary folder can be made; set TMPDIR to one where this "
                "user may write"),
        tools::kUsage);
  }
  const std::string name =
      fmt::format("beeline-{}-{:%Y%m%dT%H%M%SZ}", host_name(), fmt::gmtime(std::time(nullptr)));
  const std::string file = options.file.empty() ? name + ".tar.gz" : options.file;
  const std::string folder = scratch.path() + "/" + name;
  fs::create_directory(folder);
  const std::string contents = fill(folder, options);
  ::umask(077);
  const std::string log = scratch.path() + "/tar";
  const std::string end =
      run_program({"tar", "--create", "--gzip", "--owner=0", "--group=0", "--file",
                   fs::absolute(file), "--directory", scratch.path(), name},
                  log, kTimeOfPart);
  if (end != "status 0") {
    std::ifstream said(log + ".err");
    const std::string why{std::istreambuf_iterator<char>(said), {}};
    return tools::print_error(Problem(file + " cannot be written: tar: " + end + "; " + why),
                              tools::kUsage);
  }
  fmt::print("{}\nwrote {}: look through it before you give it away\n", contents, file);
  return 0;
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto options = std::make_shared<Options>();
  tools::Subcommand command =
      line.add("bundle", "Collect what a person would ask for after a failure, in one file",
               [options] { return run(*options); });
  command.add("--save", options->file, "The file (default beeline-HOST-TIME.tar.gz here)", "FILE");
  command.add_pages_folder(options->directory);
  command.set_footer(
      "Run it on each host of the job, while the job hangs or soon after it has failed. It "
      "contains "
      "no arguments of processes, and of their environment only variables that begin with NCCL_ or "
      "BEELINE_. Exit status: 0 the file was written, 2 it was not.");
}

}  // namespace beeline::bundle
