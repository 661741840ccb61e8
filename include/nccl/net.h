/* SPDX-License-Identifier: Apache-2.0
 *
 * All versions of NCCL's network plugin interface. A plugin can export several tables; NCCL uses
 * the newest one that it supports.
 */
#pragma once

#include "include/nccl/net_common.h"
#include "include/nccl/net_v10.h"
#include "include/nccl/net_v11.h"
#include "include/nccl/net_v12.h"
#include "include/nccl/net_v6.h"
#include "include/nccl/net_v7.h"
#include "include/nccl/net_v8.h"
#include "include/nccl/net_v9.h"
