// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/several_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "common/base/host.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/text_style.h"
#include "tools/doctor/peers/cluster.h"
#include "tools/doctor/peers/heat_map.h"
#include "tools/doctor/peers/launch.h"
#include "tools/doctor/peers/member.h"
#include "tools/doctor/report.h"
#include "tools/ranks/rendezvous_socket.h"

namespace beeline::doctor {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostNamedHosts = 4;

bool is_this_host(const std::string& name) {
  const std::string own = host_name();
  return name == "localhost" || name == own || name == own.substr(0, own.find('.'));
}

// An empty name is this host.
Outcome<std::vector<std::string>> hosts_of(const Options& options) {
  std::vector<std::string> hosts = {""};
  if (options.hostfile.empty()) {
    hosts.insert(hosts.end(), options.peers.begin(), options.peers.end());
  } else {
    hosts = BL_TRY(read_hostfile(options.hostfile));
    for (std::string& host : hosts) {
      if (is_this_host(host)) host.clear();
    }
  }
  for (auto at = hosts.begin(); at != hosts.end(); ++at) {
    if (std::find(hosts.begin(), at, *at) == at) continue;
    return fail(fmt::format("{} is named twice", at->empty() ? "this host" : *at));
  }
  return hosts;
}

std::string names_of(const Survey& survey) {
  if (survey.hosts.size() > kMostNamedHosts) return fmt::format("{} hosts", survey.hosts.size());
  std::string names;
  for (const SurveyedHost& host : survey.hosts) {
    names += (names.empty() ? "" : ", ") + host.name;
  }
  return names;
}

std::vector<Examined> examined_hosts(const Survey& survey) {
  std::vector<Examined> hosts;
  for (const SurveyedHost& host : survey.hosts) {
    hosts.push_back(host.examined);
    hosts.back().name = host.name;
  }
  return hosts;
}

std::string text_of(const Survey& survey, const std::vector<Finding>& findings) {
  const tools::TextStyle style = tools::table_style();
  std::string text = text_report(names_of(survey), findings, false, tools::output_style());
  for (const PairTable& table : tables_of(survey)) text += "\n" + table_text(table, style);
  const std::string differences = different_facts(examined_hosts(survey), style.width);
  if (!differences.empty()) text += "\nDifferent between the hosts\n" + differences;
  return text;
}

std::string json_of(const Survey& survey, const std::vector<Finding>& findings) {
  Json document = Json::parse(json_report(names_of(survey), findings));
  document["hosts"] = Json::array();
  for (const SurveyedHost& host : survey.hosts) {
    document["hosts"].push_back({{"name", host.name}, {"plugin", host.rails.plugin}});
  }
  document["pairs"] = Json::array();
  for (const ProbedPair& pair : survey.pairs) {
    document["pairs"].push_back({{"a", name_of(survey, pair.a)},
                                 {"b", name_of(survey, pair.b)},
                                 {"memory", pair.in_gpu_memory ? "gpu" : "host"},
                                 {"failure", pair.failure},
                                 {"gbytes_per_s", pair.gbytes_per_s},
                                 {"round_trip_us", pair.round_trip_us}});
  }
  return document.dump(1) + "\n";
}

Outcome<int> report(const Survey& survey, const Options& options) {
  const std::vector<Finding> findings = judge(survey);
  const std::string text = options.json ? json_of(survey, findings) : text_of(survey, findings);
  BL_TRY(tools::write_output(std::string(tools::kStdout), text));
  if (!options.svg.empty()) {
    const std::string title = "Rails between " + names_of(survey);
    BL_TRY(tools::write_output(options.svg, heat_map_svg(title, tables_of(survey))));
  }
  return has_problem(findings) ? tools::kFailed : 0;
}

Outcome<Survey> survey(std::vector<Peer> peers, const Options& options) {
  tools::Progress progress("examining the hosts");
  return survey_hosts(std::move(peers),
                      {.seconds = options.seconds, .progress = [&progress](std::string what) {
                         progress.say(std::move(what));
                       }});
}

Outcome<int> look_at_cluster(const Options& options) {
  const LaunchedAs place = BL_TRY(place_of_this_process());
  BL_TRY(ranks::check_rendezvous(options.cluster));
  if (place.rank > 0) return join_cluster(options.cluster, place);
  return report(BL_TRY(survey(BL_TRY(gather_cluster(options.cluster, place)), options)), options);
}

Outcome<int> look_at_peers(const Options& options) {
  const std::vector<std::string> hosts = BL_TRY(hosts_of(options));
  const std::string command = options.launch.empty() ? kDefaultLaunch : options.launch;
  return report(BL_TRY(survey(BL_TRY(launch(hosts, command)), options)), options);
}

// Which hosts they are is the user's to correct, before anything is started.
Outcome<void> check_hosts(const Options& options) {
  if (options.cluster.empty()) {
    BL_TRY(hosts_of(options));
  } else {
    BL_TRY(place_of_this_process());
  }
  return {};
}

}  // namespace

int look_at_several_hosts(const Options& options) {
  // A host that goes away is reported, and does not end this process.
  std::signal(SIGPIPE, SIG_IGN);
  if (options.serve) return serve_on_stdio();
  const Outcome<void> checked = check_hosts(options);
  if (!checked) return tools::print_error(checked.error(), tools::kUsage);
  const Outcome<int> status =
      options.cluster.empty() ? look_at_peers(options) : look_at_cluster(options);
  return status ? *status : tools::print_error(status.error());
}

}  // namespace beeline::doctor
