// SPDX-License-Identifier: Apache-2.0
#include "tools/bundle/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <vector>

#include "common/base/fd.h"

namespace beeline::bundle {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOfProcess[] = {"stat",   "status", "wchan", "schedstat",
                                      "cgroup", "limits", "statm"};

// A link is not followed: in a folder where everybody may write, it may lead anywhere.
std::optional<std::string> read_regular(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  std::string text;
  char part[65536];
  for (ssize_t got = 0; (got = ::read(file.get(), part, sizeof part)) > 0;) {
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() >= kMostBytesOfFile) break;
  }
  return text;
}

void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

void copy_file(const std::string& from, const std::string& to) {
  if (const auto text = read_regular(from); text && !text->empty()) write(to, *text);
}

std::string kept_variables(const std::string& environ) {
  std::string kept;
  for (std::size_t at = 0; at < environ.size();) {
    const std::size_t end = std::min(environ.find('\0', at), environ.size());
    const std::string_view one(environ.data() + at, end - at);
    const bool is_ours = one.starts_with("NCCL_") || one.starts_with("BEELINE_");
    const std::string_view name = one.substr(0, one.find('='));
    if (is_ours && name.find("TOKEN") == std::string_view::npos) kept += std::string(one) + "\n";
    at = end + 1;
  }
  return kept;
}

void copy_process(std::int64_t pid, const std::string& folder) {
  const std::string process = "/proc/" + std::to_string(pid);
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  for (const char* const name : kOfProcess) copy_file(process + "/" + name, folder + "/" + name);
  if (const auto environ = read_regular(process + "/environ"))
    write(folder + "/environ", kept_variables(*environ));
  std::string threads;
  fs::directory_iterator task(process + "/task", ignored);
  for (const fs::directory_iterator end; !ignored && task != end; task.increment(ignored)) {
    const std::string path = task->path();
    threads += read_regular(path + "/stat").value_or("");
    threads += "  wchan " + read_regular(path + "/wchan").value_or("") + "\n  schedstat " +
               read_regular(path + "/schedstat").value_or("\n");
  }
  write(folder + "/threads", threads);
}

std::size_t copy_pages(const std::string& from, const std::set<std::string>& first,
                       const std::string& folder) {
  std::vector<std::tuple<bool, fs::file_time_type, fs::path>> pages;
  std::error_code ignored;
  fs::directory_iterator entry(from, ignored);
  for (const fs::directory_iterator end; !ignored && entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("beeline-")) continue;
    std::error_code of_time;
    pages.emplace_back(first.contains(name), fs::last_write_time(entry->path(), of_time),
                       entry->path());
  }
  std::ranges::sort(pages, std::ranges::greater{});
  std::size_t bytes = 0;
  std::size_t left_out = 0;
  for (const auto& [is_first, time, page] : pages) {
    const auto text = read_regular(page);
    if (!text) continue;
    if (bytes + text->size() > kMostBytesOfPages) {
      ++left_out;
      continue;
    }
    bytes += text->size();
    write(folder + "/" + page.filename().string(), *text);
  }
  return left_out;
}

}  // namespace beeline::bundle
