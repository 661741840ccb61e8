// SPDX-License-Identifier: Apache-2.0
//
// Counters of nullverbs, for programs that measure the plugin over it. Use
// dlsym("nullverbs_report") in the library that the plugin has loaded.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct NullverbsReport {
  // All of its memory: one range, in which only used parts have pages.
  const void* memory;
  std::size_t memory_bytes;

  // Since the library was loaded.
  std::uint64_t send_posts;  // calls
  std::uint64_t send_requests;
  std::uint64_t recv_posts;  // calls
  std::uint64_t recv_requests;
  std::uint64_t polls;  // calls
  std::uint64_t empty_polls;
  std::uint64_t completions;       // handed out
  std::uint64_t send_completions;  // of these, those of send queues
  std::uint64_t failures;          // completions with an error, and refused calls

  // Hints to the device that one thread at a time uses an object.
  std::uint64_t thread_domains;
  std::uint64_t parent_domains;
  std::uint64_t queues_in_parent_domains;  // queue pairs, where there is a thread domain, too
  std::uint64_t single_threaded_cqs;       // in such a parent domain, or by their flag
  std::uint64_t intrusions;  // uses of such an object by a second thread, which mlx5 aborts

  // Objects that exist now.
  std::uint64_t live_thread_domains;
  std::uint64_t live_objects;  // of all kinds: domains, memory regions, CQs, queue pairs
};

const NullverbsReport* nullverbs_report();
using NullverbsReportFunction = const NullverbsReport* (*)();

}  // extern "C"
