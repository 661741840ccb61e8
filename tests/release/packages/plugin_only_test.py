#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds and installs the plugin alone, with the commands of docs/install.md in other folders, and loads it.

Usage: plugin_only_test.py BUILD
"""
import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1))
SOURCE = pathlib.Path(__file__).resolve().parents[3]
NAME = "libnccl-net-beeline.so"


def run(command):
    done = subprocess.run(command, shell=True, cwd=SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{command}\n{done.stdout}{done.stderr}")
    return done.stdout


def exports(plugin):
    """Its symbols and what it needs, without their addresses."""
    return sorted(line.split()[-1] for line in run(f"nm -D {plugin}").splitlines())


class PluginOnly(unittest.TestCase):
    def test_commands_of_the_documentation(self):
        text = (SOURCE / "docs" / "install.md").read_text(encoding="utf-8")
        block, = re.findall(r"<!-- run by plugin_only -->\n```sh\n(.*?)```", text, re.DOTALL)
        with tempfile.TemporaryDirectory() as scratch:
            block = block.replace("/opt/beeline", f"{scratch}/installed")
            block = block.replace("build-plugin", f"{scratch}/build")
            output = run(f"set -e\n{block}")
            self.assertNotIn("warning:", output)
            plugin = pathlib.Path(scratch, "installed", "lib", NAME)
            self.assertIn(f"  export LD_LIBRARY_PATH={plugin.parent}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\n", output)
            defined = [name for name in exports(plugin) if name.startswith("nccl")]
            self.assertEqual(defined, [name for name in exports(BUILD / "plugin" / "abi" / NAME)
                                       if name.startswith("nccl")])
            self.assertNotIn(b"assertion failed", plugin.read_bytes())  # they must not end a user's job
            loaded = ctypes.CDLL(str(plugin))
            for name in defined:
                self.assertTrue(ctypes.c_void_p.in_dll(loaded, name.partition("@")[0]))

    def test_sources_without_git_do_not_take_the_revision_of_a_repository_around_them(self):
        with tempfile.TemporaryDirectory() as scratch:
            sources = pathlib.Path(scratch, "sources")
            run(f"git init --quiet {scratch} && git -C {scratch} -c user.name=x -c user.email=x@x commit --quiet "
                "--allow-empty --message x")
            shutil.copytree(SOURCE, sources, ignore=shutil.ignore_patterns(".git", "build*", "dist"))
            run(f"meson setup -Dplugin_only=true {sources}/b {sources} && ninja -C {sources}/b common/base/version.cc")
            self.assertIn('kRevision[] = "unknown revision"', (sources / "b/common/base/version.cc").read_text())


if __name__ == "__main__":
    unittest.main()
