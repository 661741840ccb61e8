// SPDX-License-Identifier: Apache-2.0
#include "topology/render/svg_legend.h"

#include <fmt/format.h>

#include <string_view>

#include "topology/render/svg_sizes.h"

namespace beeline::topology {
namespace {

constexpr double kSample = 30;  // width

const char* text_of(Mark mark) {
  switch (mark) {
    case Mark::kUse: return "a GPU and the NICs that it uses";
    case Mark::kSpare: return "serves no GPU";
    case Mark::kSlowLink: return "slower than it should be";
    case Mark::kIdleLink: return "saving power: it may be faster under load";
    case Mark::kUnknownLink: return "its maximum is unknown";
    case Mark::kFar: return "the NIC is on another NUMA node";
  }
  return "";
}

std::string line(double x, double y, const char* color, double width, const char* more = "") {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
      "stroke-width=\"{:.1f}\" {}/>\n",
      x, y - 4, x + kSample - 8, y - 4, color, width, more);
}

std::string sample_of(Mark mark, double x, double y) {
  switch (mark) {
    case Mark::kUse:
      return line(x, y, "#1769aa", 2.5) +
             fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"#1769aa\"/>\n",
                         x + kSample - 8, y - 4);
    case Mark::kSpare:
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"11\" rx=\"3\" "
          "fill=\"#dbeafe\" stroke=\"#1d4ed8\" stroke-dasharray=\"4 3\"/>\n",
          x, y - 10, kSample - 8);
    case Mark::kSlowLink: return line(x, y, kSlowColor, 4);
    case Mark::kIdleLink: return line(x, y, kLinkColor, 1.5, "stroke-dasharray=\"5 3\"");
    case Mark::kUnknownLink: return line(x, y, kLinkColor, 1.5, "stroke-dasharray=\"1 3\"");
    case Mark::kFar:
      return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"far\">SYS</text>\n", x, y);
  }
  return "";
}

}  // namespace

Legend legend_of(const std::set<Mark>& marks, double y, double width) {
  Legend legend;
  double x = kMargin;
  double line_y = y + kTextLine;
  for (const Mark mark : marks) {
    const std::string_view text = text_of(mark);
    const double room = kSample + kCharacter * static_cast<double>(text.size()) + 2 * kGap;
    if (x > kMargin && x + room > width) {
      x = kMargin;
      line_y += kTextLine;
    }
    legend.svg += sample_of(mark, x, line_y);
    legend.svg +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + kSample, line_y, text);
    x += room;
  }
  if (!marks.empty()) legend.height = line_y - y + kGap / 2;
  return legend;
}

}  // namespace beeline::topology
