// SPDX-License-Identifier: Apache-2.0
//
// Stands in for NCCL in the tests of nccl_ranks: a communicator is memory that the ranks share, and
// an all-reduce adds up what they put there. It logs what NCCL logs, and FAKE_NCCL makes it break
// in one way, in the last rank:
//   corrupt  one element of a large all-reduce is off by one
//   swap     two neighbours change places
//   stale    nothing is written
//   overrun  a byte past the end is written
//   refuse   ncclAllReduce returns an error
//   async    the running all-reduce fails
//   hang     ncclAllReduce never returns
//   crash    the process dies in ncclAllReduce
//   socket   another network is used       silent   no network is named
//   builtin  no plugin is loaded           nolog    there is no log
//   proto    another protocol is used      warn     NCCL warns of something
//   die      the process dies in the first call
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInternalError = 3;
constexpr int kRemoteError = 6;
constexpr int kUint8 = 1;
constexpr int kInt32 = 2;

constexpr size_t kMostRanks = 16;
constexpr size_t kMostBytes = size_t{1} << 26;

// In a memfd: sparse, and gone with its users.
struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> turn;
  unsigned char data[kMostRanks][kMostBytes];
};

struct Comm {
  Shared* shared;
  int rank;
  int ranks;
};

bool is_told(std::string_view wanted) {
  const char* const told = std::getenv("FAKE_NCCL");
  return told != nullptr && wanted == told;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void log(const std::string& text) {
  if (is_told("nolog")) return;
  std::FILE* const file = std::fopen(variable("NCCL_DEBUG_FILE").c_str(), "a");
  if (file == nullptr) return;
  std::fprintf(file, "host:%d:%d [0] NCCL %s\n", getpid(), getpid(), text.c_str());
  std::fclose(file);
}

void log_network() {
  const std::string net = variable("NCCL_NET");
  if (variable("NCCL_NET_PLUGIN") != "none" && !is_told("builtin")) {
    log("INFO NET/Plugin: Loaded net plugin " + net + " (v11)");
  }
  if (is_told("warn")) log("WARN the weather");
  if (!is_told("silent")) log("INFO Using network " + (is_told("socket") ? "Socket" : net));
}

void log_proto(size_t bytes) {
  const std::string proto = is_told("proto") ? "SIMPLE" : variable("NCCL_PROTO");
  log("INFO AllReduce: " + std::to_string(bytes) + " Bytes -> Algo RING proto " + proto +
      " channel{Lo..Hi}={0..0}");
}

void meet(const Comm& comm) {
  const int turn = comm.shared->turn.load();
  if (comm.shared->arrived.fetch_add(1) + 1 == comm.ranks) {
    comm.shared->arrived.store(0);
    comm.shared->turn.store(turn + 1);
    return;
  }
  while (comm.shared->turn.load() == turn) sched_yield();
}

template <class T>
void add_up(const Comm& comm, void* to, size_t count) {
  std::vector<T> sums(count, T{0});
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const void* const data = comm.shared->data[rank];
    const auto* const theirs = static_cast<const T*>(data);
    for (size_t i = 0; i < count; ++i) sums[i] = static_cast<T>(sums[i] + theirs[i]);
  }
  const bool is_last = comm.rank + 1 == comm.ranks;
  if (is_last && count > 1000) {
    if (is_told("corrupt")) sums[count / 2] = static_cast<T>(sums[count / 2] + 1);
    if (is_told("swap")) std::swap(sums[count / 2], sums[count / 2 + 1]);
    if (is_told("stale")) return;
  }
  std::memcpy(to, sums.data(), count * sizeof(T));
  if (is_last && is_told("overrun")) static_cast<unsigned char*>(to)[count * sizeof(T)] = 0;
}

// What happens instead of an all-reduce.
int break_down(const Comm& comm) {
  if (comm.rank + 1 != comm.ranks) return kSuccess;
  if (is_told("refuse")) return kInternalError;
  if (is_told("crash")) std::raise(SIGKILL);
  while (is_told("hang")) pause();
  return kSuccess;
}

}  // namespace

// The names are NCCL's; enums are ints here.
extern "C" {

struct FakeUniqueId {
  std::array<char, 128> bytes;
};

int ncclGetVersion(int* version) {
  if (is_told("die")) std::raise(SIGKILL);
  *version = 22809;
  return kSuccess;
}

const char* ncclGetErrorString(int result) {
  return result == kInternalError ? "internal error" : "some error";
}

const char* ncclGetLastError(void*) { return "the fake broke on purpose"; }

int ncclGetUniqueId(FakeUniqueId* id) {
  const int fd = memfd_create("fake-nccl", 0);
  if (fd < 0 || ftruncate(fd, sizeof(Shared)) != 0) return kSystemError;
  std::snprintf(id->bytes.data(), id->bytes.size(), "/proc/%d/fd/%d", getpid(), fd);
  return kSuccess;
}

int ncclCommInitRank(void** comm, int ranks, FakeUniqueId id, int rank) {
  const int fd = open(id.bytes.data(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return kSystemError;
  auto* const made = new Comm{static_cast<Shared*>(memory), rank, ranks};
  log_network();
  meet(*made);
  *comm = made;
  return kSuccess;
}

int ncclCommGetAsyncError(void*, int* result) {
  *result = is_told("async") ? kRemoteError : kSuccess;
  return kSuccess;
}

int ncclAllReduce(const void* from, void* to, size_t count, int type, int, void* handle, void*) {
  const Comm& comm = *static_cast<Comm*>(handle);
  const size_t bytes = type == kUint8 ? count : 4 * count;
  log_proto(bytes);
  if (is_told("async")) return kSuccess;
  if (const int broken = break_down(comm); broken != kSuccess) return broken;
  std::memcpy(comm.shared->data[comm.rank], from, bytes);
  meet(comm);
  if (type == kUint8) {
    add_up<std::uint8_t>(comm, to, count);
  } else if (type == kInt32) {
    add_up<std::int32_t>(comm, to, count);
  } else {
    add_up<float>(comm, to, count);
  }
  meet(comm);
  return kSuccess;
}

int ncclCommDestroy(void* handle) {
  delete static_cast<Comm*>(handle);
  return kSuccess;
}

}  // extern "C"
