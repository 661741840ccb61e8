#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws bandwidth and latency against size. Needs matplotlib, and is a program of its own, since the
Python that has matplotlib may be another than the one that measures.

Usage: plot.py RESULT.json FILE.svg FILE.png...
"""

import json
import math
import sys

from sizes import size_text

# The colors also differ in brightness, for print and for color-blind readers.
STYLES = [("#0b5fa5", "o", "-"), ("#d9772b", "s", "--"), ("#6b6b6b", "^", ":"), ("#3a8f5c", "D", "-.")]
GREY = "#555555"
MOST_TICKS = 11  # whose labels fit side by side
HEADER = 0.165  # share of the height for title and subtitle


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
    rows = [row for row in run["rows"] if row["size"] > 0 and row[key] > 0]
    return [row["size"] for row in rows], [row[key] for row in rows]


def draw_lines(axes, result, key):
    for run, (color, marker, dashes) in zip(result["runs"], STYLES):
        axes.plot(*points(run, key), color=color, marker=marker, linestyle=dashes, markersize=4,
                  linewidth=1.8, label=run["name"])


def dress(axes, sizes, title, label):
    axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
    axes.set_ylabel(label, color=GREY)
    axes.set_xlabel("message size", color=GREY)
    axes.set_xscale("log", base=2)
    ticks = size_ticks(sizes)
    axes.set_xticks(ticks, [size_text(tick) for tick in ticks])
    axes.minorticks_off()
    axes.grid(axis="y", color="#e3e3e3", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY, length=3, labelsize=8.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#bbbbbb")


def time_text(microseconds, _position=None):
    for unit, name in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= unit:
            return f"{microseconds / unit:g} {name}"
    return f"{microseconds:g} µs"


def time_steps(result):
    """Within two decades labels at 1, 2 and 5, otherwise at 1."""
    times = [value for run in result["runs"] for value in points(run, "time_us")[1]]
    return (1, 2, 5) if max(times) <= 100 * min(times) else (1,)


def draw(result):
    from matplotlib.figure import Figure  # may be missing if no plot is drawn
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    figure = Figure(figsize=(13, 5.4), layout="constrained")
    figure.get_layout_engine().set(rect=(0.008, 0.01, 0.984, 1 - HEADER), wspace=0.06)
    bandwidth, latency = figure.subplots(1, 2)
    figure.text(0.014, 0.94, result["title"], va="center", fontsize=15, fontweight="bold")
    figure.text(0.014, 0.885, subtitle(result), va="center", color=GREY, fontsize=10)
    sizes = [row["size"] for run in result["runs"] for row in run["rows"] if row["size"] > 0]

    draw_lines(bandwidth, result, "busbw")
    dress(bandwidth, sizes, "Bus bandwidth: higher is better", "bus bandwidth (GB/s)")
    bandwidth.set_ylim(bottom=0, top=1.08 * bandwidth.dataLim.ymax)

    draw_lines(latency, result, "time_us")
    dress(latency, sizes, "Time of one all-reduce: lower is better", "time")
    latency.set_yscale("log")
    latency.yaxis.set_major_locator(LogLocator(subs=time_steps(result), numticks=12))
    latency.yaxis.set_major_formatter(FuncFormatter(time_text))
    latency.yaxis.set_minor_locator(NullLocator())
    for axes in (bandwidth, latency):
        axes.legend(loc="upper left", frameon=False)
    return figure


def main():
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        figure = draw(json.load(file))
    for name in sys.argv[2:]:
        figure.savefig(name, dpi=160)
    return 0


if __name__ == "__main__":
    sys.exit(main())
