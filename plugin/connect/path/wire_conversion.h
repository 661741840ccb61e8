// SPDX-License-Identifier: Apache-2.0
//
// Conversions between the structs of messages and those of the device floor, of QpOptions and of
// verbs.
#pragma once

#include <infiniband/verbs.h>

#include "plugin/connect/path/qp_options.h"
#include "plugin/wire/message_path.h"

namespace beeline {

wire::PortSettings settings_of(const QpOptions& options, const GidPolicy& gid);
GidPolicy gid_policy(const wire::PortSettings& settings);

wire::Ece to_wire(const ibv_ece& ece) noexcept;
ibv_ece to_ibv(const wire::Ece& ece) noexcept;
ibv_gid to_ibv(const Gid& gid) noexcept;

}  // namespace beeline
