// SPDX-License-Identifier: Apache-2.0
// The parts of a test: two devices, connected queue pairs, memory, and waits with a timeout. If a
// step of the preparation fails, it throws SetupFailed, as a REQUIRE would. The tested call is made
// directly, and its result is converted to text.
#pragma once

#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace conformance {

struct SetupFailed {
  std::string why;
};
void must(bool done, const char* what);          // the reason is in errno
void must_accept(int answer, const char* what);  // the return value is the reason

template <auto kDestroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    (void)kDestroy(object);
  }
};
using Pd = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using Cq = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using Mr = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using Qp = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using Srq = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using Channel = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using Context = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;

constexpr std::uint8_t kPort = 1;
constexpr unsigned kRemoteRights = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr unsigned kAllRights = IBV_ACCESS_LOCAL_WRITE | kRemoteRights;

// An open device, and the address of its first port: a RoCE v2 GID over IPv4, or a LID.
struct Device {
  explicit Device(const std::string& name);

  Context context;
  ibv_device_attr attr{};
  ibv_port_attr port{};
  std::uint8_t gid_index = 0;
  ibv_gid gid{};
  bool is_ethernet() const { return port.link_layer == IBV_LINK_LAYER_ETHERNET; }
};

struct Lab {
  Device a;
  Device b;
};

// Registered pages.
class Region {
 public:
  Region(ibv_pd* pd, std::size_t bytes, unsigned access = kAllRights);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::uint64_t address(std::size_t offset = 0) const {
    return reinterpret_cast<std::uint64_t>(data_) + offset;
  }
  std::uint32_t key() const { return mr_->lkey; }
  std::uint32_t rkey() const { return mr_->rkey; }
  int forget() { return ::ibv_dereg_mr(mr_.release()); }  // the pages stay allocated
  ibv_sge piece(std::size_t offset, std::size_t bytes) const {
    return {address(offset), static_cast<std::uint32_t>(bytes), mr_->lkey};
  }
  void fill(std::size_t offset, std::size_t bytes, std::uint8_t seed);
  bool has_pattern(std::size_t offset, std::size_t bytes, std::uint8_t seed) const;

 private:
  std::size_t size_;
  std::byte* data_;
  Mr mr_;
};

struct EndPlan {
  ibv_qp_cap cap{.max_send_wr = 16,
                 .max_recv_wr = 16,
                 .max_send_sge = 4,
                 .max_recv_sge = 4,
                 .max_inline_data = 0};
  bool signal_all = false;
  std::uint32_t shared_receives = 0;  // depth of a shared receive queue; 0: none
  bool channel = false;               // one, for both completion queues
  int cqe = 64;
  std::size_t bytes = 64 << 10;
  unsigned memory_rights = kAllRights;
  unsigned qp_rights = kRemoteRights;
  ibv_mtu mtu = {};  // by default the largest MTU of both ports
};

struct LinkPlan {
  std::uint8_t timeout = 17;  // 0.54 s, because an emulated machine may be delayed
  std::uint8_t retry = 6;
  std::uint8_t rnr_retry = 6;
  std::uint8_t min_rnr_timer = 12;  // 0.64 ms
  std::uint8_t reads_out = 1;
  std::uint8_t reads_in = 1;
  std::uint32_t send_psn = 7;
  std::uint32_t receive_psn = 7;
};

// A queue pair with all its objects, in RESET.
struct End {
  explicit End(const Device& its_device, const EndPlan& plan = {});

  const Device& device;
  unsigned qp_rights;
  ibv_mtu mtu;
  Pd pd;
  Channel channel;
  Srq srq;
  Cq sends;
  Cq receives;
  Region memory;
  Qp qp;
};

constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
ibv_qp_attr init_attr(unsigned rights);
ibv_qp_attr rtr_attr(const Device& own, const Device& peer, std::uint32_t peer_qpn,
                     const LinkPlan& plan = {});
ibv_qp_attr rts_attr(const LinkPlan& plan = {});

int modify(const End& end, ibv_qp_attr attr, int mask);
int move_to(const End& end, ibv_qp_state state);  // without other attributes
// Moves a new end up to `state`, connected to `peer`.
void raise(const End& end, const End& peer, ibv_qp_state state, const LinkPlan& plan = {});
ibv_qp_state state_of(const End& end);
// Moves from RTS to SQD and waits until the queue is drained; some devices change the state only
// then.
void drain(const End& end);

// Gives up within a second.
LinkPlan impatient();

struct PairPlan {
  EndPlan a{};
  EndPlan b{};
  LinkPlan link{};
};
// Two connected ends.
struct Pair {
  explicit Pair(const Lab& lab, const PairPlan& plan = {});
  End a;
  End b;
};

// A send work request that owns its SGEs. Fields without a setter are set in `wr`.
struct Work {
  static Work write(std::vector<ibv_sge> from, std::uint64_t to, std::uint32_t rkey);
  static Work write_imm(std::vector<ibv_sge> from, std::uint64_t to, std::uint32_t rkey,
                        std::uint32_t imm);
  static Work read(std::vector<ibv_sge> into, std::uint64_t from, std::uint32_t rkey);
  static Work send(std::vector<ibv_sge> from);
  static Work send_imm(std::vector<ibv_sge> from, std::uint32_t imm);
  static Work fetch_add(ibv_sge before, std::uint64_t to, std::uint32_t rkey, std::uint64_t add);
  static Work compare_swap(ibv_sge before, std::uint64_t to, std::uint32_t rkey,
                           std::uint64_t compare, std::uint64_t swap);

  Work with_id(std::uint64_t id) const;
  Work with_flags(unsigned flags) const;  // added
  Work quiet() const;                     // unsignaled

  std::vector<ibv_sge> pieces;
  ibv_send_wr wr{};
};

int post(const End& end, const Work& work);
int post_receive(const End& end, std::vector<ibv_sge> pieces, std::uint64_t id = 0);

int post_shared(const End& end, std::vector<ibv_sge> pieces, std::uint64_t id = 0);

// Reads the events of a context, from its construction on.
class Listener {
 public:
  explicit Listener(const Device& device);
  // The text of the next event, with " of another object" if it is not about `object`; "no event"
  // if none comes.
  std::string hear(const void* object) const;

 private:
  ibv_context* context_;
};

using Milliseconds = std::chrono::milliseconds;
constexpr Milliseconds kPatience{10'000};  // for expected completions and events
constexpr Milliseconds kSilence{300};      // to show that nothing comes

std::optional<ibv_wc> next(const Cq& cq, Milliseconds patience = kPatience);
// The value of every 32-bit field of a completion before it is polled.
constexpr std::uint32_t kUntouched = 0xa5a5a5a5;
// Returns at most `count` completions, fewer if no more come.
std::vector<ibv_wc> next_many(const Cq& cq, std::size_t count, Milliseconds patience = kPatience);
// Waits for a fixed time. Used if a completion must arrive but not be polled.
void pause(Milliseconds patience);
// The status of the next completion, or "nothing within N s".
std::string outcome(const Cq& cq, Milliseconds patience = kPatience);
std::string statuses(const std::vector<ibv_wc>& completions);
// Posts and waits. Returns the status, or the errno of the post.
std::string run(const End& end, const Work& work);

}  // namespace conformance
