/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of the statistics page, in which a Beeline process shows the state, the counters, the
 * events and the last messages of each connection. Another process can read the file while its
 * owner runs or hangs, or after it was killed. C11 and C++20, without the rest of Beeline.
 *
 * The file is DIRECTORY/beeline-PID-START, where START is the start time in field 22 of
 * /proc/PID/stat. Numbers are in the byte order of the machine. The header is at the start. At
 * offset `header_bytes` there are `slot_count` slots of `slot_bytes`, of which the first
 * `slots_used` have been used at least once. The file is sparse. Before use, a reader must check
 * the magic number (which is written last, so read it first), the version, and all sizes against
 * this header and against the length of the file. It should copy what it reads, by pread(), and
 * not map the file: its owner may make it shorter, which ends a process that reads the mapping
 * (SIGBUS), and reading a mapped hole takes memory.
 *
 * Every number is written by one aligned store, and there are no locks, so that a writer that is
 * killed or stopped does not block readers. The reader must detect changes as follows.
 *
 * Slot: read `generation` with acquire order, copy the slot, and read `generation` again. If it has
 * changed, the slot was given to another connection meanwhile; if it is odd, that is in progress;
 * if it is 0, the slot was never used. (Calls of pread() one after the other are in order.)
 *
 * Events: event number n, below `life_claimed`, is at n modulo the length of `life`. It is valid if
 * its `what` is not 0 and is the same before and after the rest was read (each with acquire order),
 * and if `life_claimed`, read after that, is at most n + length. Several threads write them, so
 * sort them by time.
 *
 * Looks: the same, with `looks_claimed` and `looks`. One thread writes them in order. It looks
 * about once a second, and records a connection only if it has moved, or begins or ends to wait. So
 * the newest ones tell how the connection ran before it stood still.
 *
 * Connections that are not made: a connect() that is under way has a slot in state CONNECTING,
 * which becomes that of the connection. If it fails, the slot's state is FAILED, and its last event
 * is FAILED with the error. A connection that has failed keeps this state when it is closed: what
 * is open has a `closed_ns` of 0. A listener has a slot (role LISTEN) once accept() has waited
 * there for about a second. It is no connection.
 *
 * Messages: the size of message number n, counted from 0 in the order of the receives, is at n
 * modulo the length of `sizes`. A sender has put it there when `messages` is above n, and a
 * receiver when `grants` is above n: first BEELINE_STATS_UNDER_WAY, then the size that has arrived.
 * Message n + length replaces it.
 */
#ifndef BEELINE_STATS_PAGE_H
#define BEELINE_STATS_PAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define BEELINE_STATS_ASSERT(condition) static_assert(condition, #condition)
#else
#define BEELINE_STATS_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define BEELINE_STATS_MAGIC \
  UINT64_C(0x53454e494c454542) /* "BEELINES", on a little-endian machine */
#define BEELINE_STATS_VERSION 2
#define BEELINE_STATS_HEADER_BYTES 4096
#define BEELINE_STATS_MOST_SLOTS 1024
#define BEELINE_STATS_LIFE_EVENTS 16
#define BEELINE_STATS_LOOKS 32
#define BEELINE_STATS_SIZES 128
#define BEELINE_STATS_UNDER_WAY UINT32_MAX

/* The counters of each connection: index, C name, C++ name, text. */
#define BEELINE_STATS_COUNTERS(X)                            \
  X(0, MESSAGES, kMessages, "messages")                      \
  X(1, BYTES, kBytes, "bytes")                               \
  X(2, COMPLETIONS, kCompletions, "completions")             \
  X(3, GRANTS, kGrants, "buffers granted to the sender")     \
  X(4, EMPTY_TESTS, kEmptyTests, "tests that found nothing") \
  X(5, TRUNCATIONS, kTruncations, "truncations")             \
  X(6, ERRORS, kErrors, "errors")

#define BEELINE_STATS_STATES(X)               \
  X(0, FREE, kFree, "free")                   \
  X(1, CONNECTING, kConnecting, "connecting") \
  X(2, READY, kReady, "ready")                \
  X(3, FAILED, kFailed, "failed")             \
  X(4, CLOSED, kClosed, "closed")

#define BEELINE_STATS_ROLES(X)       \
  X(1, SEND, kSend, "send")          \
  X(2, RECEIVE, kReceive, "receive") \
  X(3, LISTEN, kListen, "listen")

/* What a connection waits for. Looked at about once a second.
 *   CREDIT: a sender, while the peer has posted no receive.
 *   DATA: a receiver, while the peer has sent nothing.
 *   ACKNOWLEDGMENT: a sender whose data is on the way.
 *   TEST: requests are open, and the application calls nothing for them.
 *   PATH: all paths have failed, and none works again yet.
 *   CONNECT: connect() is called again and again, and the connection is not made.
 *   ACCEPT: a listener, while accept() is called again and again and finds nothing. */
