// SPDX-License-Identifier: Apache-2.0
//
// Owning handles of librdmacm's objects: the event channel, and the ids, each of which is one end
// of a connection or a listener.
//
// Threads: one thread reads events; any thread may destroy an id. An event is acknowledged before
// it is returned, and refers to its id by a pointer that is only compared, so that destroying an id
// never waits for the reader.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "plugin/verbs/cm_api.h"
#include "plugin/verbs/handles.h"

namespace beeline::verbs {

class CmChannel;

// One id or none. Its destructor ends the connection. It keeps the channel alive.
class CmId {
 public:
  CmId() noexcept = default;
  CmId(std::shared_ptr<CmChannel> channel, rdma_cm_id* raw) noexcept;
  CmId(CmId&& other) noexcept
      : channel_(std::move(other.channel_)),
        raw_(std::exchange(other.raw_, nullptr)),
        is_connected_(std::exchange(other.is_connected_, false)) {}
  CmId& operator=(CmId other) noexcept {
    std::swap(channel_, other.channel_);
    std::swap(raw_, other.raw_);
    std::swap(is_connected_, other.is_connected_);
    return *this;
  }
  ~CmId() { reset(); }

  explicit operator bool() const noexcept { return raw_ != nullptr; }
  const void* key() const noexcept { return raw_; }  // CmEvent::id
  // "siw0"; empty if the kernel has not chosen a device yet.
  std::string device() const;

  // --- The connecting side: each step ends with an event ---
  Status resolve_address(const sockaddr* from, const sockaddr* to, int patience_ms);
  Status resolve_route(int patience_ms);
  Status connect(const rdma_conn_param& param);
  // After CONNECT_RESPONSE, which comes if the kernel does not change the queue pair's state
  // itself.
  Status establish();

  // --- The accepting side ---
  Status listen(const sockaddr* address, int backlog);
  std::uint16_t port() const noexcept;  // of a listener
  Status accept(const rdma_conn_param& param);
  void reject() noexcept;

  // The type of service of the packets. The connection also works if it cannot be set.
  Status set_tos(std::uint8_t tos);
  // The arguments of ibv_modify_qp for this state.
  struct Step {
    ibv_qp_attr attr = {};
    int mask = 0;
  };
  Result<Step> step_to(ibv_qp_state state);

  void mark_connected() noexcept { is_connected_ = true; }

 private:
  void reset() noexcept;
  const CmApi& api() const noexcept;

  std::shared_ptr<CmChannel> channel_;
  rdma_cm_id* raw_ = nullptr;
  bool is_connected_ = false;  // must be disconnected before it is destroyed
};

struct CmEvent {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_RESOLVED;
  int status = 0;            // a negative errno; of REJECTED, a reason
  const void* id = nullptr;  // CmId::key; of CONNECT_REQUEST, the listener's
  CmId request;              // of CONNECT_REQUEST: the new id
  std::array<std::byte, 256> private_data{};
  std::size_t private_bytes = 0;
};

class CmChannel : public std::enable_shared_from_this<CmChannel> {
 public:
  // kNotFound: the kernel has no /dev/infiniband/rdma_cm.
  static Result<std::unique_ptr<CmChannel>> create(const CmApi& api);
  CmChannel(const CmApi& api, rdma_event_channel* raw) noexcept : api_(&api), raw_(raw) {}
  CmChannel(const CmChannel&) = delete;
  CmChannel& operator=(const CmChannel&) = delete;
  ~CmChannel() { api_->destroy_event_channel(raw_); }

  const CmApi& api() const noexcept { return *api_; }
  int fd() const noexcept { return raw_->fd; }

  // Requires that a shared_ptr owns the channel.
  Result<CmId> make_id();
  // Nothing if there is no event.
  Result<std::optional<CmEvent>> next_event();

 private:
  const CmApi* api_;
  rdma_event_channel* raw_;
};

}  // namespace beeline::verbs
