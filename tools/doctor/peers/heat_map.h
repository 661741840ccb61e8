// SPDX-License-Identifier: Apache-2.0
//
// The tables of pairs of rails as a picture, in which the odd ones stand out.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/peers/tables.h"

namespace beeline::doctor {

std::string heat_map_svg(const std::string& title, const std::vector<PairTable>& tables);

}  // namespace beeline::doctor
