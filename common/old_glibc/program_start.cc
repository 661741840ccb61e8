// SPDX-License-Identifier: Apache-2.0
//
// The first function of a program. Since glibc 2.34 it is glibc that runs the constructors of a
// program; before, a program brought the function that runs them. This one brings it again. Newer
// versions of glibc still call it if a program has one.
#include "common/old_glibc/version.h"

extern "C" {

using Main = int(int, char**, char**);
using Constructor = void(int, char**, char**);

int __libc_start_main(Main* main, int count, char** arguments, void (*start)(), void (*end)(),
                      void (*end_of_loader)(), void* stack);

void _init();
extern Constructor* __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* __init_array_end[] __attribute__((visibility("hidden")));

}  // extern "C"

BL_OLD_GLIBC(__libc_start_main, BL_FIRST_GLIBC);

namespace {

void run_constructors(int count, char** arguments, char** environment) {
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(count, arguments, environment);
  }
}

}  // namespace

extern "C" int __libc_start_main(Main* main, int count, char** arguments, void (*)(), void (*end)(),
                                 void (*end_of_loader)(), void* stack) {
  // glibc calls it with the arguments of the program.
  return old___libc_start_main(main, count, arguments,
                               reinterpret_cast<void (*)()>(run_constructors), end, end_of_loader,
                               stack);
}
