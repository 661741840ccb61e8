// SPDX-License-Identifier: Apache-2.0
//
// A recorded host, as a tree of files: the contents of a record in a temporary folder, or a folder
// that the user names.
#pragma once

#include <memory>
#include <string>

#include "plugin/checks/tree.h"
#include "plugin/config/environ.h"
#include "tools/cli/exit_status.h"

namespace beeline::doctor {

class TemporaryFolder;

class RecordedHost {
 public:
  RecordedHost(checks::Tree tree, std::unique_ptr<TemporaryFolder> folder);
  RecordedHost(RecordedHost&&) noexcept;
  RecordedHost& operator=(RecordedHost&&) noexcept;
  ~RecordedHost();

  const checks::Tree& tree() const noexcept { return tree_; }
  // That of the recorded process.
  Environ environ() const;

 private:
  checks::Tree tree_;
  std::unique_ptr<TemporaryFolder> folder_;  // null: the folder is the user's
};

// The error names the file, the cause and the fix.
Outcome<RecordedHost> open_recorded_host(const std::string& path);

}  // namespace beeline::doctor
