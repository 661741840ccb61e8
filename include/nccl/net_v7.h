/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 7 of NCCL's network plugin interface, exported as ncclNetPlugin_v7.
 * NCCL 2.19 and later. New since v6: network device kernels, irecvConsumed.
 */
#pragma once

#include "include/nccl/net_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  char* name;     /* unique; lives as long as the plugin */
  char* pciPath;  /* resolved directory in /sys, or NULL */
  uint64_t guid;  /* (guid, port) is unique per wire */
  int ptrSupport; /* NCCL_PTR_* bits */
  int speed;      /* Mbit/s */
  int port;
  float latency; /* microseconds */
  int maxComms;
  int maxRecvs; /* parts of one irecv */
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
} ncclNetProperties_v7_t;

BL_ABI_SIZE(ncclNetProperties_v7_t, 56);
BL_ABI_OFFSET(ncclNetProperties_v7_t, name, 0);
BL_ABI_OFFSET(ncclNetProperties_v7_t, pciPath, 8);
BL_ABI_OFFSET(ncclNetProperties_v7_t, guid, 16);
BL_ABI_OFFSET(ncclNetProperties_v7_t, ptrSupport, 24);
BL_ABI_OFFSET(ncclNetProperties_v7_t, speed, 28);
BL_ABI_OFFSET(ncclNetProperties_v7_t, port, 32);
BL_ABI_OFFSET(ncclNetProperties_v7_t, latency, 36);
BL_ABI_OFFSET(ncclNetProperties_v7_t, maxComms, 40);
BL_ABI_OFFSET(ncclNetProperties_v7_t, maxRecvs, 44);
BL_ABI_OFFSET(ncclNetProperties_v7_t, netDeviceType, 48);
BL_ABI_OFFSET(ncclNetProperties_v7_t, netDeviceVersion, 52);

typedef struct {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v7_t* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm,
                          ncclNetDeviceHandle_v7_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v7_t** recvDevComm);
  ncclResult_t (*regMr)(void* comm, void* data, int size, int type, void** mhandle);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  ncclResult_t (*isend)(void* sendComm, void* data, int size, int tag, void* mhandle,
                        void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, int* sizes, int* tags, void** mhandles,
                        void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles,
                         void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);
} ncclNet_v7_t;

BL_ABI_SIZE(ncclNet_v7_t, 152);
BL_ABI_COMMON_SLOTS(ncclNet_v7_t);
BL_ABI_SLOT(ncclNet_v7_t, getDeviceMr, 17);
BL_ABI_SLOT(ncclNet_v7_t, irecvConsumed, 18);

#ifdef __cplusplus
} /* extern "C" */
#endif
