// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/protocol.h"

#include <nlohmann/json.hpp>

#include "plugin/checks/kinds.h"
#include "tools/cli/shallow_json.h"
#include "topology/render/utf8.h"

namespace beeline::doctor {

using nlohmann::json;

// The library finds these by their names.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Request, ask, seconds, rail, in_gpu_memory, is_first, handle)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Rail, name, mbps)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RailsOfHost, plugin, rails, has_gpu)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProbeResult, failure, is_wrong, round_trip_us, gbytes_per_s)

static void to_json(json& all, const Examined& examined) {
  all = {{"name", examined.name}, {"card", examined.card}, {"findings", json::array()}};
  for (const Finding& finding : examined.findings) {
    all["findings"].push_back({{"id", finding.id},
                               {"severity", static_cast<int>(finding.severity)},
                               {"subject", finding.subject},
                               {"fact", finding.fact}});
  }
}

static void from_json(const json& all, Examined& examined) {
  all.at("name").get_to(examined.name);
  all.at("card").get_to(examined.card);
  for (const json& one : all.at("findings")) {
    // The id has to be a literal, so it is that of the table, if this version has such a finding.
    const checks::Kind* const kind = checks::find_kind(one.at("id").get<std::string>());
    if (kind == nullptr) continue;
    examined.findings.push_back({.id = kind->id,
                                 .severity = static_cast<Severity>(one.at("severity").get<int>()),
                                 .subject = one.at("subject").get<std::string>(),
                                 .fact = one.at("fact").get<std::string>()});
  }
}

namespace {

constexpr const char* kRefusal = "refusal";

// Text of other programs may not be UTF-8, which JSON has to be.
std::string line_of(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

// The answer, unless the host refuses or writes something else.
template <class Message>
Outcome<Message> decoded(const std::string& line, const char* key = nullptr) {
  try {
    const json document = json::parse(line, tools::AtMostDeep());
    // Without line breaks, with which a host could add lines of its own to an error.
    if (document.contains(kRefusal)) {
      return fail(topology::printable(document[kRefusal].get<std::string>()));
    }
    return (key == nullptr ? document : document.at(key)).get<Message>();
  } catch (const json::exception&) {
    return fail("answers something else: \"" + line.substr(0, 80) +
                "\"; is the same version of beeline installed there?");
  }
}

}  // namespace

std::string encode(const Request& request) { return line_of(request); }
std::string encode(const Examined& examined) { return line_of(examined); }
std::string encode(const RailsOfHost& rails) { return line_of(rails); }
std::string encode(const ProbeResult& result) { return line_of(result); }
std::string encode_refusal(const std::string& why) { return line_of({{kRefusal, why}}); }
std::string encode_text(const std::string& text) { return line_of({{"text", text}}); }

Outcome<Request> decode_request(const std::string& line) {
  Request request = BL_TRY(decoded<Request>(line));
  if (request.ask > Ask::kEnd) request.ask = Ask::kEnd;
  return request;
}
Outcome<Examined> decode_examined(const std::string& line) { return decoded<Examined>(line); }
Outcome<RailsOfHost> decode_rails(const std::string& line) { return decoded<RailsOfHost>(line); }
Outcome<ProbeResult> decode_result(const std::string& line) { return decoded<ProbeResult>(line); }
Outcome<std::string> decode_text(const std::string& line) {
  return decoded<std::string>(line, "text");
}

}  // namespace beeline::doctor
