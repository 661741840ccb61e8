// SPDX-License-Identifier: Apache-2.0
//
// Data that peers write into the memory of this process: the handle, credit lines, and immediate
// data.
//
// Handles and credit lines end in a check sum that a fuzzer cannot guess. If the first byte of an
// input is odd, the sum is corrected before decoding.
#include <algorithm>
#include <array>
#include <cstring>

#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"
#include "tests/fuzz/wire_targets.h"
#include "tests/support/wire_samples.h"

namespace beeline::fuzz {
namespace {

using namespace beeline::wire;

bool wants_repair(ByteView bytes) { return (bytes[0] & std::byte{1}) != std::byte{0}; }

// --- The handle: one byte, then 128 ---

constexpr std::size_t kAttemptAt = 104;
constexpr std::size_t kSumAt = 112;

void repair_handle(HandleBytes handle) {
  std::uint32_t sum = 0x811c'9dc5U;  // FNV-1a
  for (std::size_t i = 0; i < kAttemptAt; ++i) {
    sum = (sum ^ std::to_integer<std::uint32_t>(handle[i])) * 0x0100'0193U;
  }
  for (std::size_t i = 0; i < 4; ++i) {
    handle[kSumAt + i] = static_cast<std::byte>(sum >> (8 * i) & 0xff);
  }
}

void hold_handle(const Handle& handle) {
  hold(handle.versions.least >= 1 && handle.versions.least <= handle.versions.most,
       "versions are a range");
  hold(handle.address.kind <= AddressKind::kIpv6 && handle.address.port != 0,
       "an address that can be dialed");
  hold(handle.counts.rails >= 1 && handle.counts.rails <= kMaxRails, "a rail, and not too many");
  hold(handle.counts.qps_per_rail >= 1 && handle.counts.qps_per_rail <= kMaxPaths,
       "a queue pair, and not too many");
  for (const std::string& text : {handle.host, handle.device}) {
    hold(text.size() <= kHandleTextBytes, "a text is no longer than it may be");
    hold(std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; }),
         "a text can be printed");
  }
}

bool take_handle(ByteView bytes) {
  if (bytes.size() < 1 + kHandleBytes) return false;
  std::array<std::byte, kHandleBytes> handle;
  std::copy_n(bytes.begin() + 1, kHandleBytes, handle.begin());
  if (wants_repair(bytes)) repair_handle(HandleBytes(handle));
  const Result<VersionRange> versions = versions_of(ConstHandleBytes(handle));
  const std::uint64_t attempt = attempt_in(ConstHandleBytes(handle));
  const Result<Handle> first = decode_handle(ConstHandleBytes(handle));
  if (!first) return false;
  hold(versions && *versions == first->versions, "versions can be told beforehand");
  hold_handle(*first);
  std::array<std::byte, kHandleBytes> again;
  encode(*first, HandleBytes(again));
  hold(attempt_in(ConstHandleBytes(again)) == 0, "an attempt is not carried on");
  set_attempt(HandleBytes(again), attempt);
  hold(attempt_in(ConstHandleBytes(again)) == attempt, "an attempt is remembered");
  const Result<Handle> second = decode_handle(ConstHandleBytes(again));
  hold(second && *second == *first, "the same after another way through");
  again[std::to_integer<std::size_t>(bytes[0]) % kAttemptAt] ^= std::byte{1};
  hold(!decode_handle(ConstHandleBytes(again)), "a damaged handle is refused");
  return true;
}

