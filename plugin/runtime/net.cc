// SPDX-License-Identifier: Apache-2.0
//
// NCCL's calls, handed to the floor that answers them.
#include "plugin/runtime/net.h"

#include <memory>

#include "plugin/base/log.h"
#include "plugin/device/memlock.h"
#include "plugin/runtime/options.h"
#include "plugin/runtime/runtime.h"

namespace beeline::net {
namespace {

StatsSlot slot_for(const Connection& connection, SlotRole role) {
  StatsSlot slot = Runtime::instance().stats().acquire(role, connection.paths.front().device->name);
  slot.set_peer(connection.link->peer().host, connection.link->peer().device);
  slot.record(Event::kReady, static_cast<std::uint32_t>(connection.paths.size()));
  slot.set_state(SlotState::kReady);
  return slot;
}

// In the memory that the control thread has got for it.
template <class End>
Comm* settle(Connection& made, SlotRole role) {
  static_assert(alignof(End) <= kCommAlignment);
  StatsSlot slot = slot_for(made, role);
  const CommOptions options = comm_options(Runtime::instance().config());
  std::byte* const place = made.comm.release();
  return new (place) End(std::move(made), options, std::move(slot));
}

template <class End>
void end(Comm& comm) noexcept {
  End& ours = static_cast<End&>(comm);
  ours.~End();
  Runtime::instance().control().take_back(CommMemory(reinterpret_cast<std::byte*>(&ours)));
}

Error explain_refusal(const Device& device, const Buffer& buffer, const Error& error) {
  const std::string doing =
      "registering " + bytes_text(buffer.size) + " of memory with " + label(device);
  BL_WARN_LIMITED(3, "%s", explain_enomem(doing, error).c_str());
  return error;
}

}  // namespace

Result<Listener*> listen(int device, HandleBytes handle, const CommSettings& settings) {
  const Device* const chosen = BL_TRY(Runtime::instance().device(device));
  return Runtime::instance().control().listen(*chosen, handle, settings);
}

void close(Listener* listener) noexcept {
  if (Runtime::instance().is_ours()) Runtime::instance().control().close(listener);
}

void reclaim(OwnerId owner) noexcept {
  Runtime& runtime = Runtime::instance();
  if (runtime.is_ours() && !runtime.devices().empty()) runtime.control().reclaim(owner);
}

Result<Comm*> connect(int device, HandleBytes handle, const CommSettings& settings) {
  Runtime& runtime = Runtime::instance();
  const Device* const chosen = BL_TRY(runtime.device(device));
  std::unique_ptr<Connection> made = BL_TRY(runtime.control().connect(*chosen, handle, settings));
  if (made == nullptr) return nullptr;
  return settle<SendComm>(*made, SlotRole::kSend);
}

Result<Comm*> accept(Listener& listener) {
  Runtime& runtime = Runtime::instance();
  std::unique_ptr<Connection> made = BL_TRY(runtime.control().accept(listener));
  if (made == nullptr) return nullptr;
  return settle<RecvComm>(*made, SlotRole::kReceive);
}

void close(Comm* comm) noexcept {
  if (!Runtime::instance().is_ours()) return;
  switch (comm->role()) {
    case Role::kSend: return end<SendComm>(*comm);
    case Role::kReceive: return end<RecvComm>(*comm);
  }
}

Result<MemoryHandle*> register_memory(Comm& comm, const Buffer& buffer) {
  if (buffer.kind != MemoryKind::kHost) {
    BL_WARN_LIMITED(1, "GPU memory cannot be registered: this build moves host memory only");
    return fail(Errc::kUnsupported, "register GPU memory");
  }
  auto handle = std::make_unique<MemoryHandle>();
  for (std::size_t rail = 0; rail < comm.paths().size(); ++rail) {
    const Device& device = *comm.paths()[rail].device;
    MrCache* const cache = BL_TRY(Runtime::instance().cache(device));
    auto registered = cache->acquire({.address = buffer.data,
                                      .length = buffer.size,
                                      .ordering = verbs::Ordering::kRelaxed,
                                      .kind = buffer.kind,
                                      .dmabuf_fd = buffer.dmabuf_fd,
                                      .dmabuf_offset = buffer.dmabuf_offset});
    if (!registered) return fail(explain_refusal(device, buffer, registered.error()));
    handle->lkeys[rail] = registered->lkey();
    handle->rkeys[rail] = registered->rkey();
    handle->registrations.push_back(std::move(*registered));
  }
  return handle.release();
}

void deregister_memory(MemoryHandle* memory) noexcept {
  if (Runtime::instance().is_ours()) delete memory;
}

}  // namespace beeline::net
