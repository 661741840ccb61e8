// SPDX-License-Identifier: Apache-2.0
//
// See check.h.
#include "tools/topo/check.h"

#include <string>

#include "tools/outcome.h"
#include "tools/output_file.h"
#include "tools/topo/summary.h"
#include "topology/render/report.h"
#include "topology/render/verdict.h"

namespace beeline::topo {
namespace {

constexpr int kWrong = 1;

}  // namespace

int check(const topology::Graph& graph, const topology::Assignment& assignment) {
  const std::string wrong = topology::slow_links_text(graph);
  const tools::Outcome<void> written = tools::write_output(
      std::string(tools::kStdout),
      headline(graph) + "\n" + topology::verdict_text(graph, assignment) + "\n" + shown(wrong));
  if (!written) return tools::complain(written.error(), tools::kUsage);
  if (!wrong.empty()) return kWrong;
  const topology::LinkCount links = topology::count_links(graph);
  const bool can_tell = !graph.gpus().empty() && !graph.nics().empty() && links.all > links.unknown;
  return can_tell ? 0 : tools::kUsage;
}

}  // namespace beeline::topo
