/* SPDX-License-Identifier: Apache-2.0
 *
 * Every version of NCCL's network plugin interface. A plugin exports as many tables as it likes;
 * NCCL takes the newest that it knows itself.
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
