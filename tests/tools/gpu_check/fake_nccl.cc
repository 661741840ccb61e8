// SPDX-License-Identifier: Apache-2.0
//
// A fake NCCL for the tests of nccl_ranks. A communicator is memory that the ranks share, through
// which operations exchange data. It writes NCCL's log lines. FAKE_NCCL injects one fault, in the
// last rank:
//
//   corrupt   one element of a large result is wrong
//   stale     nothing is written
//   overrun   a byte past the end is written
//   underrun  a byte before the start is written
//   refuse    ncclAllReduce returns an error
//   async     the running operation fails
//   hang      ncclAllReduce never returns
//   crash     the process dies in ncclAllReduce
//   socket    another network is used
//   silent    no network is named
//   proto     another protocol is used
//   warn      NCCL warns of something
//   staged    GPUDirect is not used
//   direct    GPUDirect is used on one connection, though it is not wanted
//   noflush   no flush is asked for
//   noreg     no GPU memory is registered
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "include/nccl/net_v11.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kSystemError = 2;
constexpr int kInternalError = 3;
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;
constexpr int kUint8 = 1;
constexpr int kInt32 = 2;

constexpr size_t kMostRanks = 16;
constexpr size_t kMostBytes = size_t{1} << 26;

// In a memfd, which is sparse and is freed when its users have exited.
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
  std::FILE* const file = std::fopen(variable("NCCL_DEBUG_FILE").c_str(), "a");
  if (file == nullptr) return;
  std::fprintf(file, "host:%d:%d [0] NCCL %s\n", getpid(), getpid(), text.c_str());
  std::fclose(file);
}

bool is_direct() { return variable("NCCL_NET_GDR_LEVEL") == "SYS"; }

void log_paths(const std::string& net) {
  const std::string path = "INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/" + net + "/0";
  log(path + (is_direct() && !is_told("staged") ? "/GDRDMA(PCI)" : ""));
  log(path + (is_direct() || is_told("direct") ? "/GDRDMA/Shared" : "/Shared"));
}

// Returns null if NCCL_NET_PLUGIN is "none" or no plugin.
const ncclNet_v11_t* plugin_table() {
  static void* const plugin = dlopen(variable("NCCL_NET_PLUGIN").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) return nullptr;
  return static_cast<ncclNet_v11_t*>(dlsym(plugin, "ncclNetPlugin_v11"));
}

// The plugin refuses these two calls, since there is no comm, but the witness counts them.
void register_memory() {
  const ncclNet_v11_t* const table = plugin_table();
  void* handle = nullptr;
  if (table == nullptr || !is_direct() || is_told("noreg")) return;
  table->regMrDmaBuf(nullptr, nullptr, 0, NCCL_PTR_CUDA, 0, -1, &handle);
}

void flush() {
  if (!is_direct() || variable("NCCL_NET_FORCE_FLUSH") != "1" || is_told("noflush")) return;
  const ncclNet_v11_t* const table = plugin_table();
  void* request = nullptr;
  if (table != nullptr) table->iflush(nullptr, 0, nullptr, nullptr, nullptr, &request);
}

// NCCL's own InfiniBand code looks each device up in the real /sys. It would also choose a GID by
// files there.
bool lacks_device() {
  if (variable("NCCL_NET") != "IB" || variable("SOFTNIC_FABRIC").empty()) return false;
  const char* const place = "/sys/class/infiniband/softnic0/device";
  std::array<char, PATH_MAX> path;
  if (realpath(place, path.data()) != nullptr) return variable("NCCL_IB_GID_INDEX").empty();
  log(std::string("WARN Could not find real path of softnic0 (") + place + ")");
  return true;
}

void log_network() {
  const std::string net = variable("NCCL_NET");
  if (variable("NCCL_NET_PLUGIN") != "none") {
    log("INFO NET/Plugin: Loaded net plugin " + net + " (v11)");
  }
  log("INFO NCCL version 2.28.9+cuda13.0");
  if (is_told("warn")) log("WARN the weather");
  log_paths(net);
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
void add_up(const Comm& comm, size_t offset, unsigned char* to, size_t bytes) {
  const size_t count = bytes / sizeof(T);
  std::vector<T> sums(count, T{0});
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const void* const data = comm.shared->data[rank] + offset;
    const auto* const theirs = static_cast<const T*>(data);
    for (size_t i = 0; i < count; ++i) sums[i] = static_cast<T>(sums[i] + theirs[i]);
  }
  std::memcpy(to, sums.data(), bytes);
}

void add_up(const Comm& comm, size_t offset, int type, unsigned char* to, size_t bytes) {
  if (type == kUint8) {
    add_up<std::uint8_t>(comm, offset, to, bytes);
  } else if (type == kInt32) {
    add_up<std::int32_t>(comm, offset, to, bytes);
  } else {
    add_up<float>(comm, offset, to, bytes);
  }
}

size_t bytes_of(size_t count, int type) { return type == kUint8 ? count : 4 * count; }

