// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>

#include "plugin/checks/all_checks.h"
#include "plugin/checks/words.h"
#include "plugin/config/nearest.h"

namespace beeline::checks {
namespace {

constexpr std::string_view kOurs = "beeline";

// Network plugins of others, by a word in the names of their files. Containers and sites preset
// them.
struct Known {
  std::string_view word;
  const char* owner;
};
constexpr std::array kKnown = {
    Known{"spcx", "NVIDIA's for Spectrum-X, of HPC-X"},
    Known{"mrc", "the one for MRC, of HPC-X or Microsoft"},
    Known{"sharp", "NVIDIA's for SHARP, of HPC-X"},
    Known{"gib", "Google's gIB"},
    Known{"tcpx", "Google's for GPUDirect-TCPX"},
    Known{"tcpxo", "Google's for GPUDirect-TCPXO"},
    Known{"ofi", "aws-ofi-nccl, for AWS and libfabric"},
    Known{"anp", "AMD's ANP"},
    Known{"uccl", "UCCL"},
};

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](unsigned char c) { return std::tolower(c); });
  return all;
}

// A folder on the way to a file of another plugin may have our name.
bool is_ours(std::string_view names) {
  return std::ranges::any_of(split(names, ","), [](const std::string& path) {
    return lower(path.substr(path.rfind('/') + 1)).find(kOurs) != std::string::npos;
  });
}

// "the variable names NVIDIA's plugin ...": empty if none is known.
std::string owner_of(std::string_view plugins) {
  for (const std::string& path : split(plugins, ",")) {
    const std::string name = lower(path.substr(path.rfind('/') + 1));
    for (const std::string& word : split(name, "-_. ")) {
      const auto* const known = std::ranges::find(kKnown, word, &Known::word);
      if (known != kKnown.end()) return known->owner;
    }
  }
  return {};
}

bool is_any_ours(const std::optional<PluginView>& view) {
  return view && std::ranges::any_of(view->tries,
                                     [](const PluginTry& one) { return lower(one.net) == kOurs; });
}

void check_loaded(const PluginTry& loaded, const PluginView& view, Findings& found) {
  if (!loaded.is_other) return;
  found.add("plugin-other-file",
            {.subject = loaded.file,
             .fact = loaded.file + " is what NCCL loads, and it differs from " + "the plugin in " +
                     view.own_folder,
             .source = loaded.file});
}

}  // namespace

void check_plugin(const Host& host, Findings& found) {
  const auto net = host.environ.get("NCCL_NET");
  const bool is_required = net && lower(*net) == kOurs;
  const std::string text(host.environ.get("NCCL_NET_PLUGIN").value_or(std::string_view()));
  if (net && !is_required && (is_ours(text) || is_any_ours(host.plugins))) {
    found.add("other-network", {.subject = "NCCL_NET", .fact = "NCCL_NET=" + std::string(*net)});
  }
  std::string errors;
  std::string errors_of_others;
  bool is_any_loaded = false;
  if (host.plugins) {
    for (const PluginTry& one : host.plugins->tries) {
      if (lower(one.net) == kOurs) return check_loaded(one, *host.plugins, found);
      is_any_loaded |= !one.net.empty();
      if (is_ours(one.name)) {
        append_item(errors, one.error.empty() ? one.file + " is another plugin" : one.error, "; ");
      } else if (!text.empty() && !one.error.empty()) {
        append_item(errors_of_others, one.error, "; ");
      }
    }
  } else if (is_ours(text)) {
    return;  // whether it can be loaded is not known
  }
  Seen seen = {
      .subject = "NCCL_NET_PLUGIN",
      .fact = text.empty() ? "NCCL_NET_PLUGIN is not set here" : "NCCL_NET_PLUGIN=" + text};
  if (const auto file = host.file_of.find(seen.subject); file != host.file_of.end()) {
    seen.source = file->second;
  }
  if (is_ours(text) && errors.empty()) {
    seen.fact += ", but the record does not say whether this plugin can be loaded";
    return found.add_unknown("plugin-not-found", std::move(seen));
  }
  if (is_ours(text)) {
    seen.fact += ": " + errors;
    // A record may have it without its folders.
    const std::string& own = host.plugins->own_folder;
    bool is_folder_needed = own.starts_with('/');
    if (!seen.source.empty()) {  // where LD_LIBRARY_PATH cannot be set
      seen.fix = "set it in " + seen.source + " to what beeline env --k8s prints";
      is_folder_needed = false;
    } else if (host.plugins->is_searched) {
      if (text != kOurs) seen.fix = "set it to beeline: the loader searches " + own;
      is_folder_needed = false;
    }
    return found.add("plugin-not-found", std::move(seen),
                     {{"folder", is_folder_needed ? own : ""}});
  }
  if (const std::string owner = owner_of(text); !owner.empty()) {
    seen.fact += ": your container or site sets it, to another plugin (" + owner + ")";
  }
  if (!errors_of_others.empty()) {
    seen.fact += ": " + errors_of_others;
    if (!nearest(text, {kOurs}).empty()) seen.fact += "; did you mean " + std::string(kOurs) + "?";
    if (!is_any_loaded) seen.severity = Severity::kWarning;
  }
  if (is_required) {
    seen.fact +=
        ", but NCCL_NET=" + std::string(*net) + " asks for Beeline: the job will not start";
    seen.severity = Severity::kFailure;
  } else if (net) {
    seen.fact += ", and NCCL_NET=" + std::string(*net) + ": this environment does not use Beeline";
  }
  found.add("plugin-not-named", std::move(seen));
}

}  // namespace beeline::checks
