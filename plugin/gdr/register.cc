// SPDX-License-Identifier: Apache-2.0
#include "plugin/gdr/register.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace beeline::gdr {
namespace {

constexpr int kKernelsEnotsupp = 524;  // ENOTSUPP, which only the kernel's own headers have

// REMOTE_READ is for flushes, which READ the memory through the loopback queue pair.
constexpr unsigned kAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

Attempt refused(const char* call, const Error& error) {
  std::string why = std::string(call) + ": ";
  why += error.sys_errno != 0 ? errno_text(error.sys_errno) : describe(error);
  return {.works = false, .why_not = std::move(why), .sys_errno = error.sys_errno};
}

MrRequest request_for(const GpuRange& range, MemoryKind kind) {
  return {.address = range.address,
          .length = range.length,
          .access = kAccess,
          .ordering = verbs::Ordering::kRelaxed,
          .kind = kind,
          .dmabuf_fd = range.dmabuf_fd,
          .dmabuf_offset = range.dmabuf_offset,
          .buffer_id = range.buffer_id};
}

Result<MrRef, Attempt> import(MrCache& cache, const GpuRange& range) {
  auto made = cache.acquire(request_for(range, MemoryKind::kDmabuf));
  if (made) return *std::move(made);
  return fail(refused("ibv_reg_dmabuf_mr", made.error()));
}

// The driver exports whole pages only.
Result<MrRef, Attempt> export_and_import(MrCache& cache, const GpuRange& range,
                                         const Means& means) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(range.address);
  const std::uintptr_t start = address / page * page;
  const std::uintptr_t end = (address + range.length + page - 1) / page * page;
  auto fd = gpu::export_dmabuf(*means.cuda, *means.gpu, start, end - start);
  if (!fd) return fail(Attempt{.works = false, .why_not = fd.error().text, .sys_errno = 0});
  GpuRange exported = range;
  exported.dmabuf_fd = fd->get();
  exported.dmabuf_offset = address - start;
  return import(cache, exported);
}

Errc code_of(const Attempt& attempt) {
  if (attempt.sys_errno == ENOMEM) return Errc::kNoMemory;
  return attempt.sys_errno != 0 ? Errc::kSystem : Errc::kUnsupported;
}

}  // namespace

bool is_not_supported(int sys_errno) noexcept {
  return sys_errno == EOPNOTSUPP || sys_errno == EPROTONOSUPPORT || sys_errno == ENOSYS ||
         sys_errno == kKernelsEnotsupp;
}

const char* errno_text(int sys_errno) noexcept {
  return std::strerror(sys_errno == kKernelsEnotsupp ? EOPNOTSUPP : sys_errno);
}

const char* to_string(Way way) noexcept {
  switch (way) {
    case Way::kNone: return "no way";
    case Way::kDmabuf: return "dma-buf";
    case Way::kPeermem: return "peer memory";
  }
  return "?";
}

Result<MrRef, Attempt> by_dmabuf(MrCache& cache, const GpuRange& range, const Means& means) {
  const auto no = [](const char* why) {
    return fail(Attempt{.works = false, .why_not = why, .sys_errno = 0});
  };
  if (!means.dmabuf) return no(kDmabufsAreOff);
  if (range.dmabuf_fd >= 0) return import(cache, range);
  if (means.cuda == nullptr || means.gpu == nullptr)
    return no("it is not known which GPU has the memory");
  return export_and_import(cache, range, means);
}

Result<MrRef, Attempt> by_pointer(MrCache& cache, const GpuRange& range) {
  auto made = cache.acquire(request_for(range, MemoryKind::kCuda));
  if (made) return *std::move(made);
  return fail(refused("ibv_reg_mr", made.error()));
}

Result<Registered, Refusal> register_gpu(MrCache& cache, const GpuRange& range,
                                         const Means& means) {
  const bool pointer_first = means.pointer_first && range.dmabuf_fd < 0;
  std::string why;
  Attempt last;
  for (const bool pointer : {pointer_first, !pointer_first}) {
    auto made = pointer ? by_pointer(cache, range) : by_dmabuf(cache, range, means);
    if (made) {
      return Registered{.mr = *std::move(made), .way = pointer ? Way::kPeermem : Way::kDmabuf};
    }
    last = made.error();
    why += (why.empty() ? "" : "; ") +
           std::string(to_string(pointer ? Way::kPeermem : Way::kDmabuf)) + ": " + last.why_not;
  }
  return fail(Refusal{.error = {code_of(last), last.sys_errno, "register GPU memory"}, .why = why});
}

}  // namespace beeline::gdr
