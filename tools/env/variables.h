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

// The same without LD_LIBRARY_PATH: NCCL_NET_PLUGIN is the path of the file. For containers, where
// a variable replaces that of the image.
std::vector<Variable> variables_of_file(const std::string& plugin_file);

// Lines for a shell, which keep an LD_LIBRARY_PATH that is set already.
std::string shell_text(const std::vector<Variable>& all);

// Options for Open MPI's mpirun, in one line: "-x NAME=VALUE ...".
std::string mpirun_text(const std::vector<Variable>& all);

// Entries for the list `env` of a container in a manifest of Kubernetes.
std::string kubernetes_text(const std::vector<Variable>& all);

}  // namespace beeline::env
