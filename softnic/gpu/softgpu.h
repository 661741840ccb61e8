/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What softgpu's libcuda.so.1 exports beside the driver's own calls: the kernel's half of
 * GPUDirect RDMA, which a software NIC asks for, and what tests need to see and change.
 * Plain C; every function may be called from any thread. docs/softgpu.md tells the rest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For a NIC. Both hand out a descriptor of the file with the bytes; byte `offset` of it is the
 * first one asked for. The caller maps it shared and closes it. The bytes stay while they are
 * mapped, whatever the program frees, and are counted as pinned until then. ENOMEM: more is pinned
 * already than the GPU's BAR1 has room for.
 */

/* The bytes behind a descriptor that cuMemGetHandleForAddressRange made, all `*length` of them.
 * 0, ENOENT (the descriptor is none of ours), ENOSYS (nic=copies), ENOMEM, or an errno of open. */
int softgpu_dmabuf(int fd, int* pages_fd, uint64_t* offset, uint64_t* length);

/* The bytes behind a range of device pointers, as the peer-memory module gives them.
 * 0, EFAULT (not device memory, or not all in one allocation, or not made for RDMA), EOPNOTSUPP
 * (peermem=no or gdr=no), ENOSYS (nic=copies), ENOMEM, or an errno of open. */
int softgpu_peermem(const void* address, size_t length, int* pages_fd, uint64_t* offset);

/*
 * For tests.
 */

/* Replaces all settings, as SOFTGPU=settings at the start of the program would have, and starts all
 * counts anew. 0, or a sentence that says what is wrong with them (then nothing has changed); it is
 * valid until the next call in this thread. What GPUs there are cannot change after cuInit. */
const char* softgpu_set(const char* settings);

/* The truth: bytes of device memory, past all settings. 0, or EFAULT when some of the range is not
 * mapped device memory or the other buffer is bad. */
int softgpu_read(const void* from_device, void* to, size_t length);
int softgpu_write(void* to_device, const void* from, size_t length);

/* How often a driver call was made, whatever it answered; the name is cuda.h's: "cuMemAlloc", and
 * not "cuMemAlloc_v2". 0 for a name that is not known. */
uint64_t softgpu_calls(const char* name);

/* Bytes that NICs have mapped, or hold a descriptor for. */
uint64_t softgpu_pinned(void);

/* Handles for address ranges that somebody holds open. */
uint64_t softgpu_open_handles(void);

#ifdef __cplusplus
}
#endif
