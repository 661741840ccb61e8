// SPDX-License-Identifier: Apache-2.0
#include "tools/gpu_check/nccl_api.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace beeline::gpu {

std::vector<std::string> Nccl::places() {
  if (const char* const given = std::getenv("NCCL_LIB"); given != nullptr) return {given};
  return {"libnccl.so.2"};
}

Outcome<Nccl> Nccl::open() {
  Outcome<Library> library = Library::open(places());
  if (!library) {
    return fail(
        fmt::format("no NCCL (libnccl.so.2; NCCL_LIB can name it); {}", library.error().text));
  }
  Nccl nccl(std::move(library).value());
  BL_TRY(nccl.find_functions());
  return nccl;
}

Outcome<void> Nccl::find_functions() {
  BL_TRY(library_.find("ncclGetVersion", &call_.get_version));
  BL_TRY(library_.find("ncclGetErrorString", &call_.get_error_string));
  BL_TRY(library_.find("ncclGetLastError", &call_.get_last_error));
  BL_TRY(library_.find("ncclGetUniqueId", &call_.get_unique_id));
  BL_TRY(library_.find("ncclCommInitRank", &call_.comm_init_rank));
  BL_TRY(library_.find("ncclCommGetAsyncError", &call_.comm_get_async_error));
  BL_TRY(library_.find("ncclCommDestroy", &call_.comm_destroy));
  BL_TRY(library_.find("ncclAllReduce", &call_.all_reduce));
  BL_TRY(library_.find("ncclAllGather", &call_.all_gather));
  BL_TRY(library_.find("ncclReduceScatter", &call_.reduce_scatter));
  BL_TRY(library_.find("ncclSend", &call_.send));
  BL_TRY(library_.find("ncclRecv", &call_.recv));
  BL_TRY(library_.find("ncclGroupStart", &call_.group_start));
  BL_TRY(library_.find("ncclGroupEnd", &call_.group_end));
  return {};
}

Outcome<std::string> Nccl::describe() const {
  int version = 0;
  BL_TRY(check("ncclGetVersion", call_.get_version(&version)));
  return fmt::format("{}.{}.{}, {}", version / 10000, version % 10000 / 100, version % 100,
                     library_.path());
}

Outcome<void> Nccl::check(const char* what, int result, NcclComm comm) const {
  if (result == kNcclSuccess) return {};
  std::string text =
      fmt::format("{} returned {} ({})", what, result, call_.get_error_string(result));
  const char* const more = call_.get_last_error(comm);
  if (more != nullptr && !std::string_view(more).empty()) text += fmt::format(": {}", more);
  return fail(std::move(text));
}

}  // namespace beeline::gpu
