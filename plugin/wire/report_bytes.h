// SPDX-License-Identifier: Apache-2.0
//
// Reports about a failed path as parts of messages.
#pragma once

#include "plugin/wire/message_bytes.h"
#include "plugin/wire/reports.h"

namespace beeline::wire {

void encode(const LineSet& lines, Writer& writer);
void encode(const ReceiverReport& report, Writer& writer);
void encode(const SenderReport& report, Writer& writer);
LineSet decode_lines(Reader& reader);
ReceiverReport decode_receiver_report(Reader& reader);
SenderReport decode_sender_report(Reader& reader);

}  // namespace beeline::wire
