// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "common/base/fd.h"

namespace beeline::tools {
namespace {

const char* advice(int sys_errno) noexcept {
  switch (sys_errno) {
    case ENOENT:
    case ENOTDIR: return "create its folder first, or name another file";
    case EACCES:
    case EPERM:
    case EROFS: return "name a file in a folder where you may write, or - for stdout";
    case EISDIR: return "name a file in that folder";
    case ENOSPC:
    case EDQUOT: return "free some space, or name a file elsewhere";
    default: return "name another file";
  }
}

Failure<Problem> cannot_write(const std::string& path, int sys_errno) {
  return fail(Problem(fmt::format("{}: cannot be written: {}; {}", path,
                                  std::generic_category().message(sys_errno), advice(sys_errno))));
}

// Returns 0 or errno.
int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

// A temporary file beside the place of the final one. Its destructor removes it unless it was moved
// to that place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& place)
      : place_(place), path_(fmt::format("{}.new-{}", place, ::getpid())) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (is_there_) ::unlink(path_.c_str());
  }

  // These return 0 or errno.
  int write(std::string_view text, mode_t mode) {
    ::unlink(path_.c_str());  // left by a dead process with the same pid
    UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) return errno;
    is_there_ = true;
    if (mode != 0 && ::fchmod(file.get(), mode) != 0) return errno;
    if (const int wrong = write_all(file.get(), text)) return wrong;
    if (::fsync(file.get()) != 0) return errno;
    return ::close(file.release()) == 0 ? 0
                                        : errno;  // a network file system may report errors here
  }
  int move_to_place() {
    if (::rename(path_.c_str(), place_.c_str()) != 0) return errno;
    is_there_ = false;
    return 0;
  }

 private:
  const std::string& place_;
  std::string path_;
  bool is_there_ = false;
};

// Without a text, these only find out whether it could be written.
using Text = std::optional<std::string_view>;

int replace(const std::string& place, Text text, mode_t mode) {
  TemporaryFile file(place);
  if (const int wrong = file.write(text.value_or(""), mode)) return wrong;
  return text ? file.move_to_place() : 0;
}

int write_straight(const std::string& path, Text text) {
  if (!text) return ::access(path.c_str(), W_OK) == 0 ? 0 : errno;  // a pipe may have no reader yet
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? write_all(file.get(), *text) : errno;
}

int write_to(const std::string& path, Text text) {
  struct stat old {};
  if (::stat(path.c_str(), &old) != 0) return errno == ENOENT ? replace(path, text, 0) : errno;
  if (S_ISDIR(old.st_mode)) return EISDIR;
  if (!S_ISREG(old.st_mode)) return write_straight(path, text);
  // rename() would replace even a read-only file.
  if (::access(path.c_str(), W_OK) != 0) return errno;
  std::error_code wrong;
  const std::filesystem::path place = std::filesystem::canonical(path, wrong);
  return wrong ? wrong.value() : replace(place, text, old.st_mode & 07777);
}

}  // namespace

Outcome<void> write_output(const std::string& path, std::string_view text) {
  if (path == kStdout) {
    if (const int wrong = write_all(STDOUT_FILENO, text)) {
      return fail("stdout: cannot be written: " + std::generic_category().message(wrong));
    }
    return {};
  }
  if (const int wrong = write_to(path, text)) return cannot_write(path, wrong);
  return {};
}

Outcome<void> write_output_and_say(const std::string& path, std::string_view text) {
  BL_TRY(write_output(path, text));
  if (path != kStdout) fmt::print(stderr, "wrote {}\n", path);
  return {};
}

Outcome<void> check_output(const std::string& path) {
  const int wrong = path == kStdout ? 0 : write_to(path, std::nullopt);
  if (wrong != 0) return cannot_write(path, wrong);
  return {};
}

}  // namespace beeline::tools
