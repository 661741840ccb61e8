# SPDX-License-Identifier: Apache-2.0
"""Runs one command and reads its results."""

import json
import os
import subprocess
import sys

from errors import Misuse, RunFailed
from nccl_tests_output import ROW, Log, Run, Unusable

LAST_LINES = 12


def measure(run, command, profile, folders):
    """The run's part of the result."""
    output = folders.out / f"{run.stem}.txt"
    status = execute(command, output)
    try:
        if profile.engine == "beeline-perf":
            found = read_perf(output, folders.out / f"{run.stem}.perf.json", run)
        else:
            found = read_nccl_tests(output, run)
    except Unusable as reason:
        raise RunFailed(f"{run.name}: {command.words[0]} ended with status {status}, without a result: "
                        f"{reason}\nIts last lines:\n{tail(output)}") from reason
    if status != 0:
        found["faults"].append(f"{run.name}: ended with status {status}; see {output}")
    return {"name": found.pop("name", run.name), "command": command.words,
            "environment": command.environment, "output": output.name, **found}


def execute(command, output):
    environment = {**os.environ, **command.environment}
    try:
        with open(output, "w", encoding="utf-8") as file, \
             subprocess.Popen(command.words, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace") as process:
            for line in process.stdout:
                file.write(line)
                file.flush()  # so that a user can watch the file
                if sys.stdout.isatty() and ROW.match(line):
                    print(line, end="", flush=True)
    except OSError as error:
        raise Misuse(f"{error.filename}: {error.strerror}") from error
    return process.returncode


def tail(output):
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    shown = lines[-LAST_LINES:] or ["(nothing)"]
    return "\n".join(f"  {line}" for line in shown) + f"\nThe whole output: {output}"


def wrong_data(run, count):
    return f"{run.name}: wrong data in {count} of its results, so its speed is meaningless"


def read_nccl_tests(output, run):
    said = Run(output)
    rows = [{"size": row.size, **row.out_of_place._asdict(), "in_place": row.in_place._asdict()}
            for row in sorted(said.rows.values(), key=lambda row: row.size)]
    log = said.log
    faults = []
    if said.wrong:
        faults.append(wrong_data(run, said.wrong))
    wanted = run.environment.get("NCCL_NET")
    if wanted and log.networks and any(one.lower() != wanted.lower() for one in log.networks):
        faults.append(f"{run.name}: NCCL used network {', '.join(log.networks)}, not {wanted}")
    return {"nccl": log.nccl_version, "network": ", ".join(log.networks) or None,
            "plugin": ", ".join(log.plugins) or None, "beeline": log.beeline_version,
            "network_paths": log.paths, "gpudirect_paths": log.direct_paths,
            "ranks": said.ranks, "is_verified": said.is_verified, "warnings": log.warnings,
            "faults": faults, "rows": rows}


def read_perf(output, report_file, run):
    try:
        report = json.loads(report_file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Unusable("beeline perf wrote no report") from error
    log = Log()
    for line in output.read_text(encoding="utf-8", errors="replace").splitlines():
        log.read(line)
    rows = [{"size": row["size"], "time_us": row["time_us"], "algbw": row["algbw"],
             "busbw": row["busbw"], "wrong": sum(rank["wrong"] for rank in row["ranks"])}
            for row in report["rows"]]
    wrong = sum(row["wrong"] > 0 for row in rows)
    faults = [wrong_data(run, wrong)] if wrong else []
    # Two builds of one plugin may be compared.
    is_same = run.plugin and report["plugin"] == "Beeline"
    return {"name": "Beeline, other build" if is_same else report["plugin"], "nccl": None, "network": None,
            "plugin": f"{report['plugin']} (v{report['abi']})", "beeline": log.beeline_version,
            "ranks": [{"rank": str(rank), "host": one["host"]}
                      for rank, one in enumerate(report["ranks"])],
            "is_verified": report["options"]["check"],
            "warnings": log.warnings, "faults": faults, "rows": rows}
