/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain C program that uses the plugin, as any C program may: it lists the devices and sends
 * itself a message. Reports to stdout; the plugin's log goes to stderr.
 *
 *   c_caller PLUGIN        load it and use it
 *   c_caller --find NAME   say whether the loader finds that name
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "include/nccl/net_v8.h"

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

static int list_devices(const ncclNet_v8_t* net) {
  int count = 0;
  MUST(net->devices(&count) == ncclSuccess && count > 0);
  for (int dev = 0; dev < count; ++dev) {
    ncclNetProperties_v8_t props;
    MUST(net->getProperties(dev, &props) == ncclSuccess);
    printf("device %d %s %d Mbit/s\n", dev, props.name, props.speed);
  }
  return 0;
}

struct link {
  void* send;
  void* recv;
};

static int connect_to_self(const ncclNet_v8_t* net, struct link* link) {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  MUST(net->listen(0, handle, &listener) == ncclSuccess);
  for (long i = 0; i < kPatience && (link->send == NULL || link->recv == NULL); ++i) {
    ncclNetDeviceHandle_v8_t* device = NULL;
    if (link->send == NULL) MUST(net->connect(0, handle, &link->send, &device) == ncclSuccess);
    if (link->recv == NULL) MUST(net->accept(listener, &link->recv, &device) == ncclSuccess);
  }
  MUST(link->send != NULL && link->recv != NULL);
  MUST(net->closeListen(listener) == ncclSuccess);
  return 0;
}

static int move_message(const ncclNet_v8_t* net, const struct link* link) {
  static unsigned char from[kMessageBytes];
  static unsigned char to[kMessageBytes];
  void* data = to;
  int size = kMessageBytes;
  int tag = 42;
  int sent = 0;
  int received = 0;
  int sizes[1] = {0};
  void* from_mr = NULL;
  void* to_mr = NULL;
  void* receive = NULL;
  void* send = NULL;
  for (int i = 0; i < kMessageBytes; ++i) from[i] = (unsigned char)(i * 7 + 1);
  MUST(net->regMr(link->send, from, sizeof(from), NCCL_PTR_HOST, &from_mr) == ncclSuccess);
  MUST(net->regMr(link->recv, to, sizeof(to), NCCL_PTR_HOST, &to_mr) == ncclSuccess);
  for (long i = 0; i < kPatience && !(sent && received); ++i) {
    if (receive == NULL) {
      MUST(net->irecv(link->recv, 1, &data, &size, &tag, &to_mr, &receive) == ncclSuccess);
    }
    if (send == NULL) {
      MUST(net->isend(link->send, from, kMessageBytes, tag, from_mr, &send) == ncclSuccess);
    }
    if (send != NULL && !sent) MUST(net->test(send, &sent, NULL) == ncclSuccess);
    if (receive != NULL && !received) MUST(net->test(receive, &received, sizes) == ncclSuccess);
  }
  MUST(sent && received && sizes[0] == kMessageBytes);
  MUST(memcmp(from, to, kMessageBytes) == 0);
  MUST(net->deregMr(link->send, from_mr) == ncclSuccess);
  MUST(net->deregMr(link->recv, to_mr) == ncclSuccess);
  printf("moved %d bytes\n", kMessageBytes);
  return 0;
}

static int use(const ncclNet_v8_t* net) {
  struct link link = {NULL, NULL};
  MUST(net->init(print_line) == ncclSuccess);
  if (list_devices(net) != 0 || connect_to_self(net, &link) != 0 || move_message(net, &link) != 0) {
    return 1;
  }
  MUST(net->closeSend(link.send) == ncclSuccess);
  MUST(net->closeRecv(link.recv) == ncclSuccess);
  return 0;
}

static int find(const char* name) {
  const void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  printf("%s: %s\n", name, library != NULL ? "found" : dlerror());
  return library != NULL ? 0 : 1;
}

int main(int argc, char** argv) {
  void* library = NULL;
  const ncclNet_v8_t* net = NULL;
  if (argc == 3 && strcmp(argv[1], "--find") == 0) return find(argv[2]);
  MUST(argc == 2);
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) printf("%s\n", dlerror());
  MUST(library != NULL);
  net = (const ncclNet_v8_t*)dlsym(library, "ncclNetPlugin_v8");
  MUST(net != NULL);
  return use(net);
}
