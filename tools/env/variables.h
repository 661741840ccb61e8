// SPDX-License-Identifier: Apache-2.0
//
// The variables that make NCCL use the plugin, written for a shell, mpirun, Kubernetes or a
// program.
#pragma once

#include <cstddef>
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

// A comment for a shell or YAML, of as many lines as it needs.
std::string comment(const std::string& text, std::size_t width);

// Lines for a shell, which keep an LD_LIBRARY_PATH that is set already.
std::string shell_text(const std::vector<Variable>& all, std::size_t width);

// Options for Open MPI's mpirun, in one line: "-x NAME=VALUE ...".
std::string mpirun_text(const std::vector<Variable>& all);

// Entries for the list `env` of a container in a manifest of Kubernetes.
std::string kubernetes_text(const std::vector<Variable>& all, std::size_t width);

// An object of names and values.
std::string json_text(const std::vector<Variable>& all);

}  // namespace beeline::env
