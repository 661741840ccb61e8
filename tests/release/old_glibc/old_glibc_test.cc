// SPDX-License-Identifier: Apache-2.0
//
// The module has to lie beside the program.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <random>
#include <string>
#include <thread>

#include "tests/release/old_glibc/module.h"
#include "tests/support/catch.h"

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds, std::chrono::steady_clock;

// The number of arguments that a constructor of the program got, before main(). -1: it did not run.
// -2: it got no arguments or no environment.
int constructed_with = -1;
[[gnu::constructor]] void before_main(int count, char** arguments, char** environment) {
  constructed_with = arguments[0] != nullptr && environment != nullptr ? count : -2;
}

int destroyed_by_key = 0;

class Module {
 public:
  Module() : library_(dlopen(path().c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) FAIL(dlerror());
  }
  ~Module() { dlclose(library_); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  template <typename Function>
  Function* function(const char* name) const {
    void* found = dlsym(library_, name);
    REQUIRE(found != nullptr);
    return reinterpret_cast<Function*>(found);
  }

 private:
  static std::string path() {
    return fs::read_symlink("/proc/self/exe").parent_path() / "old_glibc_module.so";
  }

  void* library_;
};

class ScratchFile {
 public:
  ScratchFile() {
    std::ofstream(path_) << "seven b";
    fs::create_symlink(path_, link_);
  }
  ~ScratchFile() {
    fs::remove(path_);
    fs::remove(link_);
  }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  const char* path() const { return path_.c_str(); }
  const char* link() const { return link_.c_str(); }

 private:
  std::string path_ = fs::temp_directory_path() / ("old_glibc_test." + std::to_string(getpid()));
  std::string link_ = path_ + ".link";
};

}  // namespace

TEST_CASE("constructors run before main and get the arguments") { CHECK(constructed_with >= 1); }

TEST_CASE("an exception inside a library is caught") {
  const Module module;
  CHECK(std::string(module.function<CaughtText>(kCaughtText)()) == "thrown in a library");
  CHECK(module.function<CaughtBadAlloc>(kCaughtBadAlloc)());
}

TEST_CASE("exceptions of several threads of a library are caught") {
  const Module module;
  CHECK(module.function<CaughtInThreads>(kCaughtInThreads)(4, 200) == 800);
}

TEST_CASE("an exception of the program is caught") {
  CHECK_THROWS_AS(std::stoi("no number"), std::invalid_argument);
}

TEST_CASE("the status of a file") {
  const ScratchFile file;
  struct stat status {};
  REQUIRE(stat(file.path(), &status) == 0);
  CHECK(status.st_size == 7);
  CHECK(S_ISREG(status.st_mode));
  REQUIRE(stat(file.link(), &status) == 0);
  CHECK(S_ISREG(status.st_mode));
  REQUIRE(lstat(file.link(), &status) == 0);
  CHECK(S_ISLNK(status.st_mode));

  const int fd = open(file.path(), O_RDONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  status = {};
  REQUIRE(fstat(fd, &status) == 0);
  CHECK(status.st_size == 7);
  close(fd);
  REQUIRE(fstatat(AT_FDCWD, file.link(), &status, AT_SYMLINK_NOFOLLOW) == 0);
  CHECK(S_ISLNK(status.st_mode));

  errno = 0;
  CHECK(stat("/does/not/exist", &status) == -1);
  CHECK(errno == ENOENT);
  errno = 0;
  CHECK(fstat(-1, &status) == -1);
  CHECK(errno == EBADF);
}

TEST_CASE("a wait by the steady clock ends when its time is over") {
  static std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto start = steady_clock::now();
  int looked = 0;
  CHECK_FALSE(condition.wait_for(lock, milliseconds(30), [&] { return ++looked == 0; }));
  CHECK(steady_clock::now() - start >= milliseconds(30));
  CHECK(looked < 10);  // it sleeps
  // A time whose nanoseconds are below those of now.
  CHECK_FALSE(condition.wait_for(lock, milliseconds(-500), [] { return false; }));
}

TEST_CASE("a wait by the steady clock ends when it is woken") {
  static std::mutex mutex;
  std::condition_variable condition;
  bool is_set = false;
  std::unique_lock lock(mutex);
  std::thread other([&] {
    const std::lock_guard hold(mutex);
    is_set = true;
    condition.notify_one();
  });
  CHECK(condition.wait_for(lock, std::chrono::minutes(10), [&] { return is_set; }));
  lock.unlock();
  other.join();
}

TEST_CASE("threads, their keys, names and signals") {
  pthread_key_t key = 0;
  REQUIRE(pthread_key_create(&key, [](void* value) { *static_cast<int*>(value) += 1; }) == 0);
  std::array<char, 16> name{};
  void* seen = nullptr;
  bool is_blocked = false;
  std::thread([&] {
    pthread_setname_np(pthread_self(), "a name");
    prctl(PR_GET_NAME, name.data());
    pthread_setspecific(key, &destroyed_by_key);
    seen = pthread_getspecific(key);
    sigset_t usr1, now;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, nullptr);
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    is_blocked = sigismember(&now, SIGUSR1) == 1;
  }).join();
  CHECK(std::string(name.data()) == "a name");
  CHECK(seen == &destroyed_by_key);
  CHECK(destroyed_by_key == 1);
  CHECK(is_blocked);
  CHECK(pthread_key_delete(key) == 0);

  std::once_flag once;
  int times = 0;
  std::call_once(once, [&] { ++times; });
  std::call_once(once, [&] { ++times; });
  CHECK(times == 1);
  CHECK(std::async(std::launch::async, [] { return 5; }).get() == 5);

  static std::mutex mutex;
  mutex.lock();
  CHECK_FALSE(std::async(std::launch::async, [] { return mutex.try_lock(); }).get());
  mutex.unlock();
}

TEST_CASE("libraries that do not exist have an error, and addresses a library") {
  CHECK(dlopen("libdoes-not-exist.so", RTLD_NOW) == nullptr);
  CHECK(std::strstr(dlerror(), "libdoes-not-exist.so") != nullptr);
  Dl_info info{};
  CHECK(dladdr(reinterpret_cast<void*>(&before_main), &info) != 0);
}

TEST_CASE("a power") {
  volatile double two = 2;
  CHECK(std::pow(two, 0.5) == std::sqrt(two));
  CHECK(std::pow(two, 10) == 1024);
}

TEST_CASE("random numbers differ") {
  std::random_device random;
  CHECK(random() != random());
}
