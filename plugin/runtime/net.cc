// SPDX-License-Identifier: Apache-2.0
#include "plugin/runtime/net.h"

#include <algorithm>
#include <memory>

#include "common/base/log.h"
#include "plugin/recovery/guarded.h"
#include "plugin/runtime/options.h"
#include "plugin/runtime/runtime.h"

namespace beeline::net {
namespace {

// The connecting end has its slot since connect() has begun.
StatsSlot slot_for(Connection& connection, SlotRole role) {
  StatsSlot slot = std::move(connection.slot);
  if (role == SlotRole::kReceive) {
    slot = Runtime::instance().acquire(role, connection.devices);
    name_peer(slot, *connection.link);
  }
  slot.record(Event::kReady, static_cast<std::uint32_t>(std::ranges::count(
                                 connection.paths, false, &PathResources::is_missing)));
  slot.set_state(SlotState::kReady);
  return slot;
}

// In the memory that the control thread has allocated for it.
template <class End>
Comm* make_comm(std::unique_ptr<Connection> made, SlotRole role) {
  static_assert(alignof(Guarded<End>) <= kCommAlignment);
  StatsSlot slot = slot_for(*made, role);
  CommOptions options = comm_options(Runtime::instance().config());
  options.registration = &Runtime::instance().registration();
  options.standbys = Runtime::instance().standbys();
  Runtime::instance().rail_traffic().on_made();
  std::byte* const place = made->comm.release();
  return new (place) Guarded<End>(std::move(made), options, std::move(slot));
}

template <class End>
void destroy(std::byte* memory) noexcept {
  std::destroy_at(reinterpret_cast<End*>(memory));
}

template <class End>
void close_end(Comm& comm) noexcept {
  auto& end = static_cast<Guarded<End>&>(comm);
  Runtime::instance().rail_traffic().on_closing(end);
  end.close();
  std::byte* const memory = reinterpret_cast<std::byte*>(&end);
  Runtime::instance().control().take_back(CommMemory(memory, {.destroy = destroy<Guarded<End>>}));
}

}  // namespace

Result<Listener*> listen(int device, HandleBytes handle, const CommSettings& settings) {
  Runtime& runtime = Runtime::instance();
  const NetDevice* const chosen = BL_TRY(runtime.net_device(device));
  return runtime.control().listen(chosen->rails(), handle, settings);
}

void close(Listener* listener) noexcept {
  if (Runtime::instance().is_ours()) Runtime::instance().control().close(listener);
}

void reclaim(OwnerId owner) noexcept {
  Runtime& runtime = Runtime::instance();
  if (runtime.is_ours() && runtime.has_devices()) runtime.control().reclaim(owner);
}

Result<Comm*> connect(int device, HandleBytes handle, const CommSettings& settings) {
  Runtime& runtime = Runtime::instance();
  const NetDevice* const chosen = BL_TRY(runtime.net_device(device));
  std::unique_ptr<Connection> made =
      BL_TRY(runtime.control().connect(chosen->rails(), handle, settings));
  if (made == nullptr) return nullptr;
  return make_comm<SendComm>(std::move(made), SlotRole::kSend);
}

Result<Comm*> accept(Listener& listener) {
  Runtime& runtime = Runtime::instance();
  std::unique_ptr<Connection> made = BL_TRY(runtime.control().accept(listener));
  if (made == nullptr) return nullptr;
  return make_comm<RecvComm>(std::move(made), SlotRole::kReceive);
}

void close(Comm* comm) noexcept {
  if (!Runtime::instance().is_ours()) return;
  switch (comm->role()) {
    case Role::kSend: return close_end<SendComm>(*comm);
    case Role::kReceive: return close_end<RecvComm>(*comm);
  }
}

Result<MemoryHandle*> register_memory(Comm& comm, const Buffer& buffer) {
  const std::shared_ptr<RegisteredBuffers> buffers = comm.buffers();
  auto handle = BL_TRY(buffers->make(buffer));
  if (comm.role() == Role::kReceive) {
    handle->keep_rails(
        BL_TRY(static_cast<RecvComm&>(comm).prepare_flush(handle->flush, handle->rails)));
  }
  return buffers->add(std::move(handle));
}

void deregister_memory(MemoryHandle* memory) noexcept {
  if (Runtime::instance().is_ours()) RegisteredBuffers::remove(memory);
}

}  // namespace beeline::net
