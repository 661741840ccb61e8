// SPDX-License-Identifier: Apache-2.0
#include "tools/env/variables.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/cli/text_width.h"

namespace beeline::env {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH";

// Safe in every shell: quoted, unless it has only characters that mean nothing to one.
std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,=@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string yaml_text(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::vector<Variable> variables(const std::string& library_folder) {
  std::vector<Variable> all;
  if (!library_folder.empty()) {
    all.push_back(
        {std::string(kLibraryPath), library_folder, "NCCL finds the plugin in this folder."});
  }
  all.push_back({"NCCL_NET_PLUGIN", "beeline", "NCCL loads libnccl-net-beeline.so."});
  all.push_back({"NCCL_NET", "Beeline",
                 "NCCL reports an error if the plugin cannot be used. Without this, it takes a "
                 "slower network "
                 "silently."});
  all.push_back({"NCCL_NET_PLUGIN_REF_COUNT", "1",
                 "NCCL 2.27.3 to 2.29.7 stop using a plugin when a process destroys its last "
                 "communicator. With "
                 "this, they keep it."});
  return all;
}

std::vector<Variable> variables_of_file(const std::string& plugin_file) {
  std::vector<Variable> all = variables("");
  all.front() = {"NCCL_NET_PLUGIN", plugin_file,
                 "NCCL 2.21 and later load this file. LD_LIBRARY_PATH stays that of the image."};
  return all;
}

std::string comment(const std::string& text, std::size_t width) {
  std::string lines = "# " + tools::wrapped(text, 2, width);
  for (std::size_t at = lines.find('\n'); at != std::string::npos; at = lines.find('\n', at + 1)) {
    lines[at + 1] = '#';
  }
  return lines + "\n";
}

std::string shell_text(const std::vector<Variable>& all, std::size_t width) {
  std::string text;
  for (const Variable& each : all) {
    const char* const rest =
        each.name == kLibraryPath ? "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" : "";
    text += comment(each.reason, width) +
            fmt::format("export {}={}{}\n", each.name, shell_word(each.value), rest);
  }
  return text;
}

std::string mpirun_text(const std::vector<Variable>& all) {
  std::string text;
  for (const Variable& each : all) {
    text +=
        fmt::format("{}-x {}", text.empty() ? "" : " ", shell_word(each.name + "=" + each.value));
  }
  return text + "\n";
}

std::string kubernetes_text(const std::vector<Variable>& all, std::size_t width) {
  std::string text;
  for (const Variable& each : all) {
    text += comment(each.reason, width) +
            fmt::format("- name: {}\n  value: {}\n", each.name, yaml_text(each.value));
  }
  return text;
}

std::string json_text(const std::vector<Variable>& all) {
  nlohmann::ordered_json object;
  for (const Variable& each : all) object[each.name] = each.value;
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace beeline::env
