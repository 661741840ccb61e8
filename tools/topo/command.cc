// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/topo/topo.h"

namespace beeline::topo {
namespace {

// The values as given on the command line, where a count may be negative.
struct RawOptions {
  Options options;
  int max_nics_per_gpu = 0;
};

// Whether --diff is given without options that it does not allow.
bool is_alone(const Options& options) {
  return options.from.empty() && options.svg.empty() && options.nccl_xml.empty() && !options.all &&
         !options.brief && !options.check && options.max_nics_per_gpu == 0;
}

Outcome<Options> check_options(const RawOptions& raw) {
  Options options = raw.options;
  if (raw.max_nics_per_gpu < 0) {
    return fail(fmt::format("--max-nics-per-gpu {}: write a count, or 0 for no limit",
                            raw.max_nics_per_gpu));
  }
  options.max_nics_per_gpu = static_cast<std::size_t>(raw.max_nics_per_gpu);

  const std::array to_stdout{options.json,
                             options.brief,
                             options.all,
                             options.check && !options.json,
                             options.svg == tools::kStdout,
                             options.nccl_xml == tools::kStdout};
  if (std::ranges::count(to_stdout, true) > 1) {
    return fail(
        "--all, --brief, --check, --json, --svg - and --nccl-xml -: only one can use stdout; name "
        "files for the others");
  }
  if (options.nccl_xml_version < 0 || options.nccl_xml_version > 2) {
    return fail(fmt::format("--nccl-xml-version {}: write 1 for NCCL or 2 for RCCL",
                            options.nccl_xml_version));
  }
  if (!options.svg.empty() && options.svg == options.nccl_xml) {
    return fail(fmt::format("--svg and --nccl-xml both name {}; name two files", options.svg));
  }
  if (!options.diff.empty() && !is_alone(options)) {
    return fail("--diff A B shows only differences; it can be combined only with --gpu and --json");
  }
  return options;
}

void add_options(tools::Subcommand topo, RawOptions& raw) {
  Options& options = raw.options;
  topo.add("--from", options.from,
           "Read this instead of the live machine: an XML file of NCCL (NCCL_TOPO_DUMP_FILE) or "
           "hwloc (lstopo --of xml), - for stdin, or a folder like /sys",
           "FILE");
  topo.add_each("--gpu", options.gpus, "Treat this PCI device as a GPU; may be repeated",
                "ADDRESS");
  topo.add("--max-nics-per-gpu", raw.max_nics_per_gpu,
           "Assign at most N NICs to each GPU (0: no limit)", "N");
  topo.add_flag("--all", options.all, "Also show every device, all distances and standby NICs");
  topo.add_flag("--brief", options.brief, "Show only the distance of each NIC from each GPU");
  topo.add_flag("--check", options.check,
                "Show only problems. Exit status 0: there are none, 1: there are some, 2: unknown");
  topo.add_pair(
      "--diff", options.diff,
      "Show the differences between two machines, each named as for --from. Exit status 0: there "
      "are none, 1: there are some, 2: a machine cannot be read",
      "A B");
  topo.add_flag("--json", options.json,
                "Print JSON instead of text: everything, also with --check, or the "
                "differences");
  topo.add("--svg", options.svg, "Draw the machine into this SVG file; - is stdout", "FILE");
  topo.add("--nccl-xml", options.nccl_xml, "Write a file for NCCL_TOPO_FILE; - is stdout", "FILE");
  topo.add("--nccl-xml-version", options.nccl_xml_version,
           "1 for NCCL, 2 for RCCL (0: as in the file that --from names, or by the GPUs' vendor)",
           "N");
}

}  // namespace

void add_command(tools::CommandLine& line) {
  const auto raw = std::make_shared<RawOptions>();
  const auto start = [raw] {
    const Outcome<Options> options = check_options(*raw);
    if (!options) return tools::print_error(options.error(), tools::kUsage);
    return run(*options);
  };
  add_options(
      line.add("topo", "Show GPUs, NICs, their distances, and which NIC each GPU uses", start),
      *raw);
}

}  // namespace beeline::topo
