// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/peers/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topology/xml_escape.h"

namespace beeline::doctor {
namespace {

constexpr int kMargin = 24;
constexpr int kCellWidth = 84;
constexpr int kCellHeight = 40;
constexpr int kTitleHeight = 40;
constexpr int kHeadHeight = 56;
constexpr int kCharWidth = 8;
constexpr int kLegendHeight = 48;

// White for nothing, dark green for the most.
std::string shade(double share) {
  const auto mixed = [share](int none, int most) {
    return static_cast<int>(std::lround(none + (most - none) * std::clamp(share, 0.0, 1.0)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(247, 26), mixed(252, 127), mixed(245, 80));
}

std::string fill_of(const Cell& cell) {
  switch (cell.state) {
    case CellState::kFailed: return "#c62828";
    case CellState::kSlow:
    case CellState::kLate: return "#f9a825";
    case CellState::kNotProbed: return "#eeeeee";
    case CellState::kUsual: break;
  }
  return shade(cell.share);
}

std::string ink_on(const Cell& cell) {
  const bool is_dark =
      cell.state == CellState::kFailed || (cell.state == CellState::kUsual && cell.share > 0.6);
  return is_dark ? "#ffffff" : "#212121";
}

std::string text_at(int x, int y, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", x, y, more,
                     topology::escape_xml(text));
}

std::string heading_of(const PairTable& table) {
  return table.title + "; GB/s of the slower direction, and round trip";
}

class Picture {
 public:
  Picture(const std::string& title, const std::vector<PairTable>& tables) {
    std::size_t longest = 0;
    std::size_t heading = title.size() * 3 / 2;  // its characters are larger
    std::size_t columns = 1;
    for (const PairTable& table : tables) {
      longest = std::max(longest, table.row_title.size());
      for (const std::string& row : table.rows) longest = std::max(longest, row.size());
      columns = std::max(columns, table.columns.size());
      heading = std::max(heading, heading_of(table).size());
    }
    left_ = kMargin + static_cast<int>(longest) * kCharWidth + 16;
    width_ = std::max({left_ + static_cast<int>(columns) * kCellWidth + kMargin,
                       static_cast<int>(heading) * kCharWidth + 2 * kMargin, 640});
    body_ += text_at(kMargin, y_ + 24, title, R"( font-size="18" font-weight="bold")");
    y_ += kTitleHeight;
  }

  void add_table(const PairTable& table) {
    body_ += text_at(kMargin, y_ + 20, heading_of(table), R"( font-weight="bold")");
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      body_ += text_at(x_of(c) + kCellWidth / 2, y_ + kHeadHeight - 8, table.columns[c],
                       R"( text-anchor="middle")");
    }
    body_ += text_at(left_ - 10, y_ + kHeadHeight - 8, table.row_title,
                     R"( text-anchor="end" fill="#757575")");
    y_ += kHeadHeight;
    for (std::size_t r = 0; r < table.rows.size(); ++r) add_row(table, r);
    y_ += kMargin;
  }

  void add_legend() {
    int x = kMargin;
    const auto entry = [&](const Cell& cell, const char* meaning) {
      body_ += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"18\" height=\"18\" fill=\"{}\" stroke=\"#9e9e9e\"/>\n",
          x, y_, fill_of(cell));
      body_ += text_at(x + 26, y_ + 14, meaning);
      x += 150;
    };
    entry({.state = CellState::kUsual, .share = 1}, "as fast as any");
    entry({.state = CellState::kSlow}, "slow or late");
    entry({.state = CellState::kFailed}, "no connection");
    entry({.state = CellState::kNotProbed}, "not tried");
    y_ += kLegendHeight;
  }

  std::string finish() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
        "{1}\" font-family=\"sans-serif\" font-size=\"13\" fill=\"#212121\">\n<rect width=\"{0}\" "
        "height=\"{1}\" fill=\"#ffffff\"/>\n{2}</svg>\n",
        width_, y_, body_);
  }

 private:
  int x_of(std::size_t column) const { return left_ + static_cast<int>(column) * kCellWidth; }

  void add_row(const PairTable& table, std::size_t row) {
    body_ +=
        text_at(left_ - 10, y_ + kCellHeight / 2 + 5, table.rows[row], R"( text-anchor="end")");
    for (std::size_t c = 0; c < table.columns.size(); ++c) add_cell(table.cells[row][c], x_of(c));
    y_ += kCellHeight;
  }

  void add_cell(const Cell& cell, int x) {
    body_ += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#ffffff\" "
        "stroke-width=\"2\"/>\n",
        x, y_, kCellWidth, kCellHeight, fill_of(cell));
    const std::string style = fmt::format(R"( text-anchor="middle" fill="{}")", ink_on(cell));
    const int middle = x + kCellWidth / 2;
    if (cell.state == CellState::kFailed) body_ += text_at(middle, y_ + 25, "none", style.c_str());
    if (cell.state == CellState::kFailed || cell.state == CellState::kNotProbed) return;
    body_ += text_at(middle, y_ + 18, fmt::format("{:.2f}", cell.gbytes_per_s), style.c_str());
    body_ += text_at(middle, y_ + 33, fmt::format("{:.1f} us", cell.round_trip_us),
                     (style + R"( font-size="10")").c_str());
  }

  int left_ = 0;
  int width_ = 0;
  int y_ = kMargin / 2;
  std::string body_;
};

}  // namespace

std::string heat_map_svg(const std::string& title, const std::vector<PairTable>& tables) {
  Picture picture(title, tables);
  for (const PairTable& table : tables) picture.add_table(table);
  picture.add_legend();
  return picture.finish();
}

}  // namespace beeline::doctor
