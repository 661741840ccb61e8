// SPDX-License-Identifier: Apache-2.0
// The limits keep later arithmetic far from an overflow of 64 bits: nanoseconds are divided by a
// rate, and a latency is added to a clock.
#include "softnic/spec/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <span>

namespace softnic {
namespace {

struct Unit {
  const char* suffix;
  std::uint64_t factor;
};

constexpr Unit kRateUnits[] = {
    {"G", 1'000'000'000}, {"M", 1'000'000}, {"k", 1'000}, {"K", 1'000}, {"", 1}};
constexpr Unit kTimeUnits[] = {{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}};

constexpr Unit kShareUnits[] = {{"%", 10'000}, {"ppm", 1}};

constexpr double kMaxRate = 1e13;      // bytes/s, 80 Tb/s
constexpr double kMaxDuration = 1e11;  // ns, 100 s
constexpr double kMaxLongDuration = 86'400e9;
constexpr double kMaxShare = 1e6;  // ppm, 100%

// Parses a decimal number followed by one of the units.
std::optional<double> parse_quantity(const std::string& text, std::span<const Unit> units) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string suffix(rest, end);
  for (const Unit& unit : units)
    if (suffix == unit.suffix) return number * static_cast<double>(unit.factor);
  return std::nullopt;
}

std::string quantity_text(std::uint64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value < unit.factor) continue;
    return fmt::format("{:.6g}{}", static_cast<double>(value) / static_cast<double>(unit.factor),
                       unit.suffix);
  }
  return "0";
}

beeline::Outcome<std::uint64_t> parse_duration_up_to(double longest, const char* longest_text,
                                                     const std::string& text) {
  if (text == "0") return std::uint64_t{0};
  const std::optional<double> ns = parse_quantity(text, kTimeUnits);
  if (!ns)
    return beeline::fail(
        fmt::format("\"{}\" is not a time: write for example 50us (ns, us, ms, s)", text));
  if (*ns > longest)
    return beeline::fail(fmt::format("time {} is out of range: at most {}", text, longest_text));
  return static_cast<std::uint64_t>(std::llround(*ns));
}

}  // namespace

beeline::Outcome<std::uint64_t> parse_rate(const std::string& text) {
  if (text == "max") return std::uint64_t{0};
  const std::optional<double> rate = parse_quantity(text, kRateUnits);
  if (!rate)
    return beeline::fail(fmt::format(
        "\"{}\" is not a rate: write bytes per second such as 200M (k, M, G) or max", text));
  if (*rate < 1 || *rate > kMaxRate)
    return beeline::fail(fmt::format(
        "rate {} is out of range: 1 to {:.0f} bytes per second, or max", text, kMaxRate));
  return static_cast<std::uint64_t>(std::llround(*rate));
}

beeline::Outcome<std::uint64_t> parse_duration_ns(const std::string& text) {
  return parse_duration_up_to(kMaxDuration, "100s", text);
}

beeline::Outcome<std::uint64_t> parse_long_duration_ns(const std::string& text) {
  return parse_duration_up_to(kMaxLongDuration, "a day", text);
}

beeline::Outcome<std::uint64_t> parse_share_ppm(const std::string& text) {
  if (text == "0") return std::uint64_t{0};
  const std::optional<double> ppm = parse_quantity(text, kShareUnits);
  if (!ppm)
    return beeline::fail(
        fmt::format("\"{}\" is not a share: write for example 2.5% or 100ppm, or 0", text));
  if (*ppm != 0 && (*ppm < 1 || *ppm > kMaxShare))
    return beeline::fail(fmt::format("share {} is out of range: 1ppm to 100%, or 0", text));
  return static_cast<std::uint64_t>(std::llround(*ppm));
}

std::string rate_text(std::uint64_t bytes_per_second) {
  return bytes_per_second == 0 ? "max" : quantity_text(bytes_per_second, kRateUnits);
}

std::string duration_text(std::uint64_t ns) { return quantity_text(ns, kTimeUnits); }

std::string share_text(std::uint64_t ppm) {
  if (ppm == 0) return "0";
  return ppm < 1000 ? fmt::format("{}ppm", ppm)
                    : fmt::format("{:.6g}%", static_cast<double>(ppm) / 10'000);
}

}  // namespace softnic
