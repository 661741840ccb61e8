/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of the statistics page is valid C, too. The test compares these results with C++.
 */
#include "include/beeline/stats_page.h"

const char* stats_layout_event_text(uint32_t number);
size_t stats_layout_slot_bytes(void);

const char* stats_layout_event_text(uint32_t number) { return beeline_stats_event_text(number); }
size_t stats_layout_slot_bytes(void) { return sizeof(struct beeline_stats_slot); }
