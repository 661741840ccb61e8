#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The variables in the plugin's .data and .bss against the table of globals in docs/ARCHITECTURE.md.

Usage: globals_test.py PLUGIN

Constants (kName) and the guards of local statics are not in the table."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
PLUGIN = sys.argv.pop()
SYMBOL = re.compile(r"^[0-9a-f]+ .{7} \.(?:data|bss|tdata|tbss)\S*\t[0-9a-f]+\s+(?:\.hidden )?(.*)$")


def globals_in(listing):
    """The names of the variables in the output of `objdump -t -C`, without their namespaces and functions."""
    names = set()
    for line in listing.splitlines():
        match = SYMBOL.match(line)
        if match and match[1].startswith("beeline::"):
            name = re.sub(r" \[clone .*\]$", "", match[1]).rpartition("::")[2]
            if not re.match(r"k[A-Z]", name):
                names.add(name)
    return names


def table():
    """The file of each global in the page's table."""
    rows = {}
    is_inside = False
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| global | file |"):
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("|-"):
            rows[cells[0].strip("`")] = cells[1].strip("`")
    return rows


class Globals(unittest.TestCase):
    def test_the_plugin_has_the_globals_of_the_table_and_no_others(self):
        listing = subprocess.run(["objdump", "-t", "-C", PLUGIN], stdout=subprocess.PIPE, check=True, text=True).stdout
        self.assertIn("beeline::", listing, "the plugin has been stripped")
        self.assertEqual(globals_in(listing), set(table()))

    def test_each_global_is_in_the_file_that_the_table_names(self):
        for name, file in table().items():
            self.assertRegex((ROOT / file).read_text(encoding="utf-8"), rf"\b{name}\b", file)

    def test_a_new_global_is_found(self):
        listing = (
            "0000000000395ad0 l     O .bss\t0000000000000008              beeline::abi::(anonymous namespace)::one\n"
            "0000000000395ae8 l     O .bss\t0000000000000008              guard variable for beeline::f(int)::two\n"
            "0000000000395ad4 l     O .data\t0000000000000001              beeline::f(std::vector<int>)::three\n"
            "0000000000395ad5 g     O .tbss\t0000000000000001 .hidden beeline::f[abi:cxx11]()::four\n"
            "0000000000395780 l     O .data\t0000000000000060              beeline::(anonymous namespace)::kSizes\n"
            "0000000000395780 l     O .data.rel.ro\t0000000000000060              beeline::kTable\n"
            "0000000000398100 l     O .bss\t0000000000000040              (anonymous namespace)::emergency_pool\n")
        self.assertEqual(globals_in(listing), {"one", "three", "four"})


if __name__ == "__main__":
    unittest.main()
