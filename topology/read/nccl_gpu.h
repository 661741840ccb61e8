// SPDX-License-Identifier: Apache-2.0
//
// Reads the facts about a GPU in NCCL's and RCCL's files: its number, its model, and its links
// other than PCIe.
#pragma once

#include <functional>
#include <string>

#include "topology/node.h"
#include "topology/read/xml.h"

namespace beeline::topology {

// `note` is called for text that cannot be read. An impossible number counts as unknown.
using NoteAt = std::function<void(const XmlElement& at, const std::string& what)>;
GpuFacts read_gpu_facts(const XmlElement& gpu, const NoteAt& note);

}  // namespace beeline::topology
