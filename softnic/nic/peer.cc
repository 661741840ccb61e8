// SPDX-License-Identifier: Apache-2.0
// There are two ways to copy. A file of the process's memory (/proc/PID/mem) is faster for a few
// bytes, and always refers to the same process. process_vm_writev is faster from a few KiB on, but
// takes a PID, which may be reused.
//
// The calls are made by syscall(2). They stand for accesses of a device; sanitizers intercept the
// library's functions and would treat them as accesses of the thread.
#include "softnic/nic/peer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>

#include "common/base/clock.h"

namespace softnic {
namespace {

constexpr std::size_t kSmallCopy = 3072;  // both ways take the same time here (measured)
// A PID is not reused within this time.
constexpr std::int64_t kTrustPidNs = 20 * beeline::kNsPerMs;

Peer::Copied verdict(long moved, std::size_t bytes) {
  if (moved == static_cast<long>(bytes)) return Peer::Copied::kDone;
  if (moved == 0 || (moved < 0 && errno == ESRCH)) return Peer::Copied::kGone;
  return Peer::Copied::kFault;
}

// Without this message, it would look like a peer that does not respond.
void explain_no_access(pid_t pid) {
  static std::once_flag explained;
  std::call_once(explained, [pid] {
    std::fprintf(stderr,
                 "softnic: cannot access the memory of process %d: the programs of a fabric must "
                 "run as one user, "
                 "without a seccomp filter or ptrace restriction between them "
                 "(kernel.yama.ptrace_scope at most 1)\n",
                 static_cast<int>(pid));
  });
}

}  // namespace

std::shared_ptr<Peer> Peer::open(const Fabric& fabric, std::uint32_t slot) {
  const SlotRecord& record = fabric.header().slots[slot];
  const std::uint64_t epoch = record.epoch.load();
  if (epoch == 0) return nullptr;
  const pid_t pid = static_cast<pid_t>(record.pid.load());
  const beeline::UniqueFd file = fabric.files().open_file("arena." + std::to_string(slot), 0);
  if (!file) return nullptr;
  struct stat facts = {};
  if (::fstat(file.get(), &facts) != 0 || facts.st_size != static_cast<off_t>(kArenaBytes)) {
    return nullptr;  // it is being created
  }
  Mapping mapping = Mapping::of_file(file.get(), kArenaBytes);
  if (!mapping) return nullptr;
  const std::string memory_path = "/proc/" + std::to_string(pid) + "/mem";
  beeline::UniqueFd memory(::open(memory_path.c_str(), O_RDWR | O_CLOEXEC));
  if (!memory) {
    if (errno != EACCES && errno != EPERM) return nullptr;
    explain_no_access(pid);
  }
  auto peer = std::make_shared<Peer>(fabric, slot, epoch, std::move(mapping), std::move(memory));
  // Another process may have taken the slot while the files were opened.
  if (peer->arena().header().epoch != epoch || !peer->is_alive()) return nullptr;
  return peer;
}

Peer::Peer(const Fabric& fabric, std::uint32_t slot, std::uint64_t epoch, Mapping arena,
           beeline::UniqueFd memory)
    : fabric_(fabric),
      slot_(slot),
      epoch_(epoch),
      pid_(static_cast<pid_t>(fabric.header().slots[slot].pid.load())),
      mapping_(std::move(arena)),
      arena_(mapping_.base()),
      memory_(std::move(memory)) {}

bool Peer::is_same_process() {
  const std::int64_t now = beeline::now_ns();
  if (now - checked_at_ns_.load(std::memory_order_relaxed) < kTrustPidNs) return true;
  if (!is_alive()) return false;
  checked_at_ns_.store(now, std::memory_order_relaxed);
  return true;
}

Peer::Copied Peer::write(const iovec* ours, std::size_t our_count, const iovec* theirs,
                         std::size_t their_count, std::size_t bytes) {
  kill_point_here();
  if (!memory_) return Copied::kGone;
  if (bytes <= kSmallCopy && our_count == 1 && their_count == 1) {
    const auto offset = reinterpret_cast<off_t>(theirs->iov_base);
    return verdict(::syscall(SYS_pwrite64, memory_.get(), ours->iov_base, bytes, offset), bytes);
  }
  if (!is_same_process()) return Copied::kGone;
  return verdict(::syscall(SYS_process_vm_writev, pid_, ours, our_count, theirs, their_count, 0UL),
                 bytes);
}

Peer::Copied Peer::read(const iovec* ours, std::size_t our_count, const iovec* theirs,
                        std::size_t their_count, std::size_t bytes) {
  if (!memory_) return Copied::kGone;
  if (bytes <= kSmallCopy && our_count == 1 && their_count == 1) {
    const auto offset = reinterpret_cast<off_t>(theirs->iov_base);
    return verdict(::syscall(SYS_pread64, memory_.get(), ours->iov_base, bytes, offset), bytes);
  }
  if (!is_same_process()) return Copied::kGone;
  return verdict(::syscall(SYS_process_vm_readv, pid_, ours, our_count, theirs, their_count, 0UL),
                 bytes);
}

}  // namespace softnic
