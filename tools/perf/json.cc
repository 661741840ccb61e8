// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/json.h"

#include <nlohmann/json.hpp>

#include "tools/cli/shallow_json.h"

namespace beeline::perf {

using nlohmann::json;

// The library finds these by their names.
static void to_json(json& all, const std::optional<GpuFacts>& gpu);
static void from_json(const json& all, std::optional<GpuFacts>& gpu);
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuFacts, ordinal, name, pci, compute)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, name, abi, file, pid, host, devices, text, memory,
                                   gpu, flush)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Status, done, phase, waiting)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ended, code, why)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(CpuPerMessage, thread_user_us, thread_system_us, process_user_us,
                                   process_system_us)

// Null for memory of the host.
static void to_json(json& all, const std::optional<GpuFacts>& gpu) {
  all = gpu ? json(*gpu) : json();
}

static void from_json(const json& all, std::optional<GpuFacts>& gpu) {
  if (!all.is_null()) gpu = all.get<GpuFacts>();
}

namespace {

// The plugin chooses the names of devices. Bytes that are not valid UTF-8 must not make this fail.
std::string text_of(const json& all, int indent = -1) {
  return all.dump(indent, ' ', false, json::error_handler_t::replace);
}

json json_of_terms(const Options& options) {
  return {{"protocol", "beeline-perf-2"}, {"pattern", options.pattern},
          {"ranks", options.ranks},       {"sizes", options.sizes},
          {"depth", options.depth},       {"comms", options.comms},
          {"slice", options.slice},       {"iterations", options.iterations},
          {"check", options.check},       {"warm_up", options.warm_up.value_or(0)}};
}

json json_of(const Row& row) {
  json all{{"size", row.size()}, {"wrong", row.wrong()}};
  for (const Row::Entry& entry : row.entries()) {
    std::visit([&](auto number) { all[entry.key] = number; }, entry.number);
  }
  if (row.cpu()) all["cpu"] = *row.cpu();
  return all;
}

json json_of(const Pattern& pattern, const MergedRow& row) {
  json all{{"size", row.size},
           {"count", row.count},
           {"type", pattern.type},
           {"redop", pattern.redop},
           {"wrong", row.wrong}};
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (row.values[i]) all[pattern.columns[i].key] = *row.values[i];
  }
  all["ranks"] = json::array();
  for (const Row& share : row.shares) all["ranks"].push_back(json_of(share));
  return all;
}

Row::Number number_of(const json& number) {
  if (number.is_number_unsigned()) return number.get<std::uint64_t>();
  return number.get<double>();
}

Row row_of_json(const json& all) {
  Row row(all.value("size", std::uint64_t{0}));
  row.set_wrong(all.value("wrong", std::uint64_t{0}));
  for (const auto& [key, value] : all.items()) {
    if (key == "size" || key == "wrong") continue;
    if (key == "cpu") {
      row.set_cpu(value.get<CpuPerMessage>());
    } else {
      row.set(key, number_of(value));
    }
  }
  return row;
}

// Exceptions of nlohmann-json are caught only here.
template <class Read>
auto decode(const std::string& body, Read&& read) -> std::optional<decltype(read(json()))> {
  try {
    return read(json::parse(body, tools::AtMostDeep()));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

template <class Message>
std::optional<Message> decode(const std::string& body) {
  return decode(body, [](const json& all) { return all.get<Message>(); });
}

}  // namespace

std::string terms_of(const Options& options) { return text_of(json_of_terms(options)); }

std::string encode(const RankFacts& facts) { return text_of(facts); }
std::string encode(const Status& status) { return text_of(status); }
std::string encode(const Row& row) { return text_of(json_of(row)); }
std::string encode(const Ended& ended) { return text_of(ended); }

std::optional<RankFacts> decode_facts(const std::string& body) { return decode<RankFacts>(body); }
std::optional<Status> decode_status(const std::string& body) { return decode<Status>(body); }
std::optional<Row> decode_row(const std::string& body) { return decode(body, row_of_json); }
std::optional<Ended> decode_ended(const std::string& body) { return decode<Ended>(body); }

std::string to_json(const Net& net, const std::vector<Device>& devices) {
  json all{{"plugin", net.calls.name}, {"abi", net.abi}, {"file", net.file}};
  all["devices"] = json::array();
  for (const Device& device : devices) {
    const ncclNetProperties_v12_t& props = device.props;
    const int parts = std::clamp(props.vProps.ndevs, 0, int{NCCL_NET_MAX_DEVS_PER_NIC_V12});
    all["devices"].push_back(
        {{"index", device.index},
         {"name", device.name},
         {"pci", props.pciPath == nullptr ? "" : props.pciPath},
         {"port", props.port},
         {"speed_mbps", props.speed},
         {"memory", pointer_kinds(props.ptrSupport)},
         {"made_of", std::vector(props.vProps.devs, props.vProps.devs + parts)}});
  }
  return text_of(all, 2) + "\n";
}

std::string to_json(const Options& options, const Pattern& pattern, const Results& results) {
  const RankFacts& first = results.ranks.front();
  json all{{"pattern", pattern.name},
           {"plugin", first.name},
           {"abi", first.abi},
           {"options",
            {{"ranks", options.ranks},
             {"comms", options.comms},
             {"depth", options.depth},
             {"slice", options.slice},
             {"seed", options.seed},
             {"check", options.check},
             {"memory", to_string(options.memory)},
             {"flush", to_string(options.flush)}}},
           {"ranks", json::array()},
           {"rows", json::array()},
           {"compared", options.check ? json(compared(pattern, options)) : json()},
           {"wrong", results.wrong},
           {"average", {{pattern.average, results.average}}}};
  for (const RankFacts& facts : results.ranks) all["ranks"].push_back(facts);
  for (const MergedRow& row : results.rows) all["rows"].push_back(json_of(pattern, row));
  return text_of(all, 2);
}

}  // namespace beeline::perf
