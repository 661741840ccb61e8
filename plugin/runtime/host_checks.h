// SPDX-License-Identifier: Apache-2.0
//
// What `beeline doctor` would find that matters at init and is quickly read: limits, addresses and
// MTUs of the devices in use, and settings. It sends nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/base/finding.h"
#include "plugin/config/environ.h"
#include "plugin/device/device.h"

namespace beeline {

// Only what is wrong. Nothing that the scan of devices, the topology or a failed registration
// reports as well.
std::vector<Finding> check_host(std::span<const Device> devices, const Environ& environ,
                                const std::string& sysfs_root);

}  // namespace beeline
