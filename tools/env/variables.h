// SPDX-License-Identifier: Apache-2.0
//
// The variables that make NCCL use the plugin, written for a shell, mpirun or Kubernetes.
#pragma once

#include <string>
#include <vector>

namespace beeline::env {

struct Variable {
  std::string name;
  std::string value;
  std::string reason;  // a sentence
};

// `library_folder` is empty if the loader searches the plugin's folder anyway.
std::vector<Variable> variables(const std::string& library_folder);

// Lines for a shell, which keep an LD_LIBRARY_PATH that is set already.
std::string shell_text(const std::vector<Variable>& all);

// Options for Open MPI's mpirun, in one line: "-x NAME=VALUE ...".
std::string mpirun_text(const std::vector<Variable>& all);

// Entries for the list `env` of a container in a manifest of Kubernetes.
std::string kubernetes_text(const std::vector<Variable>& all);

}  // namespace beeline::env
