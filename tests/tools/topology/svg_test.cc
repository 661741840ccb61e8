// SPDX-License-Identifier: Apache-2.0
//
// Tests of the picture: it is complete, nothing overlaps, and the file is always valid.
#include "topology/render/svg.h"

#include <fmt/format.h>

#include <cmath>

#include "tests/support/catch.h"
#include "tests/tools/topology/machine_text.h"
#include "tests/tools/topology/machines.h"
#include "topology/render/svg_layout.h"

using namespace beeline::topology;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string svg_of(const Graph& graph) { return to_svg(graph, assign(graph)); }

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

bool contains(const Box& outer, const Box& inner) {
  return outer.x <= inner.x && inner.right() <= outer.right() && outer.y <= inner.y &&
         inner.bottom() <= outer.bottom();
}

// A GPU and so many NICs, each on the root bus or all below one switch.
std::string wide_machine(int nics, bool has_switch) {
  std::string text = "numa 0\n host 0000:10\n  gpu 10:00.1\n";
  if (has_switch) text += "  root 10:1f.0\n   up 11:00.0\n";
  for (int i = 0; i < nics; ++i) {
    text += has_switch
                ? fmt::format("    down 12:{0:02x}.0\n     nic {1:02x}:00.0 mlx5_{0}\n", i, i + 32)
                : fmt::format("  root 10:{0:02x}.0\n   nic {1:02x}:00.0 mlx5_{0}\n", i, i + 32);
  }
  return text;
}

const std::vector<std::string>& all_machines() {
  static const std::vector<std::string> texts = {
      machines::one_nic_each(),         machines::tied_in_pairs(),  machines::two_gpus_a_nic(),
      machines::one_nic_for_all(),      machines::four_nics_each(), machines::sixteen_gpus(),
      machines::one_root_port(),        machines::far_socket(),     machines::dual_port(),
      machines::flat_virtual_machine(), wide_machine(31, false),    wide_machine(31, true)};
  return texts;
}

// The title of the picture of such a machine from this source.
std::string title_of(const std::string& machine, const std::string& source) {
  GraphParts parts = read_machine(machine);
  parts.source = source;
  const std::string svg = svg_of(Graph::make(std::move(parts)).value());
  const auto at = svg.find("class=\"title\">") + 14;
  return svg.substr(at, svg.find('<', at) - at);
}

struct Stretch {
  Point from;
  Point to;
  std::size_t gpu;

  bool is_level() const { return std::abs(from.y - to.y) < 0.01; }
};

// Two segments of different GPUs that overlap instead of crossing.
bool collide(const Stretch& a, const Stretch& b) {
  if (a.gpu == b.gpu || a.is_level() != b.is_level()) return false;
  const auto along = [&a](const Point& p) { return a.is_level() ? p.x : p.y; };
  const auto aside = [&a](const Point& p) { return a.is_level() ? p.y : p.x; };
  if (std::abs(aside(a.from) - aside(b.from)) > 0.01) return false;
  return std::min(along(a.from), along(a.to)) < std::max(along(b.from), along(b.to)) &&
         std::min(along(b.from), along(b.to)) < std::max(along(a.from), along(a.to));
}

std::vector<Stretch> stretches_of(const Picture& picture) {
  std::vector<Stretch> stretches;
  for (const Trace& trace : picture.traces) {
    for (std::size_t i = 1; i < trace.points.size(); ++i) {
      stretches.push_back({trace.points[i - 1], trace.points[i], trace.gpu});
    }
  }
  return stretches;
}

}  // namespace

TEST_CASE("svg: boxes do not overlap, and are within their row") {
  for (const std::string& text : all_machines()) {
    const Graph graph = make_machine(text);
    const Picture picture = lay_out(graph, assign(graph));
    for (const auto& [node, box] : picture.boxes) {
      CHECK(std::ranges::count_if(picture.rows, [&box = box](const Row& row) {
              return contains(row.box, box);
            }) == 1);
      for (const auto& [other, other_box] : picture.boxes) {
        if (node != other) CHECK_FALSE(overlap(box, other_box));
      }
    }
    for (const NodeIndex gpu : graph.gpus()) CHECK(picture.boxes.contains(gpu));
    for (const NodeIndex nic : graph.nics()) CHECK(picture.boxes.contains(nic));
  }
}

TEST_CASE("svg: each GPU is connected to each of its NICs, and no lines overlap") {
  for (const std::string& text : all_machines()) {
    const Graph graph = make_machine(text);
    const Assignment assignment = assign(graph);
    const Picture picture = lay_out(graph, assignment);
    std::size_t pairs = 0;
    for (const GpuAssignment& given : assignment.gpus) pairs += given.nics.size();
    CHECK(picture.traces.size() == pairs);
    const std::vector<Stretch> stretches = stretches_of(picture);
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      for (std::size_t j = i + 1; j < stretches.size(); ++j) {
        if (collide(stretches[i], stretches[j])) FAIL_CHECK(text);
      }
    }
  }
}

TEST_CASE("svg: a slow link and its text are red; a full one is not") {
  const std::string machine =
      "host 0000:10\n root 10:01.0 max=32x16\n  gpu 11:00.0 now=32x16 max=32x16\n"
      " root 10:02.0 max=32x16\n  nic 12:00.0 mlx5_0 max=32x16 now=";
  const std::string slow = svg_of(make_machine(machine + "32x4\n"));
  CHECK(count(slow, "class=\"slow\">Gen5 x4<") == 1);
  CHECK(count(slow, "class=\"slow\">of Gen5 x16<") == 1);
  CHECK(count(slow, "mlx5_0: Gen5 x4, could be Gen5 x16: reseat the card") == 1);
  CHECK(count(slow, "stroke=\"#c81e1e\"") == 3);  // the link, what hangs on it, and the legend
  CHECK(count(slow, "class=\"slow\">1 slow link<") == 1);
  const std::string full = svg_of(make_machine(machine + "32x16\n"));
  CHECK(count(full, "class=\"slow\"") == 0);
  CHECK(count(full, "#c81e1e") == 1);  // in the style sheet
}

