#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""This version of the plugin and the previous release at the two ends of a connection.

The plugin of the newest release whose last commit CHANGELOG.md names is built from that commit, in a folder of
its own. Then one process loads it and another the new plugin, and they run an all-reduce over softnic. If the two
have a version of the protocol in common, all data must be right. Otherwise each end must refuse the other with a
sentence that names both versions.

Usage: previous_release_test.py FOLDER SOFTNIC BEELINE PLUGIN. Exits with 77 if this clone lacks the commit.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import changelog

RIGHT = "# Wrong elements : 0 OK"
# Rank 0 has the old plugin. Each rank writes to a file of its own.
RANKS = """\
one() {
  timeout 120 "$beeline" perf allreduce --ranks 2 --hosts h0,h1 --sizes 0,7,4K,1000001 --iters 2 --log INFO \\
    --rendezvous "$folder/meeting" --rank "$1" --plugin "$2" >"$folder/rank$1" 2>&1
}
one 0 "$old" & one 1 "$new"
wait
"""


def run(*command, **options):
    """The output of a command that must succeed."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f"exit status {done.returncode} of {' '.join(map(str, command))}:\n{done.stdout[-5000:]}")
    return done.stdout


def is_in_clone(commit):
    return subprocess.run(["git", "-C", changelog.ROOT, "cat-file", "-e", commit + "^{commit}"], check=False,
                          stderr=subprocess.DEVNULL).returncode == 0


def built_plugin(release):
    """The plugin of the release. It is built once."""
    folder = FOLDER / f"previous-release-{release.version}-{release.commit}"
    plugin = folder / "build" / "plugin" / "abi" / "libnccl-net-beeline.so"
    if not plugin.exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "source").mkdir(parents=True)
        archive = folder / "source.tar"
        run("git", "-C", changelog.ROOT, "archive", "--output", archive, release.commit)
        run("tar", "-x", "-f", archive, "-C", folder / "source")
        # Without this, its build would take the revision of the repository around it for its own.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder)}
        run("meson", "setup", "-Dtests=false", "-Dbench=false", "-Ddebug=false", "-Doptimization=0", "-Dunity=on",
            "-Dunity_size=40", folder / "build", folder / "source", env=environment)
        run("ninja", "-C", folder / "build", "plugin/abi/libnccl-net-beeline.so", env=environment)
    return plugin


def protocol_of(beeline):
    """The oldest and the newest version of the protocol, as `beeline --version` says."""
    found = re.search(r"^Protocol .*: versions? (\d+)(?:-(\d+))?;", run(beeline, "--version"), re.M)
    return int(found[1]), int(found[2] or found[1])


def words(protocol):
    least, most = protocol
    return f"version {least}" if least == most else f"versions {least}-{most}"


class PreviousRelease(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.old = RELEASE.protocol
        cls.new = protocol_of(BEELINE)
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        folder = pathlib.Path(scratch.name)
        environment = {**os.environ, "beeline": BEELINE, "old": built_plugin(RELEASE), "new": PLUGIN,
                       "folder": folder}
        subprocess.run([SOFTNIC, "run", "--name", f"previous-release-{os.getpid()}", "--", "bash", "-c", RANKS],
                       env=environment, check=False, timeout=300)
        cls.logs = [(folder / f"rank{rank}").read_text(encoding="utf-8") for rank in (0, 1)]
        cls.everything = "\n".join(cls.logs)

    def test_the_old_plugin_is_that_of_the_release(self):
        self.assertRegex(self.logs[0], rf"Beeline {re.escape(RELEASE.version)} \((no git|unknown revision)\)")

    def test_both_work_together_or_both_say_why_not(self):
        (old_least, old_most), (new_least, new_most) = self.old, self.new
        if max(old_least, new_least) <= min(old_most, new_most):
            self.assertIn(RIGHT, self.logs[0], self.everything)
            return
        self.assertNotIn(RIGHT, self.everything)
        for log, theirs, ours in ((self.logs[0], self.new, self.old), (self.logs[1], self.old, self.new)):
            self.assertRegex(log, f"the peer speaks {words(theirs)} of the protocol.*, this host {words(ours)}.*: use "
                                  "the same .*Beeline on all hosts")
        # The new one knows the release by its version of the protocol.
        name = RELEASE.version.rpartition(".")[0]
        self.assertIn(f"of the protocol (Beeline {name}), this host {words(self.new)} (Beeline ", self.logs[1])


FOLDER, SOFTNIC, BEELINE, PLUGIN = (pathlib.Path(word).resolve() for word in sys.argv[1:5])
RELEASE = next(release for release in changelog.releases() if release.commit)
if not is_in_clone(RELEASE.commit):
    print(f"not tested: the last commit of {RELEASE.version}, {RELEASE.commit}, is not in this clone.\n"
          "To fix it: git fetch --unshallow, in a clone with a history")
    sys.exit(77)
del sys.argv[1:5]
unittest.main()
