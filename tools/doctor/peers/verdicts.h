// SPDX-License-Identifier: Apache-2.0
//
// Finds the rails and the pairs of rails that do not work, or are slower than others.
#pragma once

#include <set>
#include <vector>

#include "common/base/finding.h"
#include "tools/doctor/peers/survey.h"

namespace beeline::doctor {

// Places in Survey::pairs.
using PairSet = std::set<std::size_t>;

// Those that move less data than others of the same nominal speed and kind of memory, or answer
// later.
PairSet slow_pairs(const Survey& survey);
PairSet late_pairs(const Survey& survey);
PairSet odd_pairs(const Survey& survey);  // of both kinds

// Those odd pairs that are not explained by a rail of which most pairs are odd.
PairSet single_odd_pairs(const Survey& survey);

// A fault of a rail is found once, and not for each pair.
std::vector<Finding> judge(const Survey& survey);

}  // namespace beeline::doctor
