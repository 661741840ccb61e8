// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/check.h"

#include <fmt/format.h>

#include <string>

#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/topo/summary.h"
#include "topology/render/report.h"
#include "topology/render/verdict.h"

namespace beeline::topo {
namespace {

constexpr int kWrong = 1;

}  // namespace

int check(const topology::Graph& graph, const topology::Assignment& assignment) {
  const std::string wrong = topology::findings_text(graph, topology::Severity::kWarning);
  const std::string notes = topology::findings_text(graph, topology::Severity::kNote);
  const std::string text =
      fmt::format("{}\n{}\n{}{}", headline(graph), topology::verdict_text(graph, assignment),
                  shown(wrong), shown(notes));
  const Outcome<void> written = tools::write_output(std::string(tools::kStdout), text);
  if (!written) return tools::print_error(written.error(), tools::kUsage);
  if (!wrong.empty()) return kWrong;
  const bool has_both = !graph.gpus().empty() && !graph.nics().empty();
  return has_both && topology::count_links(graph).can_be_judged() ? 0 : tools::kUsage;
}

}  // namespace beeline::topo
