// SPDX-License-Identifier: Apache-2.0
//
// The requested data goes to stdout, messages about files go to stderr.
#include "tools/topo/topo.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_style.h"
#include "tools/cli/text_width.h"
#include "tools/topo/compare.h"
#include "tools/topo/machine.h"
#include "tools/topo/summary.h"
#include "topology/render/json.h"
#include "topology/render/matrix.h"
#include "topology/render/report.h"
#include "topology/render/svg.h"
#include "topology/render/verdict.h"
#include "topology/write/nccl_xml.h"

namespace beeline::topo {
namespace {

using tools::kStdout;

// Quoted for a shell if necessary.
std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@";
  if (text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

// The path is absolute, because NCCL's processes may start in other folders.
std::string how_to_use(const std::string& nccl_xml) {
  std::error_code unknown;
  const std::filesystem::path absolute = std::filesystem::absolute(nccl_xml, unknown);
  return "; to use it: export NCCL_TOPO_FILE=" +
         quoted(unknown ? nccl_xml : absolute.lexically_normal().string());
}

// Returns the exit status. `hint`: what to do with the file.
int write(const std::string& path, const std::string& text, const std::string& hint = "") {
  const Outcome<void> written = tools::write_output(path, text);
  if (!written) return tools::print_error(written.error());
  if (path != kStdout) fmt::print(stderr, "wrote {}{}\n", path, hint);
  return 0;
}

// NCCL would believe an empty description and find no devices.
int write_for_nccl(const std::string& path, const topology::Graph& graph, int version) {
  if (graph.gpus().empty() && graph.nics().empty()) {
    return tools::print_error(fmt::format(
        "--nccl-xml {}: not written: there is no GPU and no RDMA NIC to describe; write "
        "the file on the node where the job will run",
        path));
  }
  return write(path, topology::write_nccl_xml(graph, version), how_to_use(path));
}

constexpr const char* kMore =
    "\n--all also shows every device, all distances and standby NICs; --svg FILE draws a picture\n";

std::string text_of(const Options& options, const topology::Graph& graph,
                    const topology::Assignment& assignment) {
  const tools::TextStyle style = tools::table_style();
  if (options.brief) {
    return tools::fitted(topology::gpu_nic_matrix_text(graph, assignment, style.width),
                         style.width);
  }
  std::string text = summary(graph, assignment, style);
  if (options.all) return text + details(graph, assignment, style);
  const bool has_more = !graph.gpus().empty() || !graph.nics().empty();
  return has_more ? text + tools::fitted(kMore, style.width) : text;
}

// `beeline topo --check`, for scripts that check a node before a job runs on it: prints the
// problems on stdout. Returns the exit status: 0 if there are none, kFailed if there are some,
// kUsage if that is unknown, because there is no GPU or no RDMA NIC, or because the possible speed
// of every link is unknown.
int check(const Options& options, const topology::Graph& graph,
          const topology::Assignment& assignment) {
  const std::string warnings = topology::findings_text(graph, topology::Severity::kWarning);
  const std::string notes = topology::findings_text(graph, topology::Severity::kNote);
  const std::string text =
      fmt::format("{}\n{}\n{}{}", headline(graph), topology::verdict_text(graph, assignment),
                  shown(warnings), shown(notes));
  const Outcome<void> written = tools::write_output(
      std::string(kStdout), options.json ? topology::to_json(graph, assignment)
                                         : tools::fitted(text, tools::terminal_width()));
  if (!written) return tools::print_error(written.error(), tools::kUsage);
  if (!warnings.empty()) return tools::kFailed;
  const bool has_both = !graph.gpus().empty() && !graph.nics().empty();
  return has_both && topology::count_links(graph).can_be_judged() ? 0 : tools::kUsage;
}

bool has_stdout(const std::string& file) { return file == kStdout; }

}  // namespace

int run(const Options& options) {
  if (!options.diff.empty()) return compare(options);
  const Outcome<topology::Graph> graph = read_machine(options);
  if (!graph) {
    const bool is_mistake = !options.from.empty() || !options.gpus.empty() || options.check;
    return tools::print_error(graph.error(), is_mistake ? tools::kUsage : tools::kFailed);
  }
  const topology::Assignment assignment =
      topology::assign(*graph, {.max_nics_per_gpu = options.max_nics_per_gpu});

  // If one output cannot be written, the others still are.
  int status = 0;
  if (options.check) {
    status = check(options, *graph, assignment);
  } else if (options.json) {
    status |= write(std::string(kStdout), topology::to_json(*graph, assignment));
  } else if (!has_stdout(options.svg) && !has_stdout(options.nccl_xml)) {
    status |= write(std::string(kStdout), text_of(options, *graph, assignment));
  }
  if (!options.svg.empty()) status |= write(options.svg, topology::to_svg(*graph, assignment));
  if (!options.nccl_xml.empty())
    status |= write_for_nccl(options.nccl_xml, *graph, options.nccl_xml_version);
  return status;
}

}  // namespace beeline::topo