#define BEELINE_STATS_WAITS(X)                                            \
  X(0, NOTHING, kNothing, "nothing")                                      \
  X(1, CREDIT, kCredit, "a receive of the peer")                          \
  X(2, DATA, kData, "data from the peer")                                 \
  X(3, ACKNOWLEDGMENT, kAcknowledgment, "the acknowledgment of its data") \
  X(4, TEST, kTest, "a test by its own application")                      \
  X(5, PATH, kPath, "a path that works")                                  \
  X(6, CONNECT, kConnect, "the connection to be made")                    \
  X(7, ACCEPT, kAccept, "a connection to accept")

/* A path of a connection. */
#define BEELINE_STATS_PATHS 8
#define BEELINE_STATS_PATH_STATES(X)                    \
  X(0, NONE, kNone, "none") /* there is no such path */ \
  X(1, UP, kUp, "up")                                   \
  X(2, DOWN, kDown, "down") /* it has failed, and is made anew when it works */

/* Rare events in the life of a connection. In brackets: `arg` and `value`. Missing numbers were
 * events of earlier builds and must not be used again. */
#define BEELINE_STATS_EVENTS(X)                                                          \
  X(4, READY, kReady, "ready")                                 /* [number of rails] */   \
  X(5, TIMED_OUT, kTimedOut, "timed out")                      /* [-, ns waited] */      \
  X(6, COMPLETION_ERROR, kCompletionError, "completion error") /* [status, vendor's] */  \
  X(8, PEER_BYE, kPeerBye, "peer said bye")                    /* [-, last sequence] */  \
  X(9, PEER_DIED, kPeerDied, "peer died")                                                \
  X(10, FAILED, kFailed, "failed") /* [kind of error, errno] */                          \
  X(11, CLOSED, kClosed, "closed")                                                       \
  X(12, TRUNCATION, kTruncation, "first truncation") /* [size kept, size sent] */        \
  X(13, PATH_DOWN, kPathDown, "path down")           /* of this rail */                  \
  X(14, PATH_UP, kPathUp, "path up again")           /* of this rail */                  \
  X(17, PORT_DOWN, kPortDown, "port down")           /* of this rail, at this end */     \
  X(15, MOVED, kMoved, "moved")                      /* [messages modulo 2^32, bytes] */ \
  X(16, WAITS, kWaits, "waits for") /* [what: see above, since when], and in place       \
                                       of the rail: open requests */

#define BEELINE_STATS_COUNTER_(number, name, cc_name, text) BEELINE_COUNTER_##name = (number),
#define BEELINE_STATS_STATE_(number, name, cc_name, text) BEELINE_STATE_##name = (number),
#define BEELINE_STATS_ROLE_(number, name, cc_name, text) BEELINE_ROLE_##name = (number),
#define BEELINE_STATS_EVENT_(number, name, cc_name, text) BEELINE_EVENT_##name = (number),
#define BEELINE_STATS_PATH_STATE_(number, name, cc_name, text) BEELINE_PATH_##name = (number),
#define BEELINE_STATS_WAIT_(number, name, cc_name, text) BEELINE_WAIT_##name = (number),
enum beeline_stats_counter {
  BEELINE_STATS_COUNTERS(BEELINE_STATS_COUNTER_) BEELINE_STATS_COUNTER_COUNT
};
enum beeline_stats_state { BEELINE_STATS_STATES(BEELINE_STATS_STATE_) };
enum beeline_stats_role { BEELINE_STATS_ROLES(BEELINE_STATS_ROLE_) };
enum beeline_stats_event_kind { BEELINE_STATS_EVENTS(BEELINE_STATS_EVENT_) };
enum beeline_stats_path_state { BEELINE_STATS_PATH_STATES(BEELINE_STATS_PATH_STATE_) };
enum beeline_stats_wait { BEELINE_STATS_WAITS(BEELINE_STATS_WAIT_) };

/* Texts end with a zero byte and are truncated to fit. Times are CLOCK_MONOTONIC, or unix time. */
struct beeline_stats_header {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint32_t slot_bytes;
  uint32_t slot_count;
  uint32_t life_events;
  uint32_t sizes;
  uint32_t counter_count;
  uint32_t slots_used;
  uint64_t slots_refused; /* connections that got no slot and are not shown */
  uint64_t pid;           /* in its own pid namespace */
  uint64_t start_time;
  uint64_t opened_ns;
  uint64_t opened_unix_ns;
  char host[64];
  char build[48];
  uint64_t rank;  /* as the launcher has set it; UINT64_MAX: it has set none */
  uint64_t ranks; /* how many there are in the job; the same */
  /* A random number by which others find the process that they connect to: see `peer_identity`. 0:
   * it has neither listened nor connected yet. */
  uint64_t identity;
  char job[96];      /* its name, or what its launcher says of it; empty: nothing */
  uint64_t alive_ns; /* when its control thread last ran, about once a second; 0: not yet */
};

