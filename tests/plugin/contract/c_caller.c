/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in plain C that uses the plugin. Through every version of its table, one after another,
 * it lists the devices and sends itself a message. It reports to stdout; the plugin's log goes to
 * stderr.
 *
 *   c_caller PLUGIN        load it and use it
 *   c_caller --find NAME   say whether the loader finds that name
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "include/nccl/net.h"

enum { kMessageBytes = 1000, kPatience = 100000000 };

static void print_line(ncclDebugLogLevel level, unsigned long flags, const char* file, int line,
                       const char* format, ...) {
  va_list arguments;
  (void)flags;
  fprintf(stderr, "%d %s:%d ", (int)level, file, line);
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

#define MUST(condition)                                                \
  do {                                                                 \
    if (!(condition)) {                                                \
      printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                        \
    }                                                                  \
  } while (0)

struct link {
  void* send;
  void* recv;
};

#define VERSION 6
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 7
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 8
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 9
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 10
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 11
#include "tests/plugin/contract/c_caller_version.h"
#define VERSION 12
#include "tests/plugin/contract/c_caller_version.h"

static const struct {
  const char* symbol;
  int (*use)(const void* table);
} kVersions[] = {
    {"ncclNetPlugin_v6", use_v6},   {"ncclNetPlugin_v7", use_v7},   {"ncclNetPlugin_v8", use_v8},
    {"ncclNetPlugin_v9", use_v9},   {"ncclNetPlugin_v10", use_v10}, {"ncclNetPlugin_v11", use_v11},
    {"ncclNetPlugin_v12", use_v12},
};

static int use_all(void* library) {
  for (size_t i = 0; i < sizeof(kVersions) / sizeof(kVersions[0]); ++i) {
    const void* const table = dlsym(library, kVersions[i].symbol);
    if (table == NULL) printf("no %s\n", kVersions[i].symbol);
    MUST(table != NULL);
    if (kVersions[i].use(table) != 0) return 1;
  }
  return 0;
}

static int find(const char* name) {
  const void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  printf("%s: %s\n", name, library != NULL ? "found" : dlerror());
  return library != NULL ? 0 : 1;
}

int main(int argc, char** argv) {
  void* library = NULL;
  if (argc == 3 && strcmp(argv[1], "--find") == 0) return find(argv[2]);
  MUST(argc == 2);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) printf("%s\n", dlerror());
  MUST(library != NULL);
  return use_all(library);
}
