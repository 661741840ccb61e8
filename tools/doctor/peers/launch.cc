// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/launch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "common/base/whole_file.h"
#include "plugin/checks/words.h"
#include "tools/cli/exit_status.h"
#include "tools/ranks/process.h"

namespace beeline::doctor {
namespace {

// For a POSIX shell, here and on the other host.
std::string quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all += "'";
}

Outcome<std::string> this_program() {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail("cannot find the file of this program: " + error.message());
  return file.string();
}

std::string with_host(std::string command, const std::string& host) {
  constexpr std::string_view kHost = "{host}";
  for (std::size_t at = command.find(kHost); at != std::string::npos;
       at = command.find(kHost, at + host.size())) {
    command.replace(at, kHost.size(), host);
  }
  return command;
}

// A name that a shell takes literally, and that ssh does not take for an option.
bool is_host_name(const std::string& name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:@%[]";
  return !name.empty() && name.front() != '-' &&
         name.find_first_not_of(kAllowed) == std::string::npos;
}

// "env NAME=VALUE ... ", with the variables of this process that the other hosts should have. ssh
// has the command read by one shell more than other launchers, so no quoting would be right for all
// values.
std::string variables_for_hosts() {
  const Environ environ = Environ::of_process();
  std::string words;
  for (const auto& [name, value] : environ.variables()) {
    // The files of a host are its own.
    const bool is_wanted =
        (name.starts_with("NCCL_") || name.starts_with("BEELINE_")) && name != "BEELINE_SYSFS_ROOT";
    if (!is_wanted) continue;
    if (checks::is_literal_in_shells(name) && checks::is_literal_in_shells(value)) {
      words += fmt::format("{}={} ", name, value);
      continue;
    }
    tools::print_error(fmt::format(
        "{} is not set on the other hosts, since a shell would change its value; set it there if "
        "it matters",
        name));
  }
  return words.empty() ? words : "env " + words;
}

// The shell becomes the command, so that the connection ends with it.
Outcome<Peer> start(const std::string& name, const std::string& command) {
  ranks::Process other = BL_TRY(ranks::fork_process(name.empty() ? "this host" : name));
  if (other.pid == 0) {
    ::dup2(other.stream.fd(), STDIN_FILENO);
    ::dup2(other.stream.fd(), STDOUT_FILENO);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  return Peer{.name = name, .stream = std::move(other.stream)};
}

}  // namespace

Outcome<std::vector<std::string>> read_hostfile(const std::string& path) {
  std::istringstream file(BL_TRY(read_whole_file(path)));
  std::vector<std::string> hosts;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (words >> name) hosts.push_back(name);
  }
  if (hosts.size() < 2) {
    return fail(fmt::format("{} names {} host{}; write two or more, one on each line", path,
                            hosts.size(), hosts.size() == 1 ? "" : "s"));
  }
  return hosts;
}

Outcome<std::vector<Peer>> launch(const std::vector<std::string>& hosts,
                                  const std::string& command) {
  const std::string program = BL_TRY(this_program());
  const bool has_others = std::ranges::any_of(hosts, [](auto& host) { return !host.empty(); });
  const std::string variables = has_others ? variables_for_hosts() : "";
  std::vector<Peer> peers;
  for (const std::string& host : hosts) {
    if (host.empty()) {
      peers.push_back(BL_TRY(start(host, "exec " + quoted(program) + " doctor --serve")));
      continue;
    }
    if (!is_host_name(host)) {
      return fail(fmt::format("\"{}\" is not the name of a host", host));
    }
    const std::string whole =
        with_host(command, host) + " " + variables + quoted(program) + " doctor --serve";
    peers.push_back(BL_TRY(start(host, "exec " + whole)));
  }
  return peers;
}

}  // namespace beeline::doctor
