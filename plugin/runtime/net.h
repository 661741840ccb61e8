// SPDX-License-Identifier: Apache-2.0
//
// What NCCL asks of a network, in our types: each version of its interface is a thin layer over
// these calls.
//
// Threads: as NCCL calls them (Comm says which may meet). None of them waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/result.h"
#include "plugin/connect/control/control_plane.h"
#include "plugin/transfer/comm.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/registration.h"
#include "plugin/transfer/send_comm.h"

namespace beeline::net {

Result<Listener*> listen(int device, HandleBytes handle, const CommSettings& settings = {});
void close(Listener* listener) noexcept;
// What the owner began and will not finish.
void reclaim(OwnerId owner) noexcept;

// Null: not yet.
Result<Comm*> connect(int device, HandleBytes handle, const CommSettings& settings = {});
Result<Comm*> accept(Listener& listener);
void close(Comm* comm) noexcept;

Result<MemoryHandle*> register_memory(Comm& comm, const Buffer& buffer);
// When it returns, no NIC reaches the memory through this handle.
void deregister_memory(MemoryHandle* memory) noexcept;

}  // namespace beeline::net
