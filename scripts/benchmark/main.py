# SPDX-License-Identifier: Apache-2.0
"""scripts/bench, from the command line to the files."""

import datetime
import json
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import commands
import gdr_gain
import machine
import options as command_line
import plot
import prepare
import profiles
import table
from errors import Misuse, RunFailed
from measure import measure
from nccl_tests_output import Run, Unusable
from plan import plan
from sizes import range_text

SCHEMA = 1  # of the JSON; increased when a field changes its meaning


@dataclass
class Folders:
    programs: prepare.Programs
    out: Path


def list_profiles():
    for name in profiles.names():
        print(f"{name:16} {profiles.load(name).title}")


def out_folder(options, profile):
    time = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return Path(options.out or f"bench-{profile.name}-{time}").absolute()


def make_folder(folder):
    if (folder / "bench.json").exists():
        raise Misuse(f"--out {folder}: it contains the result of an earlier run; name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misuse(f"--out {folder}: {error.strerror}; name a folder where you may write") from error


def describe(profile, options):
    return {
        "schema": SCHEMA,
        "title": profile.title,
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "profile": {"name": profile.name, "file": profile.file, "engine": profile.engine,
                    "sizes": range_text(options.sizes)},
        "launcher": options.launcher,
        "inherited": {name: value for name, value in sorted(os.environ.items())
                      if name.startswith(("NCCL_", "BEELINE_"))},
        "runs": [],
    }


def write(result, folder):
    """Called after each run, so that the result of the first is kept if the second fails."""
    file = folder / "bench.json"
    file.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return file


def run_all(result, todo, profile, folders):
    for run, command in todo:
        print(f"\n{run.name}: {shlex.join(command.words)}", flush=True)
        result["runs"].append(measure(run, command, profile, folders))
        write(result, folders.out)


def gdr_verdict(folders):
    """Whether GPUDirect brings the expected gain. gdr_gain.py prints the reason."""
    print()
    direct, staged = (Run(str(folders.out / f"{stem}.txt")) for stem in ("beeline", "no-gpudirect"))
    return gdr_gain.verdict(direct, staged) == 0


def report(result, options, folders):
    """Prints the result. Returns whether all runs are valid."""
    table.show(result)
    faults = [fault for run in result["runs"] for fault in run["faults"]]
    for fault in faults:
        print(f"FAULT {fault}")
    pays = not options.gdr_gain or gdr_verdict(folders)
    plot.write(result, folders.out / "bench.svg")
    print(f"\n{folders.out / 'bench.json'}\n{folders.out / 'bench.svg'}")
    return pays and not faults


def bench(options, profile):
    folders = Folders(prepare.programs(options.build), out_folder(options, profile))
    todo = [(run, commands.build(profile, run, options, folders)) for run in plan(profile, options)]
    if options.dry_run:
        for run, command in todo:
            variables = [f"{name}={value}" for name, value in command.environment.items()]
            print(f"# {run.name}\n{shlex.join(['env', *variables, *command.words])}")
        return 0
    prepare.make_ready(profile, folders.programs, options.build)
    make_folder(folders.out)
    result = describe(profile, options)
    run_all(result, todo, profile, folders)
    return 0 if report(result, options, folders) else 1


def main(words):
    try:
        options, profile = command_line.parse(words)
        if options.list:
            list_profiles()
            return 0
        if options.version:
            return prepare.show_version(options.build)
        return bench(options, profile)
    except Misuse as reason:
        print(reason, file=sys.stderr)
        return 2
    except (RunFailed, Unusable) as reason:
        print(reason, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; the results of completed runs are kept", file=sys.stderr)
        return 130
