// SPDX-License-Identifier: Apache-2.0
#include "tools/pages/trusted_pages.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "plugin/stats/sweep.h"

namespace beeline::pages {
namespace {

std::string read_proc(std::int64_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The value of a line of /proc/PID/status.
std::string_view status_line(std::string_view status, const std::string& name) {
  const std::size_t at = status.find("\n" + name + ":\t");
  if (at == std::string_view::npos) return {};
  const std::string_view rest = status.substr(at + name.size() + 3);
  return rest.substr(0, rest.find('\n'));
}

Life life_from(std::string_view state) {
  switch (state.empty() ? 'X' : state.front()) {
    case 'T':
    case 't': return Life::kStopped;
    case 'Z':
    case 'X': return Life::kEnded;
    default: return Life::kRuns;
  }
}

// The second of the four numbers of the line "Uid".
std::optional<uid_t> effective_user(std::string_view users) {
  users.remove_prefix(std::min(users.find('\t') + 1, users.size()));
  uid_t user = 0;
  const auto parsed = std::from_chars(users.data(), users.data() + users.size(), user);
  return parsed.ec == std::errc{} ? std::optional(user) : std::nullopt;
}

struct Found {
  Life life = Life::kEnded;
  std::optional<uid_t> user = {};  // none: there is no such process any more
};
Found look_at_process(const PageOwner& owner) {
  if (process_start_time(static_cast<pid_t>(owner.pid)) != owner.start_time) return {};
  const std::string status = read_proc(owner.pid, "status");
  return {.life = life_from(status_line(status, "State")),
          .user = effective_user(status_line(status, "Uid"))};
}

Reason reason_of(const Error& error) {
  if (error.sys_errno == EACCES) return Reason::kForbidden;
  return error.code == Errc::kUnsupported ? Reason::kOtherVersion : Reason::kDamaged;
}

std::string name_of(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry != nullptr ? entry->pw_name : "user " + std::to_string(user);
}

std::string names_of(const std::vector<uid_t>& owners, const char* between) {
  std::string text;
  for (const uid_t user : std::set<uid_t>(owners.begin(), owners.end())) {
    text += (text.empty() ? "" : between) + name_of(user);
  }
  return text;
}

std::vector<uid_t> and_root(std::vector<uid_t> users) {
  users.push_back(0);
  return users;
}

// The reason, and what to do about it.
std::string words_for(Reason reason, const std::vector<uid_t>& owners) {
  switch (reason) {
    case Reason::kForbidden:
      return "this user may not read them; run as " + names_of(and_root(owners), " or ");
    case Reason::kOtherVersion:
      return "they are of another version of Beeline; use the command of the version that the job "
             "uses";
    case Reason::kDamaged: return "they are damaged, or no statistics pages at all";
    case Reason::kForged:
      return "the pid in the name of the file is that of another user's process";
    case Reason::kOfEnded:
      return "their processes have ended, so it is not known whose they were; run as " +
             names_of(owners, " or ") + ", or name the files: beeline replay FILE...";
    case Reason::kTooMany:
      return "at most " + std::to_string(kMostSlotsOfUser) + " connections of a user are read";
    case Reason::kElsewhere: break;
  }
  return "they could not be read where the files of beeline hang --save were written";
}

}  // namespace

std::optional<Reason> why_not_believed(std::optional<uid_t> process, uid_t file, uid_t reader) {
  if (process) return *process == file ? std::nullopt : std::optional(Reason::kForged);
  return file == reader ? std::nullopt : std::optional(Reason::kOfEnded);
}

std::size_t LeftOut::count() const {
  std::size_t sum = 0;
  for (const auto& [reason, pages] : owners) sum += pages.size();
  return sum;
}

std::size_t LeftOut::of_running() const {
  const auto ended = owners.find(Reason::kOfEnded);
  return count() - (ended == owners.end() ? 0 : ended->second.size());
}

std::string LeftOut::remarks() const {
  std::string text;
  for (const auto& [reason, pages] : owners) {
    const std::string whose = reason == Reason::kElsewhere ? "" : " of " + names_of(pages, " and ");
    text += std::to_string(pages.size()) +
            (pages.size() == 1 ? " statistics page" : " statistics pages") + whose +
            " left out: " + words_for(reason, pages) + "\n";
  }
  return text;
}

Problem LeftOut::as_error() const {
  const std::string text = remarks();
  return "no statistics page could be used\n" + text.substr(0, text.rfind('\n'));
}

Outcome<LeftOut> visit_pages(const std::string& directory, const Visit& visit) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error) return fail("cannot read " + directory + ": " + error.message());
  LeftOut left_out;
  std::map<uid_t, std::size_t> slots;
  for (const auto& file : files) {
    const std::optional<PageOwner> process = parse_page_file_name(file.path().filename().string());
    struct stat status {};
    // It may have gone, or may be in the making.
    if (!process || ::lstat(file.path().c_str(), &status) != 0) continue;
    const Result<PageReader> page = PageReader::open(file.path());
    if (!page && (page.error().sys_errno == ENOENT || page.error().code == Errc::kBusy)) continue;
    const uid_t owner = page ? page->owner() : status.st_uid;
    const Found found = look_at_process(*process);
    std::optional<Reason> reason = why_not_believed(found.user, owner, ::geteuid());
    if (!page && (!reason || page.error().sys_errno == EACCES)) reason = reason_of(page.error());
    const std::uint32_t used = page ? page->slots_used() : 0;
    if (!reason && (slots[owner] += used) > kMostSlotsOfUser) reason = Reason::kTooMany;
    if (reason) {
      left_out.owners[*reason].push_back(owner);
    } else {
      visit(*process, found.life, *page, used);
    }
  }
  return left_out;
}

}  // namespace beeline::pages
