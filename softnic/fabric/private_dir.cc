// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/private_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace softnic {
namespace {

using beeline::fail;
using beeline::UniqueFd;

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// The names in the directory at `path`, which is relative to `dir`.
std::vector<std::string> names_in(int dir, const std::string& path) {
  struct Close {
    void operator()(DIR* list) const { ::closedir(list); }
  };
  std::vector<std::string> names;
  UniqueFd inner(::openat(dir, path.c_str(), kOpenDir));
  const std::unique_ptr<DIR, Close> list(inner ? ::fdopendir(inner.get()) : nullptr);
  if (!list) return names;
  (void)inner.release();  // the list owns it from here on
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Uses one descriptor at a time, because few may be left. Intermediate directories are resolved by
// path; only the owner of the directory could replace one of them by a link.
void remove_all_in(int dir, const std::string& path) {
  for (const std::string& name : names_in(dir, path)) {
    std::string inner = path;
    inner.append("/").append(name);
    if (::unlinkat(dir, inner.c_str(), 0) == 0) continue;
    remove_all_in(dir, inner);
    ::unlinkat(dir, inner.c_str(), AT_REMOVEDIR);
  }
}

// O_NOFOLLOW makes open() fail with ENOTDIR for a link to a directory.
std::string why_not_opened(const std::string& path) {
  const int cause = errno;
  struct stat facts = {};
  const bool is_found = ::lstat(path.c_str(), &facts) == 0;
  errno = cause;  // callers look at it
  if (is_found && S_ISLNK(facts.st_mode))
    return path +
           " is a symbolic link, which softnic does not follow: remove it, or choose "
           "another --name";
  if (is_found && !S_ISDIR(facts.st_mode))
    return path + " is not a directory: remove it, or choose another --name";
  return "cannot open " + path + ": " + std::strerror(cause);
}

}  // namespace

beeline::Outcome<PrivateDir> PrivateDir::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kOpenDir));
  if (!fd) return fail(why_not_opened(path));
  struct stat facts = {};
  if (::fstat(fd.get(), &facts) != 0) {
    return fail("cannot read the attributes of " + path + ": " + std::strerror(errno));
  }
  if (facts.st_uid != ::getuid()) {
    return fail(path + " belongs to another user (uid " + std::to_string(facts.st_uid) +
                "): choose another --name");
  }
  if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(path + " is open to other users: remove it, or choose another --name");
  }
  return PrivateDir(std::move(fd), path);
}

UniqueFd PrivateDir::open_file(const std::string& name, int flags) const noexcept {
  const int all = flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
  return UniqueFd(::openat(fd_.get(), name.c_str(), all, 0600));
}

void PrivateDir::remove_file(const std::string& name) const noexcept {
  ::unlinkat(fd_.get(), name.c_str(), 0);
}

bool PrivateDir::has_name() const noexcept {
  struct stat held = {};
  struct stat named = {};
  return ::fstat(fd_.get(), &held) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

void PrivateDir::for_each(const std::function<void(const std::string& name)>& visit) const {
  for (const std::string& name : names_in(fd_.get(), ".")) visit(name);
}

void PrivateDir::empty() const { remove_all_in(fd_.get(), "."); }

}  // namespace softnic
