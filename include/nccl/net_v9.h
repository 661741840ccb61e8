/* SPDX-License-Identifier: Apache-2.0
 *
 * Version 9 of NCCL's network plugin interface, exported as ncclNetPlugin_v9.
 * NCCL 2.24 and later. New since v8: devices that combine several, forceFlush, size_t for data,
 * optional receive completion.
 */
#pragma once

#include "include/nccl/net_common.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  char* name;      /* unique; lives as long as the plugin */
  char* pciPath;   /* resolved directory in /sys, or NULL */
  uint64_t guid;   /* (guid, port) is unique per wire */
  int ptrSupport;  /* NCCL_PTR_* bits */
  int regIsGlobal; /* a registration serves every comm */
  int forceFlush;  /* flush even where the GPU needs none */
  int speed;       /* Mbit/s */
  int port;
  float latency; /* microseconds */
  int maxComms;
  int maxRecvs; /* parts of one irecv */
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  ncclNetVDeviceProps_v9_t vProps; /* a plain device: {1, {its index}} */
  size_t maxP2pBytes;              /* above 0, or no connection is made */
  size_t maxCollBytes;
} ncclNetProperties_v9_t;

BL_ABI_SIZE(ncclNetProperties_v9_t, 104);
BL_ABI_OFFSET(ncclNetProperties_v9_t, name, 0);
BL_ABI_OFFSET(ncclNetProperties_v9_t, pciPath, 8);
BL_ABI_OFFSET(ncclNetProperties_v9_t, guid, 16);
BL_ABI_OFFSET(ncclNetProperties_v9_t, ptrSupport, 24);
BL_ABI_OFFSET(ncclNetProperties_v9_t, regIsGlobal, 28);
BL_ABI_OFFSET(ncclNetProperties_v9_t, forceFlush, 32);
BL_ABI_OFFSET(ncclNetProperties_v9_t, speed, 36);
BL_ABI_OFFSET(ncclNetProperties_v9_t, port, 40);
BL_ABI_OFFSET(ncclNetProperties_v9_t, latency, 44);
BL_ABI_OFFSET(ncclNetProperties_v9_t, maxComms, 48);
BL_ABI_OFFSET(ncclNetProperties_v9_t, maxRecvs, 52);
BL_ABI_OFFSET(ncclNetProperties_v9_t, netDeviceType, 56);
BL_ABI_OFFSET(ncclNetProperties_v9_t, netDeviceVersion, 60);
BL_ABI_OFFSET(ncclNetProperties_v9_t, vProps, 64);
BL_ABI_OFFSET(ncclNetProperties_v9_t, maxP2pBytes, 88);
BL_ABI_OFFSET(ncclNetProperties_v9_t, maxCollBytes, 96);

typedef struct {
  const char* name;
  ncclResult_t (*init)(ncclDebugLogger_t logFunction);
  ncclResult_t (*devices)(int* ndev);
  ncclResult_t (*getProperties)(int dev, ncclNetProperties_v9_t* props);
  ncclResult_t (*listen)(int dev, void* handle, void** listenComm);
  ncclResult_t (*connect)(int dev, void* handle, void** sendComm,
                          ncclNetDeviceHandle_v9_t** sendDevComm);
  ncclResult_t (*accept)(void* listenComm, void** recvComm, ncclNetDeviceHandle_v9_t** recvDevComm);
  ncclResult_t (*regMr)(void* comm, void* data, size_t size, int type, void** mhandle);
  ncclResult_t (*regMrDmaBuf)(void* comm, void* data, size_t size, int type, uint64_t offset,
                              int fd, void** mhandle);
  ncclResult_t (*deregMr)(void* comm, void* mhandle);
  ncclResult_t (*isend)(void* sendComm, void* data, size_t size, int tag, void* mhandle,
                        void** request);
  ncclResult_t (*irecv)(void* recvComm, int n, void** data, size_t* sizes, int* tags,
                        void** mhandles, void** request);
  ncclResult_t (*iflush)(void* recvComm, int n, void** data, int* sizes, void** mhandles,
                         void** request);
  ncclResult_t (*test)(void* request, int* done, int* sizes);
  ncclResult_t (*closeSend)(void* sendComm);
  ncclResult_t (*closeRecv)(void* recvComm);
  ncclResult_t (*closeListen)(void* listenComm);
  ncclResult_t (*getDeviceMr)(void* comm, void* mhandle, void** dptr_mhandle);
  ncclResult_t (*irecvConsumed)(void* recvComm, int n, void* request);
  ncclResult_t (*makeVDevice)(int* d, ncclNetVDeviceProps_v9_t* props);
} ncclNet_v9_t;

BL_ABI_SIZE(ncclNet_v9_t, 160);
BL_ABI_COMMON_SLOTS(ncclNet_v9_t);
BL_ABI_SLOT(ncclNet_v9_t, getDeviceMr, 17);
BL_ABI_SLOT(ncclNet_v9_t, irecvConsumed, 18);
BL_ABI_SLOT(ncclNet_v9_t, makeVDevice, 19);

#ifdef __cplusplus
} /* extern "C" */
#endif
