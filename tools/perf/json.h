// SPDX-License-Identifier: Apache-2.0
//
// JSON of the messages between a rank and the coordinator (messages.h), and of a run's results.
// Only json.cc includes nlohmann-json, because compiling that header is slow.
//
// The decode functions return none if the text was not made by encode().
#pragma once

#include <optional>
#include <string>

#include "tools/perf/devices.h"
#include "tools/perf/messages.h"
#include "tools/perf/options.h"
#include "tools/perf/pattern.h"
#include "tools/perf/results.h"
#include "tools/perf/row.h"

namespace beeline::perf {

// The options that must be equal on all ranks; otherwise the ranks would wait for different things.
// If they are equal, the texts are.
std::string terms_of(const Options& options);

std::string encode(const RankFacts& facts);
std::string encode(const Status& status);
std::string encode(const Row& row);
std::string encode(const Ended& ended);

std::optional<RankFacts> decode_facts(const std::string& body);
std::optional<Status> decode_status(const std::string& body);
std::optional<Row> decode_row(const std::string& body);
std::optional<Ended> decode_ended(const std::string& body);

// What --list prints with --json.
std::string to_json(const Net& net, const std::vector<Device>& devices);

// The text for --json.
std::string to_json(const Options& options, const Pattern& pattern, const Results& results);

}  // namespace beeline::perf
