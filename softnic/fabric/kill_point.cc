// SPDX-License-Identifier: Apache-2.0
// Kill points of the test build. SOFTNIC_KILL_LOG=FILE writes each site that is reached into FILE
// as a line "file:line". SOFTNIC_KILL_AT=file:line[:N] kills the process at the N-th visit of the
// site.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

#include "softnic/fabric/shared.h"

#ifdef SOFTNIC_KILL_POINTS

namespace softnic {
namespace {

std::string site_name(const char* file, int line) {
  const char* slash = std::strrchr(file, '/');
  return std::string(slash != nullptr ? slash + 1 : file) + ":" + std::to_string(line);
}

struct Plan {
  std::string kill_site;
  std::uint64_t kill_visit = 1;
  std::string log_path;

  Plan() {
    if (const char* path = std::getenv("SOFTNIC_KILL_LOG")) log_path = path;
    const char* at = std::getenv("SOFTNIC_KILL_AT");
    if (at == nullptr) return;
    kill_site = at;
    const std::size_t first = kill_site.find(':');
    const std::size_t second = kill_site.find(':', first + 1);
    if (second == std::string::npos) return;
    kill_visit = std::stoull(kill_site.substr(second + 1));
    kill_site.resize(second);
  }
};

void log_site(const std::string& path, const std::string& site) {
  static std::mutex mutex;
  static std::set<std::string> seen;
  const std::lock_guard guard(mutex);
  if (!seen.insert(site).second) return;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  const std::string line = site + "\n";
  (void)!::write(fd, line.data(), line.size());
  ::close(fd);
}

}  // namespace

void kill_point(const char* file, int line) noexcept {
  static const Plan plan;
  if (plan.kill_site.empty() && plan.log_path.empty()) return;
  const std::string site = site_name(file, line);
  if (!plan.log_path.empty()) log_site(plan.log_path, site);
  static std::atomic<std::uint64_t> visits{0};
  if (site == plan.kill_site && ++visits == plan.kill_visit) ::kill(::getpid(), SIGKILL);
}

}  // namespace softnic

#endif
