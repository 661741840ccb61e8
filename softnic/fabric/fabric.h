// SPDX-License-Identifier: Apache-2.0
// Creates, opens and removes fabrics. A fabric is a directory, /dev/shm/softnic-UID-NAME:
//   fabric          the shared segment (layout.h); complete as soon as it has this name
//   holders, seats  lock files, in which every process locks one byte as long as it lives
//   arena.SLOT      queues and memory keys of the process in that slot (arena.h)
//   ev.DEV.SLOT.N   a named pipe for the asynchronous events of one open device (events.h)
//   log             a line for each command and event (fabric_log.h)
//   HOST/           the sysfs tree of the host (spec/sysfs_tree.h)
// The last process to leave removes the directory. A process that joins removes the files of dead
// processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fd.h"
#include "common/base/problem.h"
#include "softnic/fabric/layout.h"
#include "softnic/fabric/mapping.h"
#include "softnic/fabric/private_dir.h"

namespace softnic {

// The directory of fabric NAME of this user. Names are letters, digits, '-', '_' and '.'.
beeline::Outcome<std::string> state_dir(const std::string& name);

// The names of this user's fabrics, including those whose processes are all dead.
std::vector<std::string> list_fabrics();

// An open fabric with its mapped segment.
class Fabric {
 public:
  static beeline::Outcome<Fabric> open(const std::string& name);

  FabricHeader& header() const noexcept {
    return *reinterpret_cast<FabricHeader*>(segment_.base());
  }
  const std::string& name() const noexcept { return name_; }
  const std::string& dir() const noexcept { return files_.path(); }
  // softnic opens, creates and removes the files of a fabric only through this directory.
  const PrivateDir& files() const noexcept { return files_; }
  // sysfs_root() is the path that programs get as a setting. softnic writes to sysfs_files().
  std::string sysfs_root(const std::string& host) const { return dir() + "/" + host; }
  std::string sysfs_files(const std::string& host) const { return files_.proc_path() + "/" + host; }
  std::optional<std::uint32_t> find_host(const std::string& name) const;
  // Whether a process holds the lock of the slot. The system call takes a quarter of a microsecond.
  bool is_slot_alive(std::uint32_t slot) const;
  bool is_seat_alive(std::uint32_t seat) const;  // false also if another process has the slot now

 private:
  Fabric(std::string name, PrivateDir files, Mapping segment, beeline::UniqueFd seats) noexcept;
  std::string name_;
  PrivateDir files_;
  Mapping segment_;
  beeline::UniqueFd seats_;  // for queries only; no lock is taken through it
};

// Keeps a fabric alive without using its devices, as `softnic run` and the test fixtures do. The
// first holder creates the fabric. The destructor removes files of dead processes and, if no
// process is left, the fabric.
class Holder {
 public:
  // With a spec, fails if a live fabric has this name. Without one, joins an existing fabric or
  // creates one from default_fabric().
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

// Removes the files of dead processes, and the fabric itself if no process is left. Returns true if
// the fabric is gone.
bool clean_up_fabric(const std::string& name);

// The lock of a fabric's directory. It is held while a fabric is created or removed and while a
// seat is taken. The kernel releases it if the process dies.
class DirLock {
 public:
  // Opens and locks the directory. If it does not exist, creates it or fails, as `missing` says.
  enum class Missing { kFail, kMake };
  static beeline::Outcome<DirLock> take(const std::string& dir, Missing missing);

  const PrivateDir& dir() const noexcept { return dir_; }

  DirLock(DirLock&&) noexcept = default;
  DirLock& operator=(DirLock&&) = delete;
  ~DirLock();  // unlocks explicitly, because a forked child may have a copy of the descriptor

 private:
  explicit DirLock(PrivateDir dir) noexcept : dir_(std::move(dir)) {}
  PrivateDir dir_;
};

struct Participants {
  std::uint32_t holders = 0;
  std::vector<std::uint32_t> slots;  // of live processes
};
Participants find_participants(const Fabric& fabric);

}  // namespace softnic
