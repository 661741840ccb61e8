#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a summary of the JSON of `beeline perf allreduce`."""

import json
import os
import sys
import textwrap


def cpu_per_message(row):
    """Microseconds of both threads of a rank, mean over the ranks: (user, system)."""
    ranks = row["ranks"]
    return tuple(
        sum(rank["cpu"][f"process_{kind}_us"] for rank in ranks) / len(ranks)
        for kind in ("user", "system")
    )


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    ranks, rows = report["ranks"], report["rows"]
    hosts = sorted({rank["host"] for rank in ranks})
    rails = ranks[0]["devices"][: report["options"]["comms"]]
    messages = sum(rank["messages"] for row in rows for rank in row["ranks"])
    wrong = sum(rank["wrong"] for row in rows for rank in row["ranks"])
    best = max(rows, key=lambda row: row["busbw"])
    user, system = cpu_per_message(rows[0])

    for paragraph in (
            f"The times are not the plugin's: {len(ranks)} processes poll on {os.cpu_count()} processors, and the "
            "kernel copies the data in place of a NIC. bench/README.md has what the plugin costs.",
            f"{len(ranks)} ranks on {len(hosts)} hosts sent {messages:,} messages over {len(rails)} rails "
            f"({', '.join(rails)}); {wrong} wrong elements.",
            "Path: host memory, RDMA WRITE, RoCE v2, on softnic, the software NIC. "
            f"Best: {best['busbw']:.2f} GB/s at {size_text(best['size'])}. "
            f"CPU per message at {size_text(rows[0]['size'])}: {user:.1f} us in the process, {system:.1f} us in "
            "the kernel."):
        print(textwrap.fill(paragraph, 79))


if __name__ == "__main__":
    main()
