// SPDX-License-Identifier: Apache-2.0
//
// The unwinder of GCC 12 and later asks glibc 2.35 where the tables for exceptions of an address
// are. Older versions have no such function; dl_iterate_phdr, which they have, finds the same.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

#ifdef DLFO_STRUCT_HAS_EH_DBASE  // the compiler's glibc has the function, so its unwinder calls it

namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* result;
};

// Returns 1, which ends the search, if the object contains the address and has tables.
int look_into(dl_phdr_info* object, std::size_t, void* data) {
  const auto* search = static_cast<Search*>(data);
  bool contains = false;
  std::uintptr_t first = UINTPTR_MAX, end = 0, tables = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    const std::uintptr_t from = object->dlpi_addr + header.p_vaddr, to = from + header.p_memsz;
    if (header.p_type == PT_GNU_EH_FRAME) tables = from;
    if (header.p_type != PT_LOAD) continue;
    contains |= search->address >= from && search->address < to;
    if (from < first) first = from;
    if (to > end) end = to;
  }
  if (!contains || tables == 0) return 0;
  *search->result = {};
  search->result->dlfo_map_start = reinterpret_cast<void*>(first);
  search->result->dlfo_map_end = reinterpret_cast<void*>(end);
  search->result->dlfo_eh_frame = reinterpret_cast<void*>(tables);
  return 1;
}

}  // namespace

extern "C" int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

#endif