TEST_CASE("svg: a row that is wider than a screen is cut into parts") {
  for (const bool has_switch : {false, true}) {
    const Graph graph = make_machine(wide_machine(31, has_switch));
    const Picture picture = lay_out(graph, assign(graph));
    CHECK(picture.width < 1850);
    CHECK(picture.rows.size() == 3);
    for (const NodeIndex nic : graph.nics()) CHECK(picture.boxes.count(nic) == 1);
    const std::string svg = svg_of(graph);
    CHECK(count(svg, "(part 3 of 3)") == 1);
    CHECK(count(svg, "switch 0000:11:00.0 (continued)") == (has_switch ? 2 : 0));
  }
  CHECK(count(svg_of(make_machine(machines::four_nics_each())), "(continued)") == 0);
}

TEST_CASE("svg: the legend contains only the symbols that occur") {
  const auto explained = [](const std::string& machine) {
    const std::string svg = svg_of(make_machine(machine));
    std::string marks;
    for (const char* words : {"uses", "serves no GPU", "slower than",
                              "saving power: ", "its maximum", "another NUMA node"}) {
      marks += count(svg, words) > 0 ? '1' : '0';
    }
    return marks;
  };
  const std::string gpu = "host 0000:10\n root 10:01.0 max=32x16\n  gpu 11:00.0 max=32x16 now=";
  const std::string nic = "host 0000:10\n root 10:02.0\n  nic 12:00.0 mlx5_0";
  CHECK(explained(gpu + "32x16\n") == "000000");
  CHECK(explained(gpu + "2.5x16\n") == "000100");
  CHECK(explained(gpu + "32x8\n") == "001000");
  CHECK(explained(nic + "\n") == "010000");
  CHECK(explained(nic + " now=16x8\n") == "010010");
  CHECK(explained(machines::far_socket()) == "100001");
}

TEST_CASE("svg: a NIC on another NUMA node is highlighted") {
  CHECK(count(svg_of(make_machine(machines::far_socket())), "class=\"small far\">mlx5_") == 4);
  CHECK(count(svg_of(make_machine(machines::one_root_port())), "small far") == 0);
}

TEST_CASE("svg: names cannot break the file") {
  GraphParts parts = read_machine("host 0000:10\n  gpu 10:01.0\n  nic 10:02.0 a<b\n");
  parts.nodes[0].name = "<script>&\"\x01\xff";
  const auto graph = Graph::make(std::move(parts));
  REQUIRE(graph);
  const std::string svg = svg_of(*graph);
  CHECK(count(svg, "<script>") == 0);
  CHECK(count(svg, "&lt;script&gt;&amp;&quot;??") == 1);
  CHECK(count(svg, "a&lt;b") == 2);
}

TEST_CASE("svg: names are cut between characters") {
  std::string name;
  for (int i = 0; i < 20; ++i) name += "\xe2\x82\xac";  // the euro sign
  const Graph graph = make_machine("host 0000:10\n  gpu 10:01.0\n  nic 10:02.0 " + name + "\n");
  const std::string svg = svg_of(graph);
  CHECK(count(svg, ">" + name.substr(0, std::size_t{3} * 11) + "..<") == 1);
  CHECK(count(svg, ">" + name.substr(0, std::size_t{3} * 11) + ".. NODE<") == 0);
  CHECK(count(svg, ".. PHB<") == 1);
  CHECK(count(svg, "?") == 0);
}

TEST_CASE("svg: a machine without devices says so") {
  CHECK(count(svg_of(make_machine("")), "no GPU and no RDMA NIC") == 1);
}

TEST_CASE("svg: virtual functions are not drawn next to their physical one") {
  const Graph graph = make_machine(
      "host 0000:10\n  gpu 10:01.0\n"
      "  root 10:02.0\n    nic 11:00.0 mlx5_0\n    vf 11:00.1 mlx5_1 pf=11:00.0\n");
  const Picture picture = lay_out(graph, assign(graph));
  CHECK(picture.boxes.contains(graph.nics()[0]));
  CHECK_FALSE(picture.boxes.contains(graph.nics()[1]));
}

TEST_CASE("svg: virtual functions of a GPU are not drawn") {
  const Graph graph = make_machine(
      "host 0000:10\n root 10:01.0\n  gpu 11:00.0\n  gpu 11:00.1 pf=11:00.0\n"
      " root 10:02.0\n  nic 12:00.0 mlx5_0\n");
  REQUIRE(graph.gpus().size() == 2);
  const std::string svg = svg_of(graph);
  CHECK(count(svg, "<polyline") == 1);
  CHECK(count(svg, ">GPU0<") == 1);
  CHECK(count(svg, ">GPU1<") == 0);
}

TEST_CASE("svg: the title is as long as the picture is wide") {
  const std::string source(90, 'x');
  CHECK(title_of(machines::four_nics_each(), source) == "PCIe, GPUs and NICs - " + source);
  CHECK(title_of("numa 0\n host 0000:00\n  gpu 01:00.0\n", source).ends_with("xx.."));
}
