#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the output of `beeline topo --json` as lines that can be compared.

  graph.py tree FILE          each PCI function of a NUMA node, what it is, and what it is below
  graph.py distances FILE     each GPU and NIC, and how near they are
  graph.py assigned FILE      each GPU and its NICs; "-" and the NICs of nobody
  graph.py remarks FILE       what could not be seen
  graph.py same A B [KEY...]  fails where two graphs differ, but for facts of these keys
"""

import difflib
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def tree(graph):
    return sorted(functions(graph))


def functions(graph):
    for node in graph["nodes"]:
        if node["kind"] not in ("bridge", "device") or "pci" not in node or "numa" not in node:
            continue
        above = graph["nodes"][node["parent"]]
        name = above["pci"]
        if above["kind"] == "host bridge":
            name = "pci" + name[: name.rindex(":")]
        yield f'{node["pci"]}: {node.get("port", "device")} below {name}, node {node["numa"]}'


def distances(graph):
    for gpu in graph["gpus"]:
        for entry in gpu["distances"]:
            label = graph["nodes"][entry["node"]]["label"]
            yield f'{gpu["name"]} {label} {entry["distance"]}'


def assigned(graph):
    labels = [node["label"] for node in graph["nodes"]]
    for gpu in graph["gpus"]:
        yield " ".join([gpu["name"]] + [labels[nic] for nic in gpu["nics"]])
    yield " ".join(["-"] + [labels[spare["node"]] for spare in graph["spare_nics"]])


def remarks(graph):
    return graph["remarks"]


def without(value, keys):
    if isinstance(value, dict):
        return {key: without(part, keys) for key, part in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(part, keys) for part in value]
    return value


def comparable(path, keys):
    """Without what one reading knows and the other one cannot: hwloc alone has names of hosts and
    processors, the processors of a package and the names of drives."""
    graph = without(read(path), {"source", "remarks", *keys})
    for node in graph["nodes"]:
        if node["kind"] in ("machine", "package"):
            node.pop("name", None)
            node.pop("cpus", None)
        names = [name for name in node.pop("os_devices", []) if name.startswith(("eth", "rxe"))]
        if names:
            node["os_devices"] = names
    return json.dumps(graph, indent=1, sort_keys=True).splitlines()


def same(one, other, *keys):
    lines = [comparable(path, keys) for path in (one, other)]
    difference = list(difflib.unified_diff(*lines, one, other, lineterm=""))
    print("\n".join(difference) or f"= {len(read(one)['nodes'])} nodes")
    return 1 if difference else 0


def main():
    what, *arguments = sys.argv[1:]
    if what == "same":
        return same(*arguments)
    lines = {"tree": tree, "distances": distances, "assigned": assigned, "remarks": remarks}[what]
    print("\n".join(lines(read(*arguments))))
    return 0


sys.exit(main())