struct beeline_stats_event {
  uint64_t time_ns;
  uint64_t what; /* kind, rail and arg in one word: see below */
  uint64_t value;
};

struct beeline_stats_path {
  uint64_t bytes; /* as of the last look, about once a second */
  uint32_t state;
  uint32_t failures;   /* how often it has failed */
  char device[32];     /* of this end, that carries it, and its port: "mlx5_0:1" */
  char own_device[32]; /* where another stands in: the one that does not work */
};

struct beeline_stats_slot {
  uint32_t generation;
  uint32_t state; /* FAILED stays when the slot is closed */
  uint64_t id;    /* number of the connection in the process, from 1 */
  uint32_t role;
  uint32_t waits_for;
  uint64_t opened_ns;
  uint64_t closed_ns; /* 0: open */
  uint64_t life_claimed;
  uint64_t waits_since_ns; /* 0: it waits for nothing */
  uint64_t requests;       /* that are open, if it waits */
  /* One cache line, written by the connection's own thread. */
  uint64_t counters[7];
  uint64_t quiet_since_ns; /* tests have found nothing since then; 0: no test has looked yet */
  char device[32];
  char peer_host[64]; /* in state CONNECTING, cut to 16 letters */
  char peer_device[32];
  struct beeline_stats_event life[BEELINE_STATS_LIFE_EVENTS];
  uint32_t sizes[BEELINE_STATS_SIZES]; /* of the last messages, in bytes */
  /* The other end is in process `peer_pid` of `peer_host`, in the slot whose two numbers are these
   * in the opposite order. Valid from state READY on. Before, `peer_pid` is 0, and `peer_number` is
   * that of the listener. Of a listener, `number` is its own. */
  uint64_t peer_pid;
  uint32_t number;
  uint32_t peer_number;
  struct beeline_stats_path paths[BEELINE_STATS_PATHS];
  uint64_t moved_ns; /* the last look that saw anything move; 0: none has */
  /* The peer's CLOCK_MONOTONIC less this host's, as the control channel was made, and by how much
   * that may be wrong. An error of 0: not measured, because the peer has dialed. */
  int64_t peer_clock_ns;
  uint64_t peer_clock_error_ns;
  uint64_t looks_claimed;
  struct beeline_stats_event looks[BEELINE_STATS_LOOKS];
  uint64_t peer_identity; /* of the process that this end has connected to; 0: unknown */
  uint64_t padding[1];
};

BEELINE_STATS_ASSERT(BEELINE_STATS_COUNTER_COUNT == 7);
BEELINE_STATS_ASSERT(sizeof(struct beeline_stats_header) == 320);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_header, slots_refused) == 40);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_header, host) == 80);
BEELINE_STATS_ASSERT(sizeof(struct beeline_stats_event) == 24);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, counters) == 64);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, device) == 128);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, life) == 256);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, sizes) == 640);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, peer_pid) == 1152);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, paths) == 1168);
BEELINE_STATS_ASSERT(sizeof(struct beeline_stats_path) == 80);
BEELINE_STATS_ASSERT(offsetof(struct beeline_stats_slot, looks) == 1840);
BEELINE_STATS_ASSERT(sizeof(struct beeline_stats_slot) == 2624);

static inline uint64_t beeline_stats_what(uint16_t kind, uint16_t rail, uint32_t arg) {
  return (uint64_t)kind | (uint64_t)rail << 16 | (uint64_t)arg << 32;
}
static inline uint16_t beeline_stats_kind(uint64_t what) { return (uint16_t)(what & 0xffff); }
static inline uint16_t beeline_stats_rail(uint64_t what) { return (uint16_t)(what >> 16 & 0xffff); }
static inline uint32_t beeline_stats_arg(uint64_t what) { return (uint32_t)(what >> 32); }

/* Texts for messages; "?" for a number of a newer version. */
#define BEELINE_STATS_TEXT_(number, name, cc_name, text) \
  case number:                                           \
    return text;
#define BEELINE_STATS_TEXTS_(function, list)                            \
  static inline const char* function(uint32_t number) {                 \
    switch (number) { list(BEELINE_STATS_TEXT_) default : return "?"; } \
  }
BEELINE_STATS_TEXTS_(beeline_stats_counter_text, BEELINE_STATS_COUNTERS)
BEELINE_STATS_TEXTS_(beeline_stats_state_text, BEELINE_STATS_STATES)
BEELINE_STATS_TEXTS_(beeline_stats_role_text, BEELINE_STATS_ROLES)
BEELINE_STATS_TEXTS_(beeline_stats_event_text, BEELINE_STATS_EVENTS)
BEELINE_STATS_TEXTS_(beeline_stats_path_state_text, BEELINE_STATS_PATH_STATES)
BEELINE_STATS_TEXTS_(beeline_stats_wait_text, BEELINE_STATS_WAITS)

#endif
