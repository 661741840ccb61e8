# SPDX-License-Identifier: Apache-2.0
"""Parses the output of nccl-tests, including NCCL's log lines. Used by gdr_gain.py and scripts/bench."""

import math
import re
from typing import NamedTuple, Optional

# size count type redop root, then time algbw busbw #wrong, out of place and in place
COLUMNS = 13
ROW = re.compile(r"\s*\d+\s+\d+\s+[a-z]\w*\s+\S+\s+-?\d+\s")
RANK = re.compile(r"#\s+Rank\s+(\d+) .* on\s+(\S+) device\s+(\d+) \[(\S+)\] (.+)")
PATH = re.compile(r"\bvia NET/\S+?/\d+(/GDRDMA)?")
# NCCL's version in the log. The newest NCCL writes it at the end of the first line.
NCCL_VERSION = re.compile(r"\bNCCL version (\d[\w.+-]*)")
NETWORK = re.compile(r"\bUsing network (\S+)")
PLUGIN = re.compile(r"\bLoaded net plugin (\S+ \(v\d+\))")
BEELINE = re.compile(r"\bNET/Beeline : Beeline (\d\S* \([^)]+\))")
WARNING = re.compile(r"\bNCCL WARN (.*)")


class Unusable(Exception):
    """The text names the file, the cause and the fix."""


class Measure(NamedTuple):
    time_us: float
    algbw: float
    busbw: float
    wrong: Optional[int]  # None: not checked


class Row(NamedTuple):
    size: int
    count: int
    kind: tuple  # type, operation, root
    out_of_place: Measure
    in_place: Measure


class Log:
    """Facts in the log lines of NCCL and the plugin."""

    def __init__(self):
        self.nccl_version = None
        self.networks = []
        self.plugins = []
        self.beeline_version = None
        self.warnings = []
        self.paths = 0  # network paths
        self.direct_paths = 0

    def read(self, line):
        for found in PATH.finditer(line):
            self.paths += 1
            self.direct_paths += found.group(1) is not None
        self.nccl_version = self.nccl_version or first(NCCL_VERSION, line)
        self.beeline_version = self.beeline_version or first(BEELINE, line)
        for pattern, known in ((NETWORK, self.networks), (PLUGIN, self.plugins),
                               (WARNING, self.warnings)):
            said = first(pattern, line)
            if said is not None and said not in known:
                known.append(said)


class Run:
    def __init__(self, path):
        self.path = path
        self.rows = {}  # Row by kind and size
        self.ranks = []  # as nccl-tests lists them
        self.log = Log()
        self.wrong = 0
        self.is_verified = True
        self.is_finished = False
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    self.read(line, f"{path}:{number}")
        except OSError as error:
            raise Unusable(f"{path}: {error.strerror}; name the two outputs of nccl-tests") from error
        if not self.rows:
            raise Unusable(f"{path}: no row of results in it; is it the output of all_reduce_perf?")
        if not self.is_finished:
            raise Unusable(f"{path}: it ends before its last line (# Avg bus bandwidth); "
                           "the run died, or the file was cut")

    def read(self, line, place):
        if line.startswith("# Avg bus bandwidth"):
            self.is_finished = True
        self.log.read(line)
        rank = RANK.match(line)
        if rank:
            self.ranks.append(dict(zip(("rank", "host", "device", "pci", "gpu"), rank.groups())))
        if ROW.match(line):
            self.read_row(line.split(), place)

    def read_row(self, words, place):
        if len(words) != COLUMNS:
            raise Unusable(f"{place}: {len(words)} columns, not {COLUMNS}; two processes wrote into one "
                           "line? Write each rank's output to a file of its own")
        size, kind = int(words[0]), tuple(words[2:5])
        if (kind, size) in self.rows:
            raise Unusable(f"{place}: {size} bytes appear twice; give the output of one run")
        row = Row(size, int(words[1]), kind, measure(words[5:9], place), measure(words[9:13], place))
        self.rows[kind, size] = row
        for part in (row.out_of_place, row.in_place):
            self.is_verified = self.is_verified and part.wrong is not None
            self.wrong += bool(part.wrong)


def first(pattern, line):
    found = pattern.search(line)
    return found and found.group(1).strip()


def measure(words, place):
    time, algbw, busbw, wrong = words
    return Measure(number(time, place), number(algbw, place, zero=True),
                   number(busbw, place, zero=True),
                   None if wrong == "N/A" else int(number(wrong, place, zero=True)))


def number(word, place, zero=False):
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and (value > 0 or (zero and value == 0)):
        return value
    raise Unusable(f"{place}: {word} is not a valid number")
