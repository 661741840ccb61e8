// SPDX-License-Identifier: Apache-2.0
//
// Where the messages to a peer go: in the plugin, to the socket of its control channel.
#pragma once

#include "plugin/wire/message_bytes.h"

namespace beeline {

class MessageSink {
 public:
  // Any thread may call it. It does not wait. The message may be lost.
  virtual void send(const wire::Bytes& frame) noexcept = 0;

 protected:
  ~MessageSink() = default;
};

}  // namespace beeline