std::vector<Bytes> handle_seeds() {
  Handle ipv4 = test::sample_handle();
  ipv4.address = {.kind = AddressKind::kIpv4, .port = 1, .bytes = {127, 0, 0, 1}, .scope = 0};
  ipv4.host = std::string(kHandleTextBytes, 'h');
  std::vector<Bytes> seeds;
  for (const Handle& handle : {test::sample_handle(), ipv4}) {
    Bytes seed(1 + kHandleBytes, std::byte{1});
    encode(handle, HandleBytes(seed.data() + 1, kHandleBytes));
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// --- A credit line: one byte, the position to read, 64 bytes ---

constexpr std::size_t kLineAt = 5;

Rails rails_in(std::byte head) {
  return (head & std::byte{2}) == std::byte{0} ? Rails::kFew : Rails::kMany;
}

bool is_same(const LineFacts& a, const LineFacts& b) {
  return a.address == b.address && a.capacity == b.capacity && a.tag == b.tag && a.rkey == b.rkey &&
         a.number == b.number && a.index == b.index && a.count == b.count && a.epoch == b.epoch;
}

void hold_facts(const LineFacts& facts, const CreditLine& line) {
  hold(is_same(facts, {.address = line.address,
                       .capacity = line.capacity,
                       .tag = line.tag,
                       .rkey = line.rkeys[0],
                       .number = line.number,
                       .index = line.index,
                       .count = line.count,
                       .epoch = line.epoch}),
       "what is read is what the line says");
}

bool take_credit(ByteView bytes) {
  if (bytes.size() < kLineAt + sizeof(CreditLine)) return false;
  std::uint32_t position = 0;
  CreditLine line;
  std::memcpy(&position, bytes.data() + 1, sizeof position);
  std::memcpy(&line, bytes.data() + kLineAt, sizeof line);
  const Rails rails = rails_in(bytes[0]);
  if (wants_repair(bytes)) {
    line.number = position + 1;
    seal(line, rails);
  }
  LineFacts facts{};
  if (!read_line(line, position, rails, facts)) {
    hold(!wants_repair(bytes), "a whole line of that number is there");
    return false;
  }
  hold(is_there(line, position) && line.number == position + 1, "the number that was asked for");
  hold_facts(facts, line);
  CreditLine again = line;
  write_line(again,
             {.address = facts.address,
              .capacity = facts.capacity,
              .tag = facts.tag,
              .rkeys = &line.rkeys},
             order_of(facts.number, facts.index, facts.count, facts.epoch), rails);
  LineFacts second{};
  hold(read_line(again, position, rails, second) && is_same(facts, second),
       "the same after another way through");
  hold(!read_line(line, position + 1, rails, second), "a line is there at one position");
  hold(!read_line(line, position - std::uint32_t{kMaxLines}, rails, second), "nor a round before");
  line.sum ^= std::uint64_t{1} << (std::to_integer<unsigned>(bytes[0]) % 64);
  hold(!read_line(line, position, rails, second), "not with another sum");
  return true;
}

std::vector<Bytes> credit_seeds() {
  CreditLine line = {.address = 0x7f00'0000'1000,
                     .capacity = 4096,
                     .tag = 3,
                     .rkeys = {0x1100, 0x1200},
                     .index = 0,
                     .count = 1,
                     .notices = 1,
                     .epoch = 0,
                     .number = 1,
                     .sum = 0};
  std::vector<Bytes> seeds;
  for (const std::byte head : {std::byte{0}, std::byte{1}, std::byte{2}, std::byte{3}}) {
    seal(line, rails_in(head));
    Bytes seed(kLineAt + sizeof line, head);
    std::memset(seed.data() + 1, 0, kLineAt - 1);  // the position
    std::memcpy(seed.data() + kLineAt, &line, sizeof line);
    seeds.push_back(std::move(seed));
  }
  return seeds;
}

// --- An immediate ---

bool take_immediate(ByteView bytes) {
  std::uint32_t bits = 0;
  if (bytes.size() < sizeof bits) return false;
  std::memcpy(&bits, bytes.data(), sizeof bits);
  hold(pack(unpack(bits)) == (bits & 0xff'ffffU), "24 bits are used");
  return true;
}

std::vector<Bytes> immediate_seeds() {
  Writer writer;
  writer(pack({.line = 0xabcd, .generation = 7}));
  return {writer.take()};
}

constexpr std::array<Target, 3> kMemoryTargets = {{
    {"handle", take_handle, handle_seeds},
    {"credit", take_credit, credit_seeds},
    {"immediate", take_immediate, immediate_seeds},
}};

}  // namespace

std::span<const Target> memory_targets() { return kMemoryTargets; }

}  // namespace beeline::fuzz
