/* SPDX-License-Identifier: Apache-2.0
 *
 * Assertions about the layouts of NCCL's interface. Each layout is checked where it is declared,
 * for LP64, the only data model that NCCL supports.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

#define BL_ABI_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type " has another size")
#define BL_ABI_OFFSET(type, member, bytes) \
  static_assert(offsetof(type, member) == (bytes), #type "." #member " is elsewhere")
/* A function table is an array of pointers; slot 0 is the name. */
#define BL_ABI_SLOT(type, member, slot) BL_ABI_OFFSET(type, member, sizeof(void*) * (slot))

/* The slots that are at the same place in every version. */
#define BL_ABI_COMMON_SLOTS(type)      \
  BL_ABI_SLOT(type, name, 0);          \
  BL_ABI_SLOT(type, init, 1);          \
  BL_ABI_SLOT(type, devices, 2);       \
  BL_ABI_SLOT(type, getProperties, 3); \
  BL_ABI_SLOT(type, listen, 4);        \
  BL_ABI_SLOT(type, connect, 5);       \
  BL_ABI_SLOT(type, accept, 6);        \
  BL_ABI_SLOT(type, regMr, 7);         \
  BL_ABI_SLOT(type, regMrDmaBuf, 8);   \
  BL_ABI_SLOT(type, deregMr, 9);       \
  BL_ABI_SLOT(type, isend, 10);        \
  BL_ABI_SLOT(type, irecv, 11);        \
  BL_ABI_SLOT(type, iflush, 12);       \
  BL_ABI_SLOT(type, test, 13);         \
  BL_ABI_SLOT(type, closeSend, 14);    \
  BL_ABI_SLOT(type, closeRecv, 15);    \
  BL_ABI_SLOT(type, closeListen, 16)
