// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/protocol.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "plugin/checks/kinds.h"
#include "tools/cli/shallow_json.h"
#include "topology/render/utf8.h"

namespace beeline::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRefusal = "refusal";

// Text of other programs may not be UTF-8, which JSON has to be.
std::string line_of(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The answer, unless the host refuses or writes something else.
template <class Read>
auto decoded(const std::string& line, Read&& read) -> Outcome<decltype(read(Json()))> {
  try {
    const Json document = Json::parse(line, tools::AtMostDeep());
    // Without line breaks, with which a host could add lines of its own to an error.
    if (document.contains(kRefusal)) {
      return fail(topology::printable(document[kRefusal].get<std::string>()));
    }
    return read(document);
  } catch (const nlohmann::json::exception&) {
    return fail("answers something else: \"" + line.substr(0, 80) +
                "\"; is the same version of beeline installed there?");
  }
}

// None if this version has no such finding.
std::optional<Finding> read_finding(const Json& one) {
  // The id has to be a literal, so it is that of the table.
  const checks::Kind* const kind = checks::find_kind(one.at("id").get<std::string>());
  if (kind == nullptr) return std::nullopt;
  return Finding{.id = kind->id,
                 .severity = static_cast<Severity>(one.at("severity").get<int>()),
                 .subject = one.at("subject").get<std::string>(),
                 .fact = one.at("fact").get<std::string>()};
}

}  // namespace

std::string encode(const Request& request) {
  return line_of({{"ask", static_cast<int>(request.ask)},
                  {"seconds", request.seconds},
                  {"rail", request.rail},
                  {"in_gpu_memory", request.in_gpu_memory},
                  {"is_first", request.is_first},
                  {"handle", request.handle}});
}

std::string encode(const Examined& examined) {
  Json findings = Json::array();
  for (const Finding& finding : examined.findings) {
    findings.push_back({{"id", finding.id},
                        {"severity", static_cast<int>(finding.severity)},
                        {"subject", finding.subject},
                        {"fact", finding.fact}});
  }
  Json card = Json::array();
  for (const auto& [name, value] : examined.card) card.push_back(Json::array({name, value}));
  return line_of({{"name", examined.name}, {"card", card}, {"findings", findings}});
}

std::string encode(const RailsOfHost& rails) {
  Json list = Json::array();
  for (const Rail& rail : rails.rails) list.push_back({{"name", rail.name}, {"mbps", rail.mbps}});
  return line_of({{"plugin", rails.plugin}, {"rails", list}, {"has_gpu", rails.has_gpu}});
}

std::string encode(const ProbeResult& result) {
  return line_of({{"failure", result.failure},
                  {"is_wrong", result.is_wrong},
                  {"round_trip_us", result.round_trip_us},
                  {"gbytes_per_s", result.gbytes_per_s}});
}

std::string encode_refusal(const std::string& why) { return line_of({{kRefusal, why}}); }

std::string encode_text(const std::string& text) { return line_of({{"text", text}}); }

Outcome<Request> decode_request(const std::string& line) {
  return decoded(line, [](const Json& document) {
    Request request;
    const int ask = document.at("ask").get<int>();
    request.ask = ask < 0 || ask > static_cast<int>(Ask::kEnd) ? Ask::kEnd : static_cast<Ask>(ask);
    document.at("seconds").get_to(request.seconds);
    document.at("rail").get_to(request.rail);
    document.at("in_gpu_memory").get_to(request.in_gpu_memory);
    document.at("is_first").get_to(request.is_first);
    document.at("handle").get_to(request.handle);
    return request;
  });
}

Outcome<Examined> decode_examined(const std::string& line) {
  return decoded(line, [](const Json& document) {
    Examined examined;
    document.at("name").get_to(examined.name);
    document.at("card").get_to(examined.card);
    for (const Json& one : document.at("findings")) {
      if (auto finding = read_finding(one)) examined.findings.push_back(*std::move(finding));
    }
    return examined;
  });
}

Outcome<RailsOfHost> decode_rails(const std::string& line) {
  return decoded(line, [](const Json& document) {
    RailsOfHost rails;
    document.at("plugin").get_to(rails.plugin);
    document.at("has_gpu").get_to(rails.has_gpu);
    for (const Json& one : document.at("rails")) {
      rails.rails.push_back(
          {.name = one.at("name").get<std::string>(), .mbps = one.at("mbps").get<int>()});
    }
    return rails;
  });
}

Outcome<ProbeResult> decode_result(const std::string& line) {
  return decoded(line, [](const Json& document) {
    ProbeResult result;
    document.at("failure").get_to(result.failure);
    document.at("is_wrong").get_to(result.is_wrong);
    document.at("round_trip_us").get_to(result.round_trip_us);
    document.at("gbytes_per_s").get_to(result.gbytes_per_s);
    return result;
  });
}

Outcome<std::string> decode_text(const std::string& line) {
  return decoded(line, [](const Json& document) { return document.at("text").get<std::string>(); });
}

}  // namespace beeline::doctor
