// SPDX-License-Identifier: Apache-2.0
//
// Files that describe a machine. If a file is accepted, its graph must have all promised
// properties, can be judged, drawn and assigned, and must be the same machine after it was written
// for NCCL.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cctype>

#include "common/base/fd.h"
#include "tests/fuzz/machine_judge.h"
#include "tests/fuzz/machine_seeds.h"
#include "tests/fuzz/topology_targets.h"
#include "topology/read/file.h"
#include "topology/read/nccl_xml.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::topology;

// "x.xml:12: ..."
void hold_error(const std::string& error, const std::string& file) {
  const std::size_t line = file.size() + 1;
  hold(error.starts_with(file + ":"), "an error names the file");
  hold(error.size() > line && std::isdigit(static_cast<unsigned char>(error[line])) != 0,
       "an error names the line");
}

bool take_nccl_xml(ByteView bytes) {
  auto parts = read_nccl_xml(text_of(bytes), "x.xml");
  if (!parts) {
    hold_error(parts.error().text, "x.xml");
    return false;
  }
  const auto graph = Graph::make(*std::move(parts));
  if (!graph) {
    hold(!graph.error().text.empty(), "an error says something");
    return false;
  }
  hold_sound(*graph);
  hold_written(*graph);
  return true;
}

// --- A file of any kind ---

// A file in memory with these bytes.
class BytesAsFile {
 public:
  BytesAsFile() : fd_(::memfd_create("machine", MFD_CLOEXEC)) {
    hold(static_cast<bool>(fd_), "a file can be made");
  }
  void set(ByteView bytes) const {
    hold(::ftruncate(fd_.get(), 0) == 0, "a file can be emptied");
    const auto size = static_cast<ssize_t>(bytes.size());
    hold(::pwrite(fd_.get(), bytes.data(), bytes.size(), 0) == size, "a file can be written");
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_.get()); }

 private:
  UniqueFd fd_;
};

bool take_file(ByteView bytes) {
  static const BytesAsFile file;
  file.set(bytes);
  auto parts = read_topology_file(file.path());
  auto nccl = read_nccl_xml(text_of(bytes), file.path());
  if (!parts) {
    hold_error(parts.error().text, file.path());
    hold(!nccl, "what is NCCL's is taken");
    return false;
  }
  hold(nccl || nccl.error().text.find("a DTD") != std::string::npos,
       "only by a doctype do the two differ");
  hold(!nccl || nccl->nodes == parts->nodes, "the same machine, whoever is asked");
  return Graph::make(*std::move(parts)).has_value();
}

constexpr std::array<Target, 2> kMachineTargets = {
    {{"nccl_xml", take_nccl_xml, machine_seeds}, {"topology_file", take_file, machine_seeds}}};

}  // namespace

std::span<const Target> machine_targets() { return kMachineTargets; }

}  // namespace beeline::fuzz

namespace beeline::topology {

// Replaces the function that calls hwloc, which is loaded at run time and is not fuzzed. hwloc may
// assume a well-formed document.
Outcome<GraphParts> read_hwloc_xml(const std::string& xml, const std::string& file) {
  XmlLimits limits;
  limits.doctype = Doctype::kNameOnly;
  const auto root = parse_xml(xml, file, limits);
  fuzz::hold(root && root->name == "topology", "hwloc gets what is well-formed and its own");
  return fail(file + ":" + std::to_string(root->line) + ": hwloc is not asked here");
}

}  // namespace beeline::topology
