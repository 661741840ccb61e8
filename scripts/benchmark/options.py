# SPDX-License-Identifier: Apache-2.0
"""The command line of scripts/bench."""

import argparse
import shlex
import textwrap

import profiles
from profiles import HOSTFILES, IS_INSTALLED, ROOT
from errors import Misuse
from sizes import parse_range

NAME = "beeline-bench" if IS_INSTALLED else "scripts/bench"
README = (ROOT.parent / "doc" / "beeline" if IS_INSTALLED else ROOT) / "nccl-tests-config" / "README.md"
DESCRIPTION = """Measures all-reduce with a profile, and writes a table, JSON and a plot of bandwidth and latency \
against size."""
EXAMPLES = f"""examples:
  {NAME} --profile softnic-host                     no GPU, no NIC
  {NAME} --profile infiniband --hostfile hosts --gdr-gain --baseline
  {NAME} --profile roce-v2 --launcher srun --np 16 --env NCCL_IB_TC=96
exit status: 0 all went well; 1 a run failed, data was wrong, another network was used, or GPUDirect \
brings no gain; 2 an option is wrong or something is not installed
{README} describes profiles and results."""


class HelpFormat(argparse.RawDescriptionHelpFormatter):
    """Breaks the lines that are too long, but not those that are indented, which are commands to paste."""

    def _fill_text(self, text, width, indent):
        return "\n".join(line if line.startswith(" ") else textwrap.fill(line, width, break_on_hyphens=False,
                                                                         break_long_words=False)
                         for line in text.splitlines())


def variable(text):
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=VALUE')
    return name, value


def count(text):
    try:
        return profiles.whole(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from reason


def size_range(text):
    try:
        return parse_range(text)
    except ValueError as reason:
        raise argparse.ArgumentTypeError(str(reason)) from reason


def parser():
    parsed = argparse.ArgumentParser(prog=NAME, description=DESCRIPTION, epilog=EXAMPLES,
                                     formatter_class=HelpFormat)
    add = parsed.add_argument
    add("--profile", metavar="NAME", help=f"{', '.join(profiles.names())}; or a file, ./mine.conf")
    add("--launcher", choices=("mpirun", "srun", "local"),
        help="the launcher of the ranks; local: one process for all GPUs of this machine")
    add("--hostfile", metavar="FILE", help=f"the hosts of the ranks; {HOSTFILES} has examples")
    add("--np", metavar="N", type=count, help="the number of ranks, one for each GPU")
    add("--launcher-args", metavar="WORDS", type=shlex.split, default=[],
        help='additional arguments for mpirun or srun, as one argument: --launcher-args="--mpi=pmix"')
    add("--sizes", metavar="A..B", type=size_range, help="bytes, doubling: 8..8G")
    add("--env", metavar="NAME=VALUE", type=variable, action="append", default=[],
        help="environment of every rank, overrides the profile; may be repeated")
    add("--out", metavar="DIR", help="the folder for the files (./bench-PROFILE-TIME)")
    add("--baseline", action="store_true", help="a second run, over NCCL's own network")
    add("--plugin-baseline", metavar="PLUGIN", help="a second run, over another plugin: its file")
    add("--gdr-gain", action="store_true", help="a second run without GPUDirect, and a comparison")
    add("--build", metavar="DIR", help="use the build in this folder; build nothing")
    add("--dry-run", action="store_true", help="show the commands, run nothing")
    add("--list", action="store_true", help="show the profiles")
    add("--version", action="store_true", help="show the version of beeline")
    return parsed


def parse(words):
    """The options, with defaults from the profile, and the profile."""
    options = parser().parse_args(words)
    if options.list or options.version:
        return options, None
    if not options.profile:
        raise Misuse(f"name a profile with --profile NAME, one of {', '.join(profiles.names())}")
    profile = profiles.load(options.profile)
    options.launcher = options.launcher or profile.launcher
    options.np = options.np or profile.ranks
    options.sizes = options.sizes or profile.sizes
    return options, profile
