# SPDX-License-Identifier: Apache-2.0
"""Prints the result as text."""

from sizes import size_text

NAME = 20  # maximum width of a run's name


def show(result):
    runs = result["runs"]
    print(f"\n{result['title']}: {result['date'][:10]}, {result['machine']['host']}")
    for run in runs:
        print(f"  {run['name']}: {about(run)}")
    print()
    by_size = [{row["size"]: row for row in run["rows"]} for run in runs]
    width = max(12, *(len(run["name"][:NAME]) + 2 for run in runs))
    print(head(runs, width))
    for size in sorted(set().union(*by_size)):
        print(line(size, [rows.get(size) for rows in by_size], width))
    print()
    if all(run["is_verified"] for run in runs) and not any(run["faults"] for run in runs):
        print("every element was right")
    for run in runs:
        if not run["is_verified"]:
            print(f"{run['name']}: the data was not checked")


def about(run):
    words = [f"{len(run['ranks'])} ranks", run["plugin"] and f"plugin {run['plugin']}", run["beeline"],
             run["nccl"] and f"NCCL {run['nccl']}", run["network"] and f"network {run['network']}"]
    if run.get("network_paths"):
        words.append(f"GPUDirect on {run['gpudirect_paths']} of {run['network_paths']} paths")
    return ", ".join(filter(None, words))


def head(runs, width):
    names = "".join(f"{run['name'][:NAME]:>{width}}" for run in runs) + gain(runs, "")
    return (f"{'':>10}{'time (us)':>{len(names)}}{'busbw (GB/s)':>{len(names) + 2}}\n"
            f"{'size':>10}{names}  {names}").rstrip()


def line(size, rows, width):
    times, speeds = cells(rows, "time_us", time_text, width), cells(rows, "busbw", speed_text, width)
    return f"{size_text(size):>10}{times}  {speeds}".rstrip()


def cells(rows, key, text, width):
    shown = "".join((text(row[key]) if row else "-").rjust(width) for row in rows)
    ours, other = (row[key] if row else 0 for row in rows) if len(rows) == 2 else (0, 0)
    # Below that, three decimals are too few.
    return shown + gain(rows, f"{100 * (ours / other - 1):+.0f} %" if min(ours, other) >= 0.1 else "")


def gain(runs, text):
    """The gain of the first of two runs over the second."""
    return text.rjust(9) if len(runs) == 2 else ""


def time_text(value):
    return f"{value:.1f}"


def speed_text(value):
    return f"{value:.3f}" if value >= 0.001 or value == 0 else "<0.001"
