// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/recorded_host.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "common/base/whole_file.h"
#include "tools/cli/shallow_json.h"
#include "tools/doctor/record.h"

namespace beeline::doctor {

namespace fs = std::filesystem;

// Memory is much faster than a disk for a thousand small files that are soon removed.
std::string parent_of_temporary_folders() {
  constexpr const char* kInMemory = "/dev/shm";
  const bool is_chosen = std::getenv("TMPDIR") != nullptr;  // NOLINT(concurrency-mt-unsafe)
  if (!is_chosen && ::access(kInMemory, W_OK | X_OK) == 0) return kInMemory;
  std::error_code error;
  return fs::temp_directory_path(error).string();
}

// Lifecycle: removes the folder with all that is in it.
class TemporaryFolder {
 public:
  static Outcome<std::unique_ptr<TemporaryFolder>> make() {
    std::string path = parent_of_temporary_folders() + "/beeline-doctor-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      return fail(
          fmt::format("{}: a temporary folder cannot be made: {}; set TMPDIR to a folder where "
                      "you may write",
                      path, std::generic_category().message(errno)));
    }
    return std::make_unique<TemporaryFolder>(std::move(path));
  }
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

namespace {

using checks::Tree;
using Json = nlohmann::ordered_json;

constexpr int kMostDeep = 40;

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2) {
    bytes += static_cast<char>(std::strtoul(hex.substr(at, 2).c_str(), nullptr, 16));
  }
  return bytes;
}

// A name that stays in its folder.
bool is_name(const std::string& text) noexcept {
  return !text.empty() && text != "." && text != ".." && text.find('/') == std::string::npos &&
         text.find('\0') == std::string::npos;
}

// Writes the document below a folder. Files are written before links, which might otherwise lead
// out of it.
class Unpacker {
 public:
  explicit Unpacker(std::string root) : root_(std::move(root)), tree_(root_) {}

  Outcome<Tree> unpack(const Json& document) {
    BL_TRY(unpack_folder(document, "", 0));
    for (const auto& [path, target] : links_) {
      std::error_code error;
      fs::create_symlink(target, root_ + path, error);
      if (error) return fail(fmt::format("{} cannot be made: {}", path, error.message()));
    }
    return std::move(tree_);
  }

 private:
  // NOLINTNEXTLINE(misc-no-recursion): the depth is limited
  Outcome<void> unpack_folder(const Json& folder, const std::string& path, int depth) {
    if (depth > kMostDeep) return fail(fmt::format("{} is too deep", path));
    std::error_code error;
    fs::create_directories(root_ + path, error);
    if (error) return fail(fmt::format("{} cannot be made: {}", path, error.message()));
    for (const auto& [name, value] : folder.items()) {
      if (!is_name(name)) return fail(fmt::format("'{}' in {} is not a name", name, path));
      BL_TRY(unpack_entry(value, checks::below(path, name), depth + 1));
    }
    return {};
  }

  // NOLINTNEXTLINE(misc-no-recursion): the depth is limited
  Outcome<void> unpack_entry(const Json& value, const std::string& path, int depth) {
    if (value.is_string()) return write(path, value.get<std::string>());
    if (!value.is_object()) return fail(fmt::format("{} is neither a text nor an object", path));
    const auto text_of = [&value](const char* name) {
      const auto found = value.find(name);
      return found != value.end() && found->is_string() ? found->get<std::string>() : "";
    };
    if (value.contains("@link")) {
      return add_link(path, text_of("@link"));
    }
    if (value.contains("@hex")) return write(path, bytes_of(text_of("@hex")));
    if (value.contains("@error")) {
      tree_.refuse(path, text_of("@error") == "EACCES" ? EACCES : EIO);
      return write(path, "");
    }
    return unpack_folder(value, path, depth);
  }

  // The kernel's links are relative.
  Outcome<void> add_link(const std::string& path, const std::string& target) {
    const fs::path inside = fs::path(path.substr(1)).parent_path();
    if (target.empty() || target.starts_with('/') ||
        (inside / target).lexically_normal().string().starts_with("..")) {
      return fail(fmt::format("{} is a link that leads out of the record", path));
    }
    links_.emplace_back(path, target);
    return {};
  }

  Outcome<void> write(const std::string& path, const std::string& text) {
    std::ofstream file(root_ + path, std::ios::binary);
    file << text;
    file.close();
    if (!file) return fail(fmt::format("{} cannot be written into {}", path, root_));
    return {};
  }

  std::string root_;
  Tree tree_;
  std::vector<std::pair<std::string, std::string>> links_;
};

Outcome<RecordedHost> unpack_file(const std::string& path) {
  const std::string text = BL_TRY(read_whole_file(path));
  // Deeper ones than an Unpacker takes are not made at all: each level takes 80 bytes of memory.
  const Json document = Json::parse(text, tools::AtMostDeep{kMostDeep + 2}, false);
  if (!document.is_object()) {
    return fail(
        fmt::format("{}: it is no record of a host; make one with beeline doctor "
                    "--record FILE",
                    path));
  }
  auto folder = BL_TRY(TemporaryFolder::make());
  Outcome<Tree> tree = Unpacker(folder->path()).unpack(document);
  if (!tree) return fail(fmt::format("{}: {}", path, tree.error().text));
  return RecordedHost(*std::move(tree), std::move(folder));
}

}  // namespace

RecordedHost::RecordedHost(Tree tree, std::unique_ptr<TemporaryFolder> folder)
    : tree_(std::move(tree)), folder_(std::move(folder)) {}
RecordedHost::RecordedHost(RecordedHost&&) noexcept = default;
RecordedHost& RecordedHost::operator=(RecordedHost&&) noexcept = default;
RecordedHost::~RecordedHost() = default;

Environ RecordedHost::environ() const {
  const std::vector<std::string> lines = tree_.lines(kEnvironment);
  return Environ({lines.begin(), lines.end()});
}

Outcome<RecordedHost> open_recorded_host(const std::string& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) {
    return fail(
        fmt::format("{}: {}; name a file that beeline doctor --record has made, or "
                    "a folder that takes the place of /",
                    path, std::generic_category().message(errno)));
  }
  if (!S_ISDIR(found.st_mode)) return unpack_file(path);
  Tree tree(path);
  if (!tree.has("/sys") && !tree.has("/proc")) {
    return fail(
        fmt::format("{}: there is neither sys nor proc in it; name a folder that "
                    "takes the place of /",
                    path));
  }
  return RecordedHost(std::move(tree), nullptr);
}

}  // namespace beeline::doctor
