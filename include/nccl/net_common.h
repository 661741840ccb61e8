/* SPDX-License-Identifier: Apache-2.0
 *
 * The common parts of all versions of NCCL's network plugin interface: results, logging, constants,
 * the device handle. These declarations were written for this project. C11 and C++20, like all
 * files here.
 */
#pragma once

#include <stdint.h>

#include "include/nccl/abi_check.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7, /* NCCL takes it for success: a plugin never returns it */
  ncclTimeout = 8     /* unknown to older releases: a plugin never returns it */
} ncclResult_t;

/* --- logging ------------------------------------------------------------------------------- */

typedef enum {
  NCCL_LOG_NONE = 0,
  NCCL_LOG_VERSION = 1,
  NCCL_LOG_WARN = 2,
  NCCL_LOG_INFO = 3,
  NCCL_LOG_ABORT = 4,
  NCCL_LOG_TRACE = 5
} ncclDebugLogLevel;

/* Bits of the logger's `flags`. */
typedef enum {
  NCCL_INIT = 0x1,
  NCCL_COLL = 0x2,
  NCCL_P2P = 0x4,
  NCCL_SHM = 0x8,
  NCCL_NET = 0x10,
  NCCL_GRAPH = 0x20,
  NCCL_TUNING = 0x40,
  NCCL_ENV = 0x80,
  NCCL_ALLOC = 0x100,
  NCCL_CALL = 0x200,
  NCCL_PROXY = 0x400,
  NCCL_NVLS = 0x800,
  NCCL_BOOTSTRAP = 0x1000,
  NCCL_REG = 0x2000,
  NCCL_PROFILE = 0x4000,
  NCCL_RAS = 0x8000,
  NCCL_DESTROY = 0x10000,
  NCCL_ALLOC_HOST = 0x20000,
  NCCL_ALL = ~0
} ncclDebugLogSubSys;

/* Formats like printf. NCCL never passes NULL, but other callers may. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char* file,
                                  int line, const char* fmt, ...);

/* --- constants ----------------------------------------------------------------------------- */

enum {
  /* ptrSupport, and `type` of regMr */
  NCCL_PTR_HOST = 0x1,
  NCCL_PTR_CUDA = 0x2,
  NCCL_PTR_DMABUF = 0x4,

  NCCL_NET_HANDLE_MAXSIZE = 128,    /* bytes that listen may write */
  NCCL_NET_MAX_REQUESTS = 32,       /* in flight per comm, each of up to maxRecvs parts */
  NCCL_NET_MAX_REQUESTS_V6 = 8,     /* what a v6 plugin could count on */
  NCCL_STEPS = 8,                   /* what NCCL keeps in flight per connection */
  NCCL_NET_MAX_DEVS_PER_NIC_V9 = 4, /* v9, v10, v11 */
  NCCL_NET_MAX_DEVS_PER_NIC_V12 = 8,
  NCCL_NET_TRAFFIC_CLASS_UNDEF = -1, /* v10 on */
  NCCL_NET_ATTR_UNDEF = -1,
  NCCL_NET_ID_UNDEF = -1 /* railId, planeId */
};

#define NCCL_MAX_NET_SIZE (1024L * 1024L * 1024L)               /* one isend, one irecv part */
#define NCCL_MAX_NET_SIZE_BYTES (1024L * 1024L * 1024L * 1024L) /* maxP2pBytes, maxCollBytes */

/* Since v9: the value of *request before irecv if NCCL does not need the completion. */
#define NCCL_NET_OPTIONAL_RECV_COMPLETION 0x1

/* --- network device kernels: this plugin has only the type host ------------------------------ */

typedef enum {
  NCCL_NET_DEVICE_HOST = 0,
  NCCL_NET_DEVICE_UNPACK = 1,
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3,
  NCCL_NET_DEVICE_GIN_GPI = 4
} ncclNetDeviceType;

enum { NCCL_NET_DEVICE_INVALID_VERSION = 0, NCCL_NET_DEVICE_UNPACK_VERSION = 7 };

typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  size_t size;
  int needsProxyProgress;
} ncclNetDeviceHandle_t;

typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v7_t;
typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v8_t;
typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v9_t;
typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v10_t;
typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v11_t;
typedef ncclNetDeviceHandle_t ncclNetDeviceHandle_v12_t;

BL_ABI_SIZE(ncclNetDeviceHandle_t, 32);
BL_ABI_OFFSET(ncclNetDeviceHandle_t, netDeviceType, 0);
BL_ABI_OFFSET(ncclNetDeviceHandle_t, netDeviceVersion, 4);
BL_ABI_OFFSET(ncclNetDeviceHandle_t, handle, 8);
BL_ABI_OFFSET(ncclNetDeviceHandle_t, size, 16);
BL_ABI_OFFSET(ncclNetDeviceHandle_t, needsProxyProgress, 24);

/* --- since v9: a device that combines several ------------------------------------------------- */

typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V9];
} ncclNetVDeviceProps_v9_t;

typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v10_t;
typedef ncclNetVDeviceProps_v9_t ncclNetVDeviceProps_v11_t;

typedef struct {
  int ndevs;
  int devs[NCCL_NET_MAX_DEVS_PER_NIC_V12];
} ncclNetVDeviceProps_v12_t;

BL_ABI_SIZE(ncclNetVDeviceProps_v9_t, 20);
BL_ABI_OFFSET(ncclNetVDeviceProps_v9_t, devs, 4);
BL_ABI_SIZE(ncclNetVDeviceProps_v12_t, 36);
BL_ABI_OFFSET(ncclNetVDeviceProps_v12_t, devs, 4);

/* --- since v10: quality of service, profiler ------------------------------------------------- */

typedef struct {
  int trafficClass;
} ncclNetCommConfig_v10_t;

typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v11_t;
typedef ncclNetCommConfig_v10_t ncclNetCommConfig_v12_t;

BL_ABI_SIZE(ncclNetCommConfig_v10_t, 4);

/* The profiler callback's `type`. */
enum {
  ncclProfilerNetEventStart = 0,
  ncclProfilerNetEventStop = 1,
  ncclProfilerNetEventUpdate = 2,
  ncclProfilerNetEventUpdateAndStop = 3
};

/* Start reads *pHandle: call it only with the phandle that was passed to isend or irecv. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void** eHandle, int type, void* pHandle,
                                               int64_t pluginId, void* extData);

/* --- since v11: attributes of a communicator's transfers -------------------------------------- */

typedef struct {
  int32_t maxConcurrentPeers;
  int32_t minConcurrentPeers;
  int32_t maxFlowsPerPeer;
  int32_t minFlowsPerPeer;
} ncclNetCommAttr_t;

typedef struct {
  ncclNetCommAttr_t sendCommAttr;
  ncclNetCommAttr_t recvCommAttr;
  uint32_t op;
  uint32_t algo;
  uint32_t proto;
} ncclNetAttr_t;

BL_ABI_SIZE(ncclNetCommAttr_t, 16);
BL_ABI_SIZE(ncclNetAttr_t, 44);
BL_ABI_OFFSET(ncclNetAttr_t, recvCommAttr, 16);
BL_ABI_OFFSET(ncclNetAttr_t, op, 32);
BL_ABI_OFFSET(ncclNetAttr_t, algo, 36);
BL_ABI_OFFSET(ncclNetAttr_t, proto, 40);

#ifdef __cplusplus
} /* extern "C" */
#endif
