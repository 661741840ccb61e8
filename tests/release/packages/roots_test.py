#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the package in whole systems of other versions of Debian, with an older and a newer glibc, and uses it.

Usage: roots_test.py BUILD

The systems are made with debootstrap from the mirror that this machine's apt uses. It needs root, to mount /proc
there and to change the root folder.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import installed

BUILD = pathlib.Path(sys.argv.pop(1))
SUITES = {"bullseye": "2.31", "trixie": "2.41"}
# Mounts end with the process that made them.
ENTER = """\
set -eu
root=$1
shift
mount --bind /proc "$root/proc"
mount --rbind /dev "$root/dev"
exec chroot "$root" "$@"
"""


def mirror():
    """The address of the mirror that has this machine's packages, or None."""
    targets = installed.run(["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)",
                             "Created-By: Packages"])
    pairs = [line.split() for line in targets.splitlines()]
    return next((address.rstrip("/") for name, address in pairs if name == "bookworm"), None)


def can_be_fetched(address, file):
    asked = subprocess.run(["/usr/lib/apt/apt-helper", "download-file", address, file], capture_output=True,
                           check=False)
    return asked.returncode == 0


class Roots(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest("only root can make a system in a folder")
        cls.mirror = mirror()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name).resolve()
        cls.debs = installed.make_packages(BUILD, cls.scratch, ["deb"])["deb"]

    def use_in(self, suite):
        if self.mirror is None or not can_be_fetched(f"{self.mirror}/dists/{suite}/Release",
                                                          self.scratch / f"{suite}.release"):
            self.skipTest(f"apt has no mirror with {suite}")
        root = self.scratch / suite
        log = self.scratch / f"{suite}.log"
        with log.open("w", encoding="utf-8") as output:
            made = subprocess.run(["debootstrap", "--variant=minbase", suite, root, self.mirror], stdout=output,
                                  stderr=output, check=False)
        if made.returncode != 0:
            self.fail(f"debootstrap {suite}: " + log.read_text(encoding="utf-8")[-2000:])
        enter = ["unshare", "--mount", "sh", "-c", ENTER, "enter", root]

        self.assertIn(f"GLIBC {SUITES[suite]}", installed.run([*enter, "ldd", "--version"]))
        for name in ("old_glibc_test", "old_glibc_module.so"):
            shutil.copy(BUILD / "tests" / "release" / "old_glibc" / name, root / "opt" / name)
        self.assertIn("All tests passed", installed.run([*enter, "/opt/old_glibc_test"]))

        for deb in self.debs:
            shutil.copy(deb, root / "opt")
        installed.run([*enter, "dpkg", "--install", *(f"/opt/{deb.name}" for deb in self.debs)])
        installed.check(self, "/usr/bin", enter)
        # The loader finds the plugin by its name alone.
        self.assertNotIn("LD_LIBRARY_PATH", installed.run([*enter, "beeline", "env"]))
        # An exception of a library inside softnic becomes an error message.
        (root / "opt" / "bad.toml").write_text("no fabric\n", encoding="utf-8")
        refused = subprocess.run([*enter, "softnic", "run", "--fabric", "/opt/bad.toml", "--", "true"],
                                 capture_output=True, text=True, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (1, ""))
        self.assertIn("/opt/bad.toml:1: Error while parsing", refused.stderr)
        installed.run([*enter, "dpkg", "--remove", "beeline", "beeline-softnic"])
        self.assertEqual(list((root / "usr").rglob("*beeline*")), [])

    def test_debian_11(self):
        self.use_in("bullseye")

    def test_debian_13(self):
        self.use_in("trixie")


if __name__ == "__main__":
    unittest.main()