// Writes a result, with the injected fault.
void deliver(const Comm& comm, int type, std::vector<unsigned char> result, void* to) {
  const bool is_last = comm.rank + 1 == comm.ranks;
  const size_t element = bytes_of(1, type);
  const size_t count = result.size() / element;
  if (is_last && count > 1000) {
    if (is_told("stale")) return;
    if (is_told("corrupt")) result[count / 2 * element] ^= 1;
  }
  auto* const bytes = static_cast<unsigned char*>(to);
  std::memcpy(bytes, result.data(), result.size());
  if (is_last && is_told("overrun")) bytes[result.size()] = 0;
  if (is_last && is_told("underrun")) bytes[-1] = 0;
}

// A send or receive of the open group.
struct Message {
  const void* from;
  void* to;
  size_t bytes;
  int type;
  int peer;
  Comm* comm;
};
std::vector<Message> group;
int open_groups = 0;

void run_group() {
  if (group.empty()) return;
  const Comm& comm = *group.front().comm;
  const size_t room = kMostBytes / static_cast<size_t>(comm.ranks);  // for each peer
  for (const Message& one : group) {
    if (one.to != nullptr) continue;
    std::memcpy(comm.shared->data[comm.rank] + static_cast<size_t>(one.peer) * room, one.from,
                one.bytes);
  }
  meet(comm);
  for (const Message& one : group) {
    if (one.to == nullptr) continue;
    const unsigned char* const data =
        comm.shared->data[one.peer] + static_cast<size_t>(comm.rank) * room;
    deliver(comm, one.type, {data, data + one.bytes}, one.to);
  }
  meet(comm);
  group.clear();
}

// In place, the smaller buffer must be the rank's own block of the larger.
bool overlap_wrongly(const Comm& comm, const void* whole, const void* block, size_t bytes) {
  const auto* const start = static_cast<const unsigned char*>(whole);
  const auto* const mine = static_cast<const unsigned char*>(block);
  if (mine + bytes <= start || mine >= start + bytes * static_cast<size_t>(comm.ranks))
    return false;
  return mine != start + bytes * static_cast<size_t>(comm.rank);
}

// Injects faults that replace an operation.
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
  if (lacks_device()) return kSystemError;
  const int fd = open(id.bytes.data(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return kSystemError;
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return kSystemError;
  auto* const made = new Comm{static_cast<Shared*>(memory), rank, ranks};
  log_network();
  register_memory();
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
  const size_t bytes = bytes_of(count, type);
  log_proto(bytes);
  if (is_told("async")) return kSuccess;
  if (const int broken = break_down(comm); broken != kSuccess) return broken;
  std::memcpy(comm.shared->data[comm.rank], from, bytes);
  meet(comm);
  std::vector<unsigned char> sums(bytes);
  add_up(comm, 0, type, sums.data(), bytes);
  deliver(comm, type, std::move(sums), to);
  flush();
  meet(comm);
  return kSuccess;
}

int ncclAllGather(const void* from, void* to, size_t count, int type, void* handle, void*) {
  const Comm& comm = *static_cast<Comm*>(handle);
  const size_t bytes = bytes_of(count, type);
  if (overlap_wrongly(comm, to, from, bytes)) return kInvalidArgument;
  std::memcpy(comm.shared->data[comm.rank], from, bytes);
  meet(comm);
  std::vector<unsigned char> all;
  for (int rank = 0; rank < comm.ranks; ++rank) {
    const unsigned char* const data = comm.shared->data[rank];
    all.insert(all.end(), data, data + bytes);
  }
  deliver(comm, type, std::move(all), to);
  flush();
  meet(comm);
  return kSuccess;
}

int ncclReduceScatter(const void* from, void* to, size_t count, int type, int, void* handle,
                      void*) {
  const Comm& comm = *static_cast<Comm*>(handle);
  const size_t bytes = bytes_of(count, type);
  if (overlap_wrongly(comm, from, to, bytes)) return kInvalidArgument;
  std::memcpy(comm.shared->data[comm.rank], from, bytes * static_cast<size_t>(comm.ranks));
  meet(comm);
  std::vector<unsigned char> sums(bytes);
  add_up(comm, bytes * static_cast<size_t>(comm.rank), type, sums.data(), bytes);
  deliver(comm, type, std::move(sums), to);
  flush();
  meet(comm);
  return kSuccess;
}

int ncclSend(const void* from, size_t count, int type, int peer, void* comm, void*) {
  if (open_groups == 0) return kInvalidUsage;  // a real send would wait for a later receive
  group.push_back({from, nullptr, bytes_of(count, type), type, peer, static_cast<Comm*>(comm)});
  return kSuccess;
}

int ncclRecv(void* to, size_t count, int type, int peer, void* comm, void*) {
  group.push_back({nullptr, to, bytes_of(count, type), type, peer, static_cast<Comm*>(comm)});
  return kSuccess;
}

int ncclGroupStart() {
  ++open_groups;
  return kSuccess;
}

int ncclGroupEnd() {
  if (--open_groups > 0) return kSuccess;
  run_group();
  flush();
  return kSuccess;
}

int ncclCommDestroy(void* handle) {
  delete static_cast<Comm*>(handle);
  return kSuccess;
}

}  // extern "C"
