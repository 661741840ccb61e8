/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses one version's table, from its first call to its last. c_caller.c includes this once for each
 * version, with VERSION defined as its number.
 */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
/* NAMED(ncclNet_v, _t) is ncclNet_v8_t, and NAMED(use_v, ) is use_v8. */
#define NAMED(before, after) JOIN(before, JOIN(VERSION, after))
#define TABLE NAMED(ncclNet_v, _t)

#if VERSION >= 11
#define IN_CONTEXT(...) context, __VA_ARGS__
#else
#define IN_CONTEXT(...) __VA_ARGS__
#endif
#if VERSION >= 7
#define WITH_DEVICE(...) __VA_ARGS__, &device
#else
#define WITH_DEVICE(...) __VA_ARGS__
#endif

static int NAMED(list_devices_v, )(const TABLE* net) {
  int count = 0;
  MUST(net->devices(&count) == ncclSuccess && count > 0);
  for (int dev = 0; dev < count; ++dev) {
    NAMED(ncclNetProperties_v, _t) props;
    MUST(net->getProperties(dev, &props) == ncclSuccess);
    printf("device %d %s %d Mbit/s\n", dev, props.name, props.speed);
  }
  return 0;
}

static int NAMED(connect_to_self_v, )(const TABLE* net, void* context, struct link* link) {
  char handle[NCCL_NET_HANDLE_MAXSIZE];
  void* listener = NULL;
  ncclNetDeviceHandle_t* device = NULL;
#if VERSION == 10
  ncclNetCommConfig_v10_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
#endif
  (void)context;
  MUST(net->listen(IN_CONTEXT(0, handle, &listener)) == ncclSuccess && listener != NULL);
  for (long i = 0; i < kPatience && (link->send == NULL || link->recv == NULL); ++i) {
    if (link->send == NULL) {
#if VERSION == 10
      MUST(net->connect(0, &config, handle, &link->send, &device) == ncclSuccess);
#else
      MUST(net->connect(IN_CONTEXT(WITH_DEVICE(0, handle, &link->send))) == ncclSuccess);
#endif
    }
    if (link->recv == NULL) {
      MUST(net->accept(WITH_DEVICE(listener, &link->recv)) == ncclSuccess);
    }
  }
  MUST(link->send != NULL && link->recv != NULL && device == NULL);
  MUST(net->closeListen(listener) == ncclSuccess);
  return 0;
}

static int NAMED(move_message_v, )(const TABLE* net, const struct link* link) {
  static unsigned char from[kMessageBytes];
  static unsigned char to[kMessageBytes];
#if VERSION >= 9
  size_t size = kMessageBytes;
#else
  int size = kMessageBytes;
#endif
#if VERSION >= 10
#define AND_PROFILER(request) NULL, request
#else
#define AND_PROFILER(request) request
#endif
  void* data = to;
  int tag = 42;
  int sent = 0;
  int received = 0;
  int sizes[1] = {0};
  void* from_mr = NULL;
  void* to_mr = NULL;
  void* receive = NULL;
  void* send = NULL;
  for (int i = 0; i < kMessageBytes; ++i) from[i] = (unsigned char)(i * 7 + VERSION);
  MUST(net->regMr(link->send, from, sizeof(from), NCCL_PTR_HOST, &from_mr) == ncclSuccess);
  MUST(net->regMr(link->recv, to, sizeof(to), NCCL_PTR_HOST, &to_mr) == ncclSuccess);
  for (long i = 0; i < kPatience && !(sent && received); ++i) {
    if (receive == NULL) {
      MUST(net->irecv(link->recv, 1, &data, &size, &tag, &to_mr, AND_PROFILER(&receive)) ==
           ncclSuccess);
    }
    if (send == NULL) {
      MUST(net->isend(link->send, from, kMessageBytes, tag, from_mr, AND_PROFILER(&send)) ==
           ncclSuccess);
    }
    if (send != NULL && !sent) MUST(net->test(send, &sent, NULL) == ncclSuccess);
    if (receive != NULL && !received) MUST(net->test(receive, &received, sizes) == ncclSuccess);
  }
#undef AND_PROFILER
  MUST(sent && received && sizes[0] == kMessageBytes);
  MUST(memcmp(from, to, kMessageBytes) == 0);
  send = &receive;
  MUST(net->iflush(link->recv, 1, &data, sizes, &to_mr, &send) == ncclSuccess && send == NULL);
  MUST(net->deregMr(link->send, from_mr) == ncclSuccess);
  MUST(net->deregMr(link->recv, to_mr) == ncclSuccess);
  printf("v%d moved %d bytes\n", VERSION, kMessageBytes);
  return 0;
}

static int NAMED(use_v, )(const void* symbol) {
  const TABLE* const net = (const TABLE*)symbol;
  struct link link = {NULL, NULL};
  void* context = NULL;
#if VERSION >= 11
  NAMED(ncclNetCommConfig_v, _t) config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  MUST(net->init(&context, 1, &config, print_line, NULL) == ncclSuccess);
#elif VERSION == 10
  MUST(net->init(print_line, NULL) == ncclSuccess);
#else
  MUST(net->init(print_line) == ncclSuccess);
#endif
  if (NAMED(list_devices_v, )(net) != 0 || NAMED(connect_to_self_v, )(net, context, &link) != 0 ||
      NAMED(move_message_v, )(net, &link) != 0) {
    return 1;
  }
  MUST(net->closeSend(link.send) == ncclSuccess);
  MUST(net->closeRecv(link.recv) == ncclSuccess);
#if VERSION >= 11
  MUST(net->finalize(context) == ncclSuccess);
#endif
  return 0;
}

#undef WITH_DEVICE
#undef IN_CONTEXT
#undef TABLE
#undef NAMED
#undef JOIN
#undef JOIN_
#undef VERSION
