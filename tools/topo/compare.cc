// SPDX-License-Identifier: Apache-2.0
#include "tools/topo/compare.h"

#include <fmt/format.h>

#include "tools/cli/exit_status.h"
#include "tools/cli/output_file.h"
#include "tools/cli/text_width.h"
#include "tools/topo/machine.h"
#include "tools/topo/summary.h"
#include "topology/render/difference.h"
#include "topology/render/name_list.h"

namespace beeline::topo {
namespace {

constexpr int kDiffers = 1;

Outcome<topology::Graph> read_one(const Options& options, const std::string& from) {
  Options one;
  one.from = from;
  one.from_option = "--diff";
  one.gpus = options.gpus;
  return read_machine(one);
}

}  // namespace

int compare(const Options& options) {
  const Outcome<topology::Graph> a = read_one(options, options.diff[0]);
  if (!a) return tools::print_error(a.error(), tools::kUsage);
  const Outcome<topology::Graph> b = read_one(options, options.diff[1]);
  if (!b) return tools::print_error(b.error(), tools::kUsage);

  const topology::Difference difference = topology::difference_of(*a, *b);
  std::string text = fmt::format("A: {}\nB: {}\n", headline(*a), headline(*b));
  text += difference.text.empty() ? "the same\n" : shown(difference.text);
  if (difference.not_compared > 0) {
    text += fmt::format("({} not compared, because only one of the two sources has them)\n",
                        topology::count_of(difference.not_compared, "fact"));
  }
  text =
      options.json ? topology::to_json(difference) : tools::fitted(text, tools::terminal_width());
  const Outcome<void> written = tools::write_output(std::string(tools::kStdout), text);
  if (!written) return tools::print_error(written.error(), tools::kUsage);
  return difference.text.empty() ? 0 : kDiffers;
}

}  // namespace beeline::topo
