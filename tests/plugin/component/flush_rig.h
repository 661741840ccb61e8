// SPDX-License-Identifier: Apache-2.0
//
// The receiving end of a comm with several rails on softnic, without a handshake. For each path
// there is a queue pair by which the test sends messages in the place of the peer, so that the test
// decides which rail carries what.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "plugin/device/device_table.h"
#include "plugin/recovery/guarded.h"
#include "plugin/transfer/recv_comm.h"
#include "plugin/transfer/test_request.h"
#include "tests/support/verbs_fixture.h"

namespace beeline::test {

struct FlushRigOptions {
  std::size_t rails = 3;
  std::size_t paths_on_a_rail = 1;
  std::uint8_t iwarp_rails = 0;  // a bit for each: rails that have no loopback
};

// Memory that stands for a GPU's: it needs flushes. It is registered with some rails of the comm.
class FlushedMemory {
 public:
  FlushedMemory(RecvComm& comm, const std::vector<const Device*>& devices, std::size_t size,
                std::uint8_t rails);

  std::uint8_t* at(std::size_t offset = 0) noexcept { return bytes_.data() + offset; }
  MemoryHandle& handle() noexcept { return *handle_; }
  FlushTarget target(std::size_t offset = 0) noexcept { return {at(offset), handle_.get()}; }

 private:
  struct Remove {
    void operator()(MemoryHandle* handle) const noexcept { RegisteredBuffers::remove(handle); }
  };

  std::vector<std::uint8_t> bytes_;
  std::vector<MrPtr> regions_;
  std::unique_ptr<MemoryHandle, Remove> handle_;
};

class FlushRig {
 public:
  explicit FlushRig(const FlushRigOptions& options = {});
  FlushRig(const FlushRig&) = delete;
  FlushRig& operator=(const FlushRig&) = delete;
  ~FlushRig();

  RecvComm& comm() noexcept { return *comm_; }
  FlushedMemory memory(std::uint8_t rails, std::size_t size = 4096) {
    return {comm(), rails_, size, rails};
  }
  Request* receive(std::span<const ReceiveBuffer> buffers);
  Request* receive(FlushedMemory& into, std::size_t offset = 0);
  // The message of the line at this position arrives by this path. To be polled.
  void arrive(std::size_t path, std::uint32_t position);
  // Receives into the memory by this path.
  void carry(std::size_t path, FlushedMemory& into, std::size_t offset = 0);
  // Null: nothing to wait for.
  Request* flush(std::span<const FlushTarget> targets);
  void finish(Request* request);

  // READs that were posted since the last call, by rail.
  std::vector<int> take_reads();

 private:
  Connection connect(const FlushRigOptions& options);
  PathResources make_path(const FlushRigOptions& options, const CommPlan& plan, std::size_t index);

  TestFabric fabric_;
  verbs::Api api_;
  std::unique_ptr<DeviceTable> table_;
  std::vector<Device> devices_;  // copies, whose transport the test may change
  std::vector<const Device*> rails_;
  const RegistrationMeans registration_{};
  std::vector<std::byte> ring_;
  std::deque<Endpoint> peers_;  // by path
  std::vector<MrPtr> ring_regions_;
  std::shared_ptr<Link> link_;
  std::uint32_t next_position_ = 0;
  std::unique_ptr<Guarded<RecvComm>> comm_;
};

}  // namespace beeline::test
