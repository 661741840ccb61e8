// SPDX-License-Identifier: Apache-2.0
#include "plugin/checks/plugin_view.h"

#include "plugin/checks/words.h"

namespace beeline::checks {
namespace {

// Folders may contain the names of users.
std::string without_paths(const std::string& text) {
  std::string all;
  for (const std::string& word : split(text, " ")) {
    append_item(all, word.find('/') == std::string::npos ? word : "REPLACED", " ");
  }
  return all;
}

}  // namespace

std::string to_text(const PluginView& view, bool with_paths) {
  std::string text;
  const auto line = [&](const char* word, const std::string& value) {
    if (value.empty()) return;
    append_item(text, word, "");
    append_item(text, with_paths ? value : without_paths(value), " ");
    text += "\n";
  };
  line("own", view.own_folder);
  if (view.is_searched) line("searched", "own");
  for (const PluginTry& one : view.tries) {
    line("try", one.name);
    line("error", one.error);
    line("net", one.net);
    line("file", one.file);
    if (one.is_other) line("other", "file");
  }
  return text.empty() ? "none\n" : text;
}

std::optional<PluginView> parse_plugins(const std::string& text) {
  if (text.empty()) return {};
  PluginView view;
  PluginTry before_the_first;
  for (const std::string& line : split(text, "\n")) {
    const std::size_t end = line.find(' ');
    const std::string word = line.substr(0, end);
    const std::string value = end == std::string::npos ? "" : line.substr(end + 1);
    if (word == "try") view.tries.push_back({.name = value});
    PluginTry& last = view.tries.empty() ? before_the_first : view.tries.back();
    if (word == "own") view.own_folder = value;
    if (word == "searched") view.is_searched = true;
    if (word == "error") last.error = value;
    if (word == "net") last.net = value;
    if (word == "file") last.file = value;
    if (word == "other") last.is_other = true;
  }
  return view;
}

}  // namespace beeline::checks
