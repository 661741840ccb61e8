# SPDX-License-Identifier: Apache-2.0
"""Reads the files that callgrind writes, and separates the plugin's code from all other."""

import os
import re


class Counts:
    """One dump of callgrind: the plugin's own counts, and those of its calls elsewhere. `events` are
    callgrind's names of what is counted; their counts are added."""

    def __init__(self, path, plugin, verbs, program, events=("Ir",)):
        self.own = {}  # by function of the plugin
        self.elsewhere = {}  # by function of another library, with everything it calls
        self.in_verbs = 0
        self.inclusive = 0  # the calls that the measuring program makes
        self.label = ""
        self._plugin, self._verbs, self._program = plugin, verbs, program
        self._events = events
        self._columns = []
        self._names = {}
        with open(path, encoding="utf-8", errors="replace") as file:
            self._read(file)

    def total(self):
        return sum(self.own.values()) + sum(self.elsewhere.values())

    def split(self):
        return {**self.own, **self.elsewhere}

    # "(17) name" the first time, "(17)" afterwards. Files, objects and functions have numbers of
    # their own.
    def _name(self, kind, text):
        number, _, name = text.partition(" ")
        if name:
            self._names[kind, number] = name
        return self._names.get((kind, number), "?")

    # A line has a position and then a count for each event. Zeros at its end are left out.
    def _cost(self, line):
        counts = line.split()[1:]
        return sum(int(counts[column]) for column in self._columns if column < len(counts))

    def _read(self, file):
        caller = callee = ("", "")
        is_call = False
        for line in file:
            line = line.rstrip("\n")
            key, equals, value = line.partition("=")
            if line.startswith("desc: Trigger:"):
                self.label = line.rpartition("Client Request: ")[2]
            elif line.startswith("events:"):
                names = line.split()[1:]
                self._columns = [names.index(event) for event in self._events]
            elif equals and key == "ob":
                caller = (self._name("ob", value), "")
            elif equals and key == "fn":
                caller = (caller[0], self._name("fn", value))
            elif equals and key == "cob":
                callee = (self._name("ob", value), "")
            elif equals and key == "cfn":
                callee = (callee[0] or caller[0], self._name("fn", value))
            elif equals and key == "calls":
                is_call = True
            elif equals and key in ("fl", "fi", "fe", "cfl", "cfi"):
                self._name("fl", value)
            elif re.match(r"[-+*0-9]", line):
                cost = self._cost(line)
                if is_call:
                    self._call(caller, callee, cost)
                    callee = ("", "")
                elif caller[0] == self._plugin:
                    self._add(self.own, short(caller[1]), cost)
                is_call = False

    def _call(self, caller, callee, cost):
        if caller[0] == self._plugin and callee[0] == self._verbs:
            self.in_verbs += cost
        elif caller[0] == self._plugin and callee[0] != self._plugin:
            library = os.path.basename(callee[0]).partition(".")[0]
            self._add(self.elsewhere, f"{short(callee[1])} [{library}]", cost)
        elif caller[0].endswith("/" + self._program) and callee[0] == self._plugin:
            self.inclusive += cost

    @staticmethod
    def _add(where, function, cost):
        where[function] = where.get(function, 0) + cost


def short(function):
    """A function's name without its arguments and our namespace."""
    function = re.sub(r"\[clone [^]]*\]|@.*|'\d+$", "", function)
    function = function.replace("(anonymous namespace)", "{}").replace("beeline::", "")
    depth, kept = 0, ""
    for char in function.replace("operator()", "operator{}"):
        depth -= char in ")>"
        if depth == 0 and char not in "()<>":
            kept += char
        depth += char in "(<"
    kept = kept.replace("::const", "").strip().rpartition(" ")[2] or kept
    return kept[-46:]
