// SPDX-License-Identifier: Apache-2.0
#include "tools/perf/json.h"

#include <nlohmann/json.hpp>

#include "tools/cli/shallow_json.h"

namespace beeline::perf {
namespace {

using nlohmann::json;

// The plugin chooses the names of devices. Bytes that are not valid UTF-8 must not make this fail.
std::string text_of(const json& all, int indent = -1) {
  return all.dump(indent, ' ', false, json::error_handler_t::replace);
}

json json_of_terms(const Options& options) {
  return {
      {"protocol", "beeline-perf-2"}, {"pattern", options.pattern},       {"ranks", options.ranks},
      {"sizes", options.sizes},       {"depth", options.depth},           {"comms", options.comms},
      {"slice", options.slice},       {"iterations", options.iterations}, {"check", options.check}};
}

// Null for host memory.
json json_of(const std::optional<GpuFacts>& gpu) {
  if (!gpu) return nullptr;
  return {
      {"ordinal", gpu->ordinal}, {"name", gpu->name}, {"pci", gpu->pci}, {"compute", gpu->compute}};
}

json json_of(const RankFacts& facts) {
  json all{{"name", facts.plugin}, {"abi", facts.abi},   {"file", facts.file},
           {"pid", facts.pid},     {"host", facts.host}, {"devices", facts.devices},
           {"text", facts.text}};
  if (facts.memory) {
    all["memory"] = facts.memory->kind;
    all["gpu"] = json_of(facts.memory->gpu);
    all["flush"] = facts.memory->flush;
  }
  return all;
}

json json_of(const CpuPerMessage& cpu) {
  return {{"thread_user_us", cpu.thread_user_us},
          {"thread_system_us", cpu.thread_system_us},
          {"process_user_us", cpu.process_user_us},
          {"process_system_us", cpu.process_system_us}};
}

json json_of(const Row& row) {
  json all{{"size", row.size()}, {"wrong", row.wrong()}};
  for (const Row::Entry& entry : row.entries()) {
    std::visit([&](auto number) { all[entry.key] = number; }, entry.number);
  }
  if (row.cpu()) all["cpu"] = json_of(*row.cpu());
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

std::optional<GpuFacts> gpu_of(const json& gpu) {
  if (gpu.is_null()) return std::nullopt;
  return GpuFacts{gpu.value("ordinal", 0), gpu.value("name", ""), gpu.value("pci", ""),
                  gpu.value("compute", "")};
}

CpuPerMessage cpu_of(const json& cpu) {
  return {.thread_user_us = cpu.value("thread_user_us", 0.0),
          .thread_system_us = cpu.value("thread_system_us", 0.0),
          .process_user_us = cpu.value("process_user_us", 0.0),
          .process_system_us = cpu.value("process_system_us", 0.0)};
}

Row::Number number_of(const json& number) {
  if (number.is_number_unsigned()) return number.get<std::uint64_t>();
  return number.get<double>();
}

Hello hello_of(const json& hello) {
  return {.rank = hello.at("rank").get<size_t>(), .about = hello.at("about").get<std::string>()};
}

RankFacts facts_of(const json& all) {
  RankFacts facts;
  facts.plugin = all.value("name", "");
  facts.abi = all.value("abi", 0);
  facts.file = all.value("file", "");
  facts.pid = all.value("pid", 0);
  facts.host = all.value("host", "");
  for (const json& device : all.at("devices")) facts.devices.push_back(device.get<std::string>());
  facts.text = all.value("text", "");
  if (all.contains("memory")) {
    facts.memory =
        MemoryFacts{all.value("memory", ""), gpu_of(all.at("gpu")), all.value("flush", false)};
  }
  return facts;
}

Status status_of(const json& status) {
  return {.done = status.value("done", std::uint64_t{0}),
          .phase = status.value("phase", ""),
          .waiting = status.value("waiting", "")};
}

Row row_of_json(const json& all) {
  Row row(all.value("size", std::uint64_t{0}));
  row.set_wrong(all.value("wrong", std::uint64_t{0}));
  for (const auto& [key, value] : all.items()) {
    if (key == "size" || key == "wrong") continue;
    if (key == "cpu") {
      row.set_cpu(cpu_of(value));
    } else {
      row.set(key, number_of(value));
    }
  }
  return row;
}

// Exceptions of nlohmann-json are caught only here. The text may come from an unknown process.
template <class Message>
std::optional<Message> decode(Message (*read)(const json&), const std::string& body) {
  try {
    return read(json::parse(body, tools::AtMostDeep()));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

std::string terms_of(const Options& options) { return text_of(json_of_terms(options)); }

std::string encode(const Hello& hello) {
  return text_of({{"rank", hello.rank}, {"about", hello.about}});
}

std::string encode(const RankFacts& facts) { return text_of(json_of(facts)); }

std::string encode(const Status& status) {
  return text_of({{"done", status.done}, {"phase", status.phase}, {"waiting", status.waiting}});
}

std::string encode(const Row& row) { return text_of(json_of(row)); }

std::optional<Hello> decode_hello(const std::string& body) { return decode(hello_of, body); }
std::optional<RankFacts> decode_facts(const std::string& body) { return decode(facts_of, body); }
std::optional<Status> decode_status(const std::string& body) { return decode(status_of, body); }
std::optional<Row> decode_row(const std::string& body) { return decode(row_of_json, body); }

std::string to_json(const Options& options, const Pattern& pattern, const Results& results) {
  const RankFacts& first = results.ranks.front();
  json all{{"pattern", pattern.name},
           {"plugin", first.plugin},
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
  for (const RankFacts& facts : results.ranks) all["ranks"].push_back(json_of(facts));
  for (const MergedRow& row : results.rows) all["rows"].push_back(json_of(pattern, row));
  return text_of(all, 2);
}

}  // namespace beeline::perf
