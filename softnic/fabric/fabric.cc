// SPDX-License-Identifier: Apache-2.0
#include "softnic/fabric/fabric.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "softnic/fabric/build_segment.h"
#include "softnic/fabric/fabric_log.h"
#include "softnic/fabric/file_limit.h"
#include "softnic/fabric/file_lock.h"
#include "softnic/fabric/leftovers.h"
#include "softnic/spec/sysfs_tree.h"

namespace softnic {
namespace {

using beeline::fail;
using beeline::UniqueFd;

constexpr const char* kShmDir = "/dev/shm";
constexpr std::uint32_t kMaxHolders = 1024;

std::string dir_prefix() { return "softnic-" + std::to_string(::getuid()) + "-"; }

std::string because(const std::string& what) { return what + ": " + std::strerror(errno); }

beeline::Failure<std::string> no_fabric(const std::string& name) {
  if (errno != ENOENT) return fail(because("cannot open fabric '" + name + "'"));
  return fail("no fabric '" + name + "' (" + std::strerror(errno) +
              "): start one with `softnic run --name " + name + " -- COMMAND`");
}

bool is_there(const std::string& path) {
  struct stat facts = {};
  return ::lstat(path.c_str(), &facts) == 0 || errno != ENOENT;
}

bool has_sane_counts(const FabricHeader& header) {
  if (header.host_count > kMaxHosts || header.device_count > kMaxDevices) return false;
  const auto host_is_sane = [&](const HostRecord& host) {
    return host.first_device <= header.device_count &&
           host.device_count <= header.device_count - host.first_device;
  };
  const auto device_is_sane = [&](const DeviceRecord& device) {
    return device.port_count <= kMaxPorts && device.host < header.host_count;
  };
  return std::all_of(header.hosts, header.hosts + header.host_count, host_is_sane) &&
         std::all_of(header.devices, header.devices + header.device_count, device_is_sane);
}

bool is_valid_segment(const Mapping& segment) {
  const auto* header = reinterpret_cast<const FabricHeader*>(segment.base());
  return header->magic == kFabricMagic && header->layout_version == kLayoutVersion &&
         has_sane_counts(*header);
}

// Writes the segment under another name and renames it, so "fabric" exists only when complete.
beeline::Outcome<void> make_fabric(const PrivateDir& dir, const FabricSpec& spec) {
  const FileLimitIsAnError guard;
  dir.empty();
  for (const HostSpec& host : spec.hosts) {
    BL_TRY(write_sysfs_tree(host, dir.path() + "/" + host.name));
  }
  const std::string draft = dir.path() + "/fabric.new";
  const UniqueFd file = dir.open_file("fabric.new", O_CREAT | O_TRUNC);
  // Allocates the pages now: if /dev/shm is full, this fails, where a later access gets a SIGBUS.
  if (!file || ::fallocate(file.get(), 0, 0, sizeof(FabricHeader)) != 0) {
    return fail(because("cannot create " + draft));
  }
  const Mapping segment = Mapping::of_file(file.get(), sizeof(FabricHeader));
  if (!segment) return fail(because("cannot map " + draft));
  build_segment(spec, *reinterpret_cast<FabricHeader*>(segment.base()));
  if (!dir.open_file("seats", O_CREAT) || !dir.open_file("holders", O_CREAT)) {
    return fail(because("cannot create the lock files in " + dir.path()));
  }
  kill_point_here();
  if (::renameat(dir.fd(), "fabric.new", dir.fd(), "fabric") != 0) {
    return fail(because("cannot rename " + draft));
  }
  return {};
}

// If the file exists but cannot be opened (no descriptor is left), assumes that it is locked.
bool is_file_locked(const PrivateDir& dir, const char* name, std::uint32_t bytes) {
  const UniqueFd file = dir.open_file(name, 0);
  return file ? is_any_byte_locked(file.get(), 0, bytes) : errno != ENOENT;
}

// The caller holds the directory's lock.
bool has_participants_locked(const PrivateDir& dir) {
  return is_file_locked(dir, "seats", kMaxSlots) || is_file_locked(dir, "holders", kMaxHolders);
}

}  // namespace

beeline::Outcome<std::string> state_dir(const std::string& name) {
  const auto allowed = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  if (name.empty() || name.size() > 40 || !std::all_of(name.begin(), name.end(), allowed)) {
    return fail("'" + name + "' is not a fabric name: use 1 to 40 letters, digits, '-', '_', '.'");
  }
  return std::string(kShmDir) + "/" + dir_prefix() + name;
}

std::vector<std::string> list_fabrics() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(kShmDir, ignored)) {
    const std::string file = entry.path().filename().string();
    if (file.starts_with(dir_prefix()) && PrivateDir::open(entry.path().string())) {
      names.push_back(file.substr(dir_prefix().size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

beeline::Outcome<DirLock> DirLock::take(const std::string& dir, Missing missing) {
  for (;;) {
    if (missing == Missing::kMake && ::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
      return fail(because("cannot create " + dir));
    }
    auto opened = PrivateDir::open(dir);
    if (!opened) {
      if (missing == Missing::kMake && !is_there(dir)) continue;  // removed since the mkdir
      return fail(opened.error());
    }
    while (::flock(opened->fd(), LOCK_EX) != 0) {
      if (errno != EINTR) return fail(because("cannot lock " + dir));
    }
    // If the directory was removed while this call waited, the lock protects nothing.
    if (opened->has_name()) return DirLock(*std::move(opened));
    if (missing == Missing::kFail) return fail(dir + " was removed");
  }
}

DirLock::~DirLock() {
  if (dir_.fd() >= 0) ::flock(dir_.fd(), LOCK_UN);
}

Fabric::Fabric(std::string name, PrivateDir files, Mapping segment, UniqueFd seats) noexcept
    : name_(std::move(name)),
      files_(std::move(files)),
      segment_(std::move(segment)),
      seats_(std::move(seats)) {}

beeline::Outcome<Fabric> Fabric::open(const std::string& name) {
  const std::string path = BL_TRY(state_dir(name));
  if (!is_there(path)) return no_fabric(name);
  PrivateDir dir = BL_TRY(PrivateDir::open(path));
  const UniqueFd file = dir.open_file("fabric", 0);
  if (!file) return no_fabric(name);
  struct stat facts = {};
  Mapping segment = ::fstat(file.get(), &facts) == 0 && facts.st_size == sizeof(FabricHeader)
                        ? Mapping::of_file(file.get(), sizeof(FabricHeader))
                        : Mapping();
  if (!segment || !is_valid_segment(segment)) {
    return fail("fabric '" + name +
                "' was created by another version of softnic: end its processes");
  }
  UniqueFd seats = dir.open_file("seats", 0);
  if (!seats) return fail(because("cannot open " + path + "/seats"));
  return Fabric(name, std::move(dir), std::move(segment), std::move(seats));
}

std::optional<std::uint32_t> Fabric::find_host(const std::string& name) const {
  for (std::uint32_t host = 0; host < header().host_count; ++host) {
    if (name == header().hosts[host].name) return host;
  }
  return std::nullopt;
}

bool Fabric::is_slot_alive(std::uint32_t slot) const {
  return header().slots[slot].epoch.load() != 0 && is_byte_locked(seats_.get(), slot);
}

bool Fabric::is_seat_alive(std::uint32_t seat) const {
  const std::uint32_t slot = seat % kMaxSlots;
  return seat_word(slot, header().slots[slot].epoch.load()) == seat && is_slot_alive(slot);
}

Holder::Holder(Fabric fabric, UniqueFd holders) noexcept
    : fabric_(std::move(fabric)), holders_(std::move(holders)) {}

beeline::Outcome<Holder> Holder::hold(const std::string& name, const FabricSpec* spec) {
  const std::string dir = BL_TRY(state_dir(name));
  const DirLock lock = BL_TRY(DirLock::take(dir, DirLock::Missing::kMake));
  const bool alive = has_participants_locked(lock.dir());
  if (alive && spec != nullptr) {
    return fail("fabric '" + name + "' is in use: a fabric file applies only to a new fabric; " +
                "leave out the file, choose another --name, or end its processes (`softnic ls`)");
  }
  if (!alive) {
    FabricSpec made = spec != nullptr ? *spec : default_fabric();
    complete(made);
    const auto done = make_fabric(lock.dir(), made);
    if (!done) {
      lock.dir().empty();
      ::rmdir(dir.c_str());
      return fail(done.error());
    }
  }
  Fabric fabric = BL_TRY(Fabric::open(name));
  if (!alive) log_fabric(fabric, "the fabric was created");
  UniqueFd holders = fabric.files().open_file("holders", 0);
  for (std::uint32_t byte = 0; holders && byte < kMaxHolders; ++byte) {
    if (try_lock_byte(holders.get(), byte)) return Holder(std::move(fabric), std::move(holders));
  }
  return fail(because("cannot lock a byte of the file holders in " + dir));
}

Holder::~Holder() {
  if (!fabric_) return;
  const std::string name = fabric_->name();
  fabric_.reset();
  holders_.reset();
  clean_up_fabric(name);
}

bool clean_up_fabric(const std::string& name) {
  const auto dir = state_dir(name);
  if (!dir) return false;
  const auto lock = DirLock::take(*dir, DirLock::Missing::kFail);
  if (!lock) return !is_there(*dir);
  if (has_participants_locked(lock->dir())) {
    const auto fabric = Fabric::open(name);
    if (fabric) remove_leftovers(*fabric);
    return false;
  }
  lock->dir().empty();
  return ::rmdir(dir->c_str()) == 0;
}

Participants find_participants(const Fabric& fabric) {
  Participants participants;
  const UniqueFd holders = fabric.files().open_file("holders", 0);
  for (std::uint32_t byte = 0; holders && byte < kMaxHolders; ++byte) {
    if (is_byte_locked(holders.get(), byte)) ++participants.holders;
  }
  for (std::uint32_t slot = 0; slot < kMaxSlots; ++slot) {
    if (fabric.is_slot_alive(slot)) participants.slots.push_back(slot);
  }
  return participants;
}

}  // namespace softnic
