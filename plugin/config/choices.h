// SPDX-License-Identifier: Apache-2.0
//
// The enumerations of parameters with a fixed set of values, and their words. The first word of a
// value is the one that is printed; the others are those of NCCL.
#pragma once

#include <array>
#include <string_view>

namespace beeline {

enum class Tristate { kAuto, kOff, kOn };
enum class IpFamily { kAny, kIpv4, kIpv6 };
enum class CmChoice { kAuto, kRdmacm };
enum class GdrLevel { kLoc, kPix, kPxb, kPhb, kSys };

template <class T>
struct Choice {
  std::string_view word;
  T value;
};

// NCCL's number for "auto" is -2 for most parameters...
inline constexpr std::array kAutoOffOn{
    Choice<Tristate>{"auto", Tristate::kAuto}, Choice<Tristate>{"0", Tristate::kOff},
    Choice<Tristate>{"1", Tristate::kOn}, Choice<Tristate>{"-2", Tristate::kAuto}};
// ... and 2 for relaxed ordering.
inline constexpr std::array kAutoOffOn2{
    Choice<Tristate>{"auto", Tristate::kAuto}, Choice<Tristate>{"0", Tristate::kOff},
    Choice<Tristate>{"1", Tristate::kOn}, Choice<Tristate>{"2", Tristate::kAuto}};

// NCCL's words for distances, and its older numbers. Distances between PXB and PHB in NCCL (P2C,
// PXN) are PXB here.
inline constexpr std::array kGdrLevels{
    Choice<GdrLevel>{"LOC", GdrLevel::kLoc}, Choice<GdrLevel>{"PIX", GdrLevel::kPix},
    Choice<GdrLevel>{"PXB", GdrLevel::kPxb}, Choice<GdrLevel>{"P2C", GdrLevel::kPxb},
    Choice<GdrLevel>{"PXN", GdrLevel::kPxb}, Choice<GdrLevel>{"PHB", GdrLevel::kPhb},
    Choice<GdrLevel>{"SYS", GdrLevel::kSys}, Choice<GdrLevel>{"0", GdrLevel::kLoc},
    Choice<GdrLevel>{"1", GdrLevel::kPix},   Choice<GdrLevel>{"2", GdrLevel::kPxb},
    Choice<GdrLevel>{"3", GdrLevel::kPhb},   Choice<GdrLevel>{"4", GdrLevel::kSys},
    Choice<GdrLevel>{"5", GdrLevel::kSys}};

inline constexpr std::array kIpFamilies{Choice<IpFamily>{"any", IpFamily::kAny},
                                        Choice<IpFamily>{"AF_INET", IpFamily::kIpv4},
                                        Choice<IpFamily>{"AF_INET6", IpFamily::kIpv6}};

inline constexpr std::array kCmChoices{Choice<CmChoice>{"auto", CmChoice::kAuto},
                                       Choice<CmChoice>{"rdmacm", CmChoice::kRdmacm}};

}  // namespace beeline
