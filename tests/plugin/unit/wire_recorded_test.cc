// SPDX-License-Identifier: Apache-2.0
//
// The bytes that two processes exchange, compared with a file of recorded bytes. A released plugin
// reads and writes exactly these, so after a release they change only with the version of the
// protocol (plugin/wire/message_version.h). docs/releases.md says how to record new ones:
//   build/tests/plugin/unit/wire_test '[record]'
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "plugin/wire/credit.h"
#include "plugin/wire/notice.h"
#include "tests/support/catch.h"
#include "tests/support/wire_samples.h"

using namespace beeline;
using namespace beeline::test;
using namespace beeline::wire;

namespace {

using AllMessages =
    std::tuple<Hello, HelloAck, Refuse, Connect, Accept, Ready, Reject, Goodbye, Resume, ResumeAck,
               StillOpen, Fenced, OfferPath, AnswerPath, PathNote>;
static_assert(std::tuple_size_v<AllMessages> == static_cast<std::size_t>(kLastType));

template <class Visit, class... Message>
void visit_types(Visit& visit, const std::tuple<Message...>*) {
  (visit(to_string(Message::kType), sample<Message>()), ...);
}

// Calls visit(name, message) for each.
template <class Visit>
void for_each_message(Visit visit) {
  visit_types(visit, static_cast<const AllMessages*>(nullptr));
  visit("FENCED of a sender", sample_sender_report());
}

template <class Object>
Bytes memory_of(const Object& object) {
  Bytes bytes(sizeof object);
  std::memcpy(bytes.data(), &object, sizeof object);
  return bytes;
}

Bytes handle_bytes() {
  std::array<std::byte, kHandleBytes> bytes{};
  encode(sample_handle(), bytes);
  return Bytes(bytes.begin(), bytes.end());
}

constexpr std::uint32_t kPosition = 0x1'0002;
constexpr Notice kNotice{
    .line = 0xabcd, .generation = 5, .chunks = 4, .size = 65'535, .which = 0b1010};

CreditLine sample_line(Rails rails) {
  const std::array<std::uint32_t, kMaxRails> rkeys = sample_window().rkeys;
  const Granted granted{
      .address = 0x7fff'1234'5678, .capacity = 65'537, .tag = -7, .rkeys = &rkeys};
  CreditLine line{};
  write_line(line, granted, order_of(kPosition + 1, 2, 3, 4), rails);
  return line;
}

// 32 bytes on each line. The first line of a message is the head of its frame.
std::string hex_lines(const Bytes& bytes, std::size_t head = 0) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == head || (i > head && (i - head) % 32 == 0)) text += i == 0 ? "" : "\n";
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    text += {kDigits[byte / 16], kDigits[byte % 16]};
  }
  return text + "\n";
}

std::map<std::string, std::string> all_hex_lines() {
  std::map<std::string, std::string> all;
  for_each_message([&all](const char* name, const auto& message) {
    all[name] = hex_lines(encode(message), kFrameHeadBytes);
  });
  all["handle"] = hex_lines(handle_bytes());
  all["credit line, 1 or 2 rails"] = hex_lines(memory_of(sample_line(Rails::kFew)));
  all["credit line, 3 to 8 rails"] = hex_lines(memory_of(sample_line(Rails::kMany)));
  all["notice"] = hex_lines(memory_of(kNotice));
  all["immediate"] = hex_lines(memory_of(pack({.line = 0xabcd, .generation = 5})));
  return all;
}

std::string file_name() {
  return BL_RECORDED "/wire_" + std::to_string(kOurVersions.most) + ".txt";
}

// By name. In the file, a name is on a line of its own that ends with a colon.
std::map<std::string, std::string> recorded() {
  std::ifstream file(file_name());
  std::map<std::string, std::string> all;
  std::string line;
  std::string name;
  while (std::getline(file, line)) {
    if (line.empty() || line.starts_with('#')) continue;
    if (line.ends_with(':')) {
      name = line.substr(0, line.size() - 1);
    } else {
      all[name] += line + "\n";
    }
  }
  return all;
}

