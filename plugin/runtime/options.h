// SPDX-License-Identifier: Apache-2.0
//
// Translates the parameters to the options of each floor. The floors below do not use Config, so
// that their tests do not need it.
#pragma once

#include "plugin/config/config.h"
#include "plugin/connect/control/control_plane.h"
#include "plugin/device/device_table.h"
#include "plugin/gdr/gpu_direct.h"
#include "plugin/stats/stats_page.h"
#include "plugin/transfer/comm.h"

namespace beeline {

DeviceOptions device_options(const Config& config);
StatsPage::Options stats_options(const Config& config);
ControlOptions control_options(const Config& config);
CommOptions comm_options(const Config& config);
gdr::Options gdr_options(const Config& config);

}  // namespace beeline
