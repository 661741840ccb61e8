#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the scripts print while they install and build, and after Ctrl-C."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "scripts"
LIMIT_S = 60
# As build_targets in lib.sh, with a build that does not end before Ctrl-C, and then as ninja does.
ENDLESS = """\
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit("ninja: build stopped: interrupted by user."))
print("ready", flush=True)
time.sleep(600)
"""
BUILD = """\
source "$0/lib.sh"
build() { python3 -c "$ENDLESS" 2>&1 | progress building; }
timed build build || exit 1
echo 'the script goes on'
"""
# Where python3 is missing, with an apt-get that only says its name.
WITHOUT_PYTHON = """\
source "$0/lib.sh"
command() { false; }
apt_get() { echo "apt-get $1" >&3; }
show_install() { :; }
apt_install /dev/null g++ 3>&1
"""
RANK = {"host": "h0", "devices": ["softnic0", "softnic1"], "messages": 3, "wrong": 0,
        "cpu": {"process_user_us": 1.0, "process_system_us": 2.0}}


def bash(script):
    # Also where the test itself was started with SIGINT ignored, as in the background of a script.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(["bash", "-c", script, SCRIPTS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True, env={**os.environ, "ENDLESS": ENDLESS})


class Scripts(unittest.TestCase):
    def test_ctrl_c_ends_a_build_with_one_sentence(self):
        with bash(BUILD) as script:
            said = script.stdout.readline()
            self.assertRegex(said, "^building: .* so far")
            while said != "ready\n":  # the first line may be earlier than the build
                said = script.stdout.readline()
                self.assertTrue(said, "the script has ended before the build")
            os.killpg(script.pid, signal.SIGINT)
            rest, _ = script.communicate(timeout=LIMIT_S)
        self.assertEqual(rest.splitlines()[-1:], ["stopped; the same command continues"], rest)
        self.assertNotIn("Traceback", rest)
        self.assertNotIn("FAILED", rest)
        self.assertEqual(script.returncode, 130)

    def test_each_silent_step_of_apt_is_announced(self):
        with bash(WITHOUT_PYTHON) as script:
            said, _ = script.communicate(timeout=LIMIT_S)
        self.assertEqual(script.returncode, 0, said)
        self.assertRegex(said, r"^installing: reading .*\napt-get update\ninstalling: python3.*\napt-get install\n$")

    def test_the_plan_of_the_demo_fits_a_terminal(self):
        plan = re.findall(r"(?m)^echo '(.*)'$", (SCRIPTS / "demo").read_text(encoding="utf-8"))
        self.assertIn("Four steps", plan[0])
        for line in plan:
            self.assertLessEqual(len(line), 80, line)

    def test_the_demo_says_that_its_times_are_not_those_of_the_plugin(self):
        row = {"size": 8, "busbw": 0.5, "ranks": [RANK, RANK]}
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"ranks": [RANK, RANK], "options": {"comms": 2}, "rows": [row]}, file)
            file.flush()
            said = subprocess.run([sys.executable, "-B", SCRIPTS / "demo_summary.py", file.name], check=True,
                                  capture_output=True, text=True).stdout
        self.assertIn(f"not the plugin's: 2 processes poll on {os.cpu_count()} processors", " ".join(said.split()))


if __name__ == "__main__":
    unittest.main()
