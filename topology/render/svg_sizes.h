// SPDX-License-Identifier: Apache-2.0
//
// The sizes of the elements of the picture, in pixels.
#pragma once

namespace beeline::topology {

inline constexpr double kMargin = 24;
inline constexpr double kTitle = 52;     // above the first row
inline constexpr double kRowTitle = 30;  // within each row
inline constexpr double kInset = 14;
inline constexpr double kGap = 12;
inline constexpr double kDevice = 112;  // width
inline constexpr double kDeviceHeight = 58;
inline constexpr double kBarHeight = 26;
inline constexpr double kBarWidth = 168;  // at least, so that its label fits
inline constexpr double kLink = 46;       // length

inline constexpr double kTextLine = 17;
inline constexpr double kCharacter = 6.9;      // of the widest text that is not in a box, roughly
inline constexpr double kLeastForNotes = 760;  // width of the lines below the rows

// The maximum width of a row, so that the picture can be read on a screen.
inline constexpr double kMostInRow = 1740;

}  // namespace beeline::topology
