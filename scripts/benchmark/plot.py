#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bandwidth and latency against size as SVG, with the standard library only.

Usage: plot.py RESULT.json FILE.svg
"""

import json
import math
import sys
from xml.sax.saxutils import escape

from sizes import size_text

# The colors also differ in brightness, for print and for color-blind readers.
STYLES = [("#0b5fa5", ""), ("#d9772b", "7 4"), ("#6b6b6b", "2 3"), ("#3a8f5c", "8 3 2 3")]
GREY = "#555555"
MOST_TICKS = 11  # whose labels fit side by side
WIDTH, HEIGHT = 1300, 540
TOP, BOTTOM = 120, 480  # of both diagrams
LEFTS, SPAN = (80, 740), 530


def size_ticks(sizes):
    """Powers of two, or powers of 8 if there are too many: 8 B, 64 B, 512 B, 4 KiB."""
    least, most = (math.floor(math.log2(size)) for size in (min(sizes), max(sizes)))
    step = next(step for step in (1, 3, 5, 10) if (most - least) // step < MOST_TICKS)
    return [2 ** power for power in range(least, most + 1, step)]


def subtitle(result):
    first = result["runs"][0]
    parts = [f"profile {result['profile']['name']}", result["date"][:10], result["machine"]["host"],
             f"{len(first['ranks'])} ranks", first["plugin"], first["nccl"] and f"NCCL {first['nccl']}"]
    return "  ·  ".join(part for part in parts if part)


def points(run, key):
    return [(row["size"], row[key]) for row in run["rows"] if row["size"] > 0 and row[key] > 0]


def time_text(microseconds):
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= unit:
            return f"{microseconds / unit:g} {name}"
    return f"{microseconds:g} µs"


def time_ticks(least, most):
    """1, 2 and 5 of each decade, or 1 of each if there are more than two, and one tick more at each end."""
    steps = (1, 2, 5) if most <= 100 * least else (1,)
    decades = range(math.floor(math.log10(least)) - 1, math.ceil(math.log10(most)) + 2)
    ticks = [step * 10.0 ** decade for decade in decades for step in steps]
    first = max(i for i, tick in enumerate(ticks) if tick <= least)
    last = min(i for i, tick in enumerate(ticks) if tick >= most)
    return ticks[first:last + 1]


def bandwidth_ticks(most):
    """At most eight steps of 1, 2 or 5 times a power of ten."""
    decade = 10.0 ** math.floor(math.log10(most / 8))
    step = next(decade * factor for factor in (1, 2, 5, 10) if most <= 8 * decade * factor)
    return [step * i for i in range(math.ceil(most / step) + 1)]


def text(x, y, words, color=GREY, size=13, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size}"{more}>{escape(words)}</text>'


def line(x1, y1, x2, y2, color, more=""):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{color}"{more}/>'


def position(value, ends, span, scale=math.log):
    least, most = map(scale, ends)
    return (scale(value) - least) / ((most - least) or 1) * span


def diagram(left, title, label, result, key, ticks, tick_text, scale):
    """The parts of one diagram; the scale of sizes is logarithmic."""
    sizes = [row["size"] for run in result["runs"] for row in run["rows"] if row["size"] > 0]
    x_of = lambda size: left + 12 + position(size, (min(sizes), max(sizes)), SPAN - 24)
    y_of = lambda value: BOTTOM - position(value, (ticks[0], ticks[-1]), BOTTOM - TOP, scale)
    bold, middle, end = ' font-weight="bold"', ' text-anchor="middle"', ' text-anchor="end"'
    yield text(left, TOP - 18, title, "#222222", 15, bold)
    for tick in ticks:
        yield line(left, y_of(tick), left + SPAN, y_of(tick), "#e3e3e3")
        yield text(left - 8, y_of(tick) + 4, tick_text(tick), more=end)
    for tick in (tick for tick in size_ticks(sizes) if min(sizes) <= tick):
        yield line(x_of(tick), BOTTOM, x_of(tick), BOTTOM + 4, GREY)
        yield text(x_of(tick), BOTTOM + 20, size_text(tick), size=11, more=middle)
    yield line(left, BOTTOM, left + SPAN, BOTTOM, "#bbbbbb")
    yield text(left + SPAN / 2, BOTTOM + 44, "message size", more=middle)
    side = (left - 62, (TOP + BOTTOM) / 2)
    yield text(*side, label, more=f'{middle} transform="rotate(-90 {side[0]} {side[1]})"')
    for i, (run, (color, dashes)) in enumerate(zip(result["runs"], STYLES)):
        style = f' fill="none" stroke-width="2" stroke-dasharray="{dashes}"'
        where = " ".join(f"{x_of(size):.1f},{y_of(value):.1f}" for size, value in points(run, key))
        yield f'<polyline points="{where}" stroke="{color}"{style}/>'
        yield from (f'<circle cx="{x_of(size):.1f}" cy="{y_of(value):.1f}" r="2.5" fill="{color}"/>'
                    for size, value in points(run, key))
        yield line(left + 14, TOP + 16 + 20 * i, left + 44, TOP + 16 + 20 * i, color, style)
        yield text(left + 52, TOP + 20 + 20 * i, run["name"], "#222222")


def draw(result):
    speeds, times = ([value for run in result["runs"] for _, value in points(run, key)] or [1.0]
                     for key in ("busbw", "time_us"))
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="DejaVu Sans, Helvetica, sans-serif">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(18, 36, result["title"], "#222222", 20, ' font-weight="bold"'),
        text(18, 62, subtitle(result)),
        *diagram(LEFTS[0], "Bus bandwidth: higher is better", "bus bandwidth (GB/s)", result, "busbw",
                 bandwidth_ticks(1.05 * max(speeds)), lambda value: f"{value:g}", float),
        *diagram(LEFTS[1], "Time of one all-reduce: lower is better", "time", result, "time_us",
                 time_ticks(min(times), max(times)), time_text, math.log), "</svg>\n"])


def write(result, file):
    with open(file, "w", encoding="utf-8") as picture:
        picture.write(draw(result))


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        write(json.load(file), sys.argv[2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
