/* SPDX-License-Identifier: Apache-2.0
 *
 * The process ends while there is no memory at all, and has never called the plugin: the plugin
 * must not end it in another way. The argument is the plugin. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

extern void* __libc_malloc(size_t size);
static int is_over;

void* malloc(size_t size) { return is_over ? NULL : __libc_malloc(size); }

int main(int argc, char** argv) {
  if (argc != 2 || dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) == NULL) {
    fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
    return 1;
  }
  is_over = 1;
  return 0;
}
