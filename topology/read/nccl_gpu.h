// SPDX-License-Identifier: Apache-2.0
//
// What NCCL's and RCCL's files tell of a GPU, beside its place: its number, its kind, and what
// joins it to others without PCIe.
#pragma once

#include <functional>
#include <string>

#include "topology/node.h"
#include "topology/read/xml.h"

namespace beeline::topology {

// `note` takes what cannot be read. A number that no GPU has is unknown.
using NoteAt = std::function<void(const XmlElement& at, const std::string& what)>;
GpuFacts read_gpu_facts(const XmlElement& gpu, const NoteAt& note);

}  // namespace beeline::topology
