/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that softgpu's libcuda.so.1 exports in addition to the driver's calls: the kernel's
 * part of GPUDirect RDMA, for a software NIC, and functions for tests. See docs/softgpu.md. Plain
 * C. Every function may be called from any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For a NIC. Both return a descriptor of the file that stores the memory; byte `offset` of the file
 * is the first byte of the range. The caller maps the file shared and closes the descriptor. The
 * memory exists, and counts as pinned, until it is unmapped, even if the program frees it. ENOMEM:
 * the pinned memory would exceed the GPU's BAR1.
 */

/* The memory behind a descriptor of cuMemGetHandleForAddressRange, `*length` bytes. Returns 0,
 * ENOENT (not such a descriptor), ENOSYS (nic=copies), ENOMEM, or an errno of open. */
int softgpu_dmabuf(int fd, int* pages_fd, uint64_t* offset, uint64_t* length);

/* The memory behind a range of device pointers, as a peer-memory module provides it.
 * Returns 0, EFAULT (not device memory, or not all in the pages of one allocation, or not made for
 * RDMA), EOPNOTSUPP (peermem=no or gdr=no), ENOSYS (nic=copies), ENOMEM, or an errno of open. */
int softgpu_peermem(const void* address, size_t length, int* pages_fd, uint64_t* offset);

/* From now on, each successful cuFlushGPUDirectRDMAWrites calls `reveal`, which makes everything
 * that NICs have written visible to the GPUs. It replaces an earlier function. */
void softgpu_at_flush(void (*reveal)(void));

/*
 * For tests.
 */

/* Replaces all settings, as if the program had been started with SOFTGPU=settings, and resets all
 * counts. Returns 0, or a message if the settings are wrong; then nothing has changed, and the
 * message is valid until the next call in this thread. The set of GPUs cannot change after cuInit.
 */
const char* softgpu_set(const char* settings);

/* Read and write device memory, whatever the settings are. Return 0, or EFAULT if part of the range
 * is not mapped device memory or the other buffer is bad. */
int softgpu_read(const void* from_device, void* to, size_t length);
int softgpu_write(void* to_device, const void* from, size_t length);

/* How often a driver call was made, including failed calls. The name is that of cuda.h:
 * "cuMemAlloc", not "cuMemAlloc_v2". 0 for an unknown name. */
uint64_t softgpu_calls(const char* name);

/* Bytes that NICs have mapped or have a descriptor for. */
uint64_t softgpu_pinned(void);

/* The number of handles of address ranges that are open. */
uint64_t softgpu_open_handles(void);

#ifdef __cplusplus
}
#endif
