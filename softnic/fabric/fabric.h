// SPDX-License-Identifier: Apache-2.0
// Making, joining and leaving a fabric. A fabric is a directory, /dev/shm/softnic-UID-NAME:
//   fabric          the shared segment (layout.h), complete as soon as it exists
//   holders, seats  lock files: a process holds a byte of them as long as it lives
//   arena.SLOT      what the process in that slot owns (arena.h)
//   ev.DEV.SLOT.N   a FIFO: asynchronous events of one open device (events.h)
//   log             what happened, one line each (fabric_log.h)
//   HOST/           the host's sysfs root (spec/sysfs_tree.h)
// Whoever leaves last removes the directory; whoever comes first clears what the dead left behind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/problem.h"
#include "softnic/fabric/layout.h"
#include "softnic/fabric/mapping.h"
#include "softnic/fabric/own_dir.h"

namespace softnic {

// The directory of fabric NAME of this user. Names are letters, digits, '-', '_' and '.'.
beeline::Outcome<std::string> state_dir(const std::string& name);

// The names of this user's fabrics, dead ones included.
std::vector<std::string> list_fabrics();

// The mapped segment. Move-only.
class Fabric {
 public:
  static beeline::Outcome<Fabric> open(const std::string& name);

  FabricHeader& header() const noexcept {
    return *reinterpret_cast<FabricHeader*>(segment_.base());
  }
  const std::string& name() const noexcept { return name_; }
  const std::string& dir() const noexcept { return files_.path(); }
  // All softnic code that opens, creates or removes a file of the fabric does it through this.
  const OwnDir& files() const noexcept { return files_; }
  // The first is for programs that get the path as a setting, the second for softnic code that
  // writes there.
  std::string sysfs_root(const std::string& host) const { return dir() + "/" + host; }
  std::string sysfs_files(const std::string& host) const { return files_.proc_path() + "/" + host; }
  std::optional<std::uint32_t> find_host(const std::string& name) const;
  bool slot_alive(std::uint32_t slot) const;  // asks the kernel: a quarter of a microsecond
  bool seat_alive(std::uint32_t seat) const;  // the same, for that owner of the slot only

 private:
  Fabric(std::string name, OwnDir files, Mapping segment, beeline::UniqueFd seats) noexcept;
  std::string name_;
  OwnDir files_;
  Mapping segment_;
  beeline::UniqueFd seats_;  // to ask who is alive; nobody's seat is locked through it
};

// Keeps a fabric in being without taking part in it: what `softnic run` and the test fixtures are.
// Lifecycle: the first holder makes the fabric; each holder's end clears away dead processes' files
// and, when nobody is left, the fabric.
class Holder {
 public:
  // With a spec the fabric must not exist yet or be dead; without one an existing fabric is joined
  // and a missing one is made from default_fabric().
  static beeline::Outcome<Holder> hold(const std::string& name, const FabricSpec* spec);

  Holder(Holder&& other) noexcept = default;
  Holder& operator=(Holder&& other) noexcept = delete;
  ~Holder();

  const Fabric& fabric() const noexcept { return *fabric_; }

 private:
  Holder(Fabric fabric, beeline::UniqueFd holders) noexcept;
  std::optional<Fabric> fabric_;  // empty once moved from
  beeline::UniqueFd holders_;
};

// Removes what dead processes left in the fabric; removes the fabric if nobody is left at all.
// Returns true if the fabric is gone.
bool sweep(const std::string& name);

// Held while a fabric is made, a seat taken or a fabric removed. Released by the kernel if we die.
class DirLock {
 public:
  // Opens and locks the directory; makes it first if asked to. Fails if there is none.
  enum class Missing { kFail, kMake };
  static beeline::Outcome<DirLock> take(const std::string& dir, Missing missing);

  const OwnDir& dir() const noexcept { return dir_; }

  DirLock(DirLock&&) noexcept = default;
  DirLock& operator=(DirLock&&) = delete;
  ~DirLock();  // unlocks by name: a child forked meanwhile has a copy of the descriptor

 private:
  explicit DirLock(OwnDir dir) noexcept : dir_(std::move(dir)) {}
  OwnDir dir_;
};

struct Census {
  std::uint32_t holders = 0;
  std::vector<std::uint32_t> slots;  // the living ones
};
Census take_census(const Fabric& fabric);

}  // namespace softnic
