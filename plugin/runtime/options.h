// SPDX-License-Identifier: Apache-2.0
//
// From the one table of parameters to what each floor wants to know: the floors below know no
// Config, so that their tests need none.
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
