// SPDX-License-Identifier: Apache-2.0
#include "bench/support/fabric_port.h"

#include <cstdlib>
#include <utility>

#include "tests/support/must.h"

namespace beeline::bench {
namespace {

template <class T>
T must(Outcome<T> outcome) {
  if (!outcome) throw test::MustError(outcome.error().text);
  return std::move(*outcome);
}

const char* fabric_name() {
  const char* const name = std::getenv("SOFTNIC_FABRIC");
  if (name == nullptr)
    throw test::MustError("not on a fabric; start it as: softnic run -- PROGRAM");
  return name;
}

}  // namespace

FabricPort::FabricPort(const std::string& name)
    : fabric_(must(softnic::Fabric::open(fabric_name()))),
      port_(must(softnic::find_port(fabric_, name))) {}

void FabricPort::command(const std::string& text) {
  softnic::apply(fabric_, port_, must(softnic::parse_port_command(text)));
}

}  // namespace beeline::bench