Bytes recorded_bytes(const std::string& name) {
  Bytes bytes;
  const std::string text = recorded()[name];
  for (std::size_t i = 0; i + 1 < text.size(); i += text[i] == '\n' ? 1 : 2) {
    if (text[i] != '\n') {
      bytes.push_back(static_cast<std::byte>(std::stoul(text.substr(i, 2), nullptr, 16)));
    }
  }
  return bytes;
}

template <class Object>
Object recorded_object(const std::string& name) {
  const Bytes bytes = recorded_bytes(name);
  Object object{};
  REQUIRE(bytes.size() == sizeof object);
  std::memcpy(&object, bytes.data(), sizeof object);
  return object;
}

}  // namespace

TEST_CASE("wire recorded: encoding gives the recorded bytes", "[unit][wire]") {
  const auto before = recorded();
  INFO("The bytes of protocol " << text(kOurVersions) << " differ from " << file_name()
                                << ". Released plugins do not understand them: raise kOurVersions, "
                                   "and record the new bytes (docs/releases.md).");
  for (const auto& [name, now] : all_hex_lines()) {
    INFO(name);
    REQUIRE(before.contains(name));
    CHECK(now == before.at(name));
  }
  CHECK(before.size() == all_hex_lines().size());
}

TEST_CASE("wire recorded: the recorded bytes are decoded to the messages", "[unit][wire]") {
  for_each_message([](const char* name, const auto& message) {
    using Message = std::decay_t<decltype(message)>;
    INFO(name);
    FrameSplitter splitter;
    splitter.append(recorded_bytes(name));
    const auto frame = splitter.next();
    REQUIRE((frame && *frame));
    CHECK((*frame)->type == Message::kType);
    const auto decoded = decode<Message>((*frame)->body);
    REQUIRE(decoded);
    CHECK(*decoded == message);
  });
  const Bytes bytes = recorded_bytes("handle");
  REQUIRE(bytes.size() == kHandleBytes);
  const auto handle = decode_handle(ConstHandleBytes(bytes.data(), kHandleBytes));
  REQUIRE(handle);
  CHECK(*handle == sample_handle());
}

TEST_CASE("wire recorded: the recorded credit lines and notices are read", "[unit][wire]") {
  for (const auto& [name, rails] : {std::pair{"credit line, 1 or 2 rails", Rails::kFew},
                                    std::pair{"credit line, 3 to 8 rails", Rails::kMany}}) {
    INFO(name);
    const auto line = recorded_object<CreditLine>(name);
    LineFacts facts{};
    REQUIRE(read_line(line, kPosition, rails, facts));
    CHECK(facts.address == 0x7fff'1234'5678);
    CHECK(facts.capacity == 65'537);
    CHECK(facts.tag == -7);
    CHECK((facts.index == 2 && facts.count == 3 && facts.epoch == 4));
    const std::size_t last = rails == Rails::kFew ? kFewRails - 1 : kMaxRails - 1;
    CHECK(rkey_in(line, last) == sample_window().rkeys[last]);
  }
  const auto notice = recorded_object<Notice>("notice");
  CHECK(is_consistent(notice));
  CHECK((notice.line == kNotice.line && notice.generation == kNotice.generation));
  CHECK((notice.size == kNotice.size && notice.which == kNotice.which));
  const Immediate immediate = unpack(recorded_object<std::uint32_t>("immediate"));
  CHECK((immediate.line == 0xabcd && immediate.generation == 5));
}

// Only when it is named.
TEST_CASE("wire recorded: write the file", "[.][record]") {
  std::ofstream file(file_name());
  file << "# The bytes of protocol version " << kOurVersions.most
       << ", in hexadecimal, of the samples in tests/support/wire_samples.h and of\n"
          "# tests/plugin/unit/wire_recorded_test.cc. After a release that speaks this version, "
          "they must "
          "not change.\n";
  for (const auto& [name, now] : all_hex_lines()) file << "\n" << name << ":\n" << now;
  REQUIRE(file.flush());
}
