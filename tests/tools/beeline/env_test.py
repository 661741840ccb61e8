#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline env`, from installations in several folders.

Usage: env_test.py BEELINE
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BEELINE = sys.argv.pop(1)
PLUGIN = "libnccl-net-beeline.so"
NAMES = ["NCCL_NET_PLUGIN", "NCCL_NET", "NCCL_NET_PLUGIN_REF_COUNT"]


class Env(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()

    def install(self, prefix, lib="lib"):
        """Installs the program in a prefix, and an empty file in place of the plugin."""
        bin_folder = self.root / prefix / "bin"
        bin_folder.mkdir(parents=True)
        shutil.copy(BEELINE, bin_folder / "beeline")
        if lib:
            folder = self.root / prefix / lib
            folder.mkdir(parents=True)
            (folder / PLUGIN).touch()
        return bin_folder / "beeline"

    def text(self, program, *options):
        run = subprocess.run([program, "env", *options], capture_output=True, text=True, check=True, env={})
        self.assertEqual(run.stderr, "")
        return run.stdout

    def variable_in_shell(self, program, name, before=""):
        script = f'{before} eval "$({shlex.quote(str(program))} env)"; printf %s "${name}"'
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True,
                              env={"PATH": "/usr/bin:/bin"}).stdout

    def test_a_shell_gets_the_folder_of_the_plugin_and_the_names(self):
        program = self.install("opt")
        self.assertEqual(self.variable_in_shell(program, "LD_LIBRARY_PATH"), f"{self.root}/opt/lib")
        self.assertEqual([self.variable_in_shell(program, name) for name in NAMES], ["beeline", "Beeline", "1"])

    def test_the_library_path_that_is_set_stays(self):
        program = self.install("opt", "lib64")
        path = self.variable_in_shell(program, "LD_LIBRARY_PATH", "LD_LIBRARY_PATH=/usr/local/cuda/lib64")
        self.assertEqual(path, f"{self.root}/opt/lib64:/usr/local/cuda/lib64")

    def test_a_path_may_have_spaces_and_quotes(self):
        program = self.install("it's a folder")
        self.assertEqual(self.variable_in_shell(program, "LD_LIBRARY_PATH"), f"{self.root}/it's a folder/lib")

    def test_mpirun_gets_one_option_for_each_variable(self):
        program = self.install("a folder")
        words = shlex.split(self.text(program, "--mpirun"))
        self.assertEqual(words[0::2], ["-x"] * 4)
        self.assertEqual(words[1::2], [f"LD_LIBRARY_PATH={self.root}/a folder/lib", "NCCL_NET_PLUGIN=beeline",
                                       "NCCL_NET=Beeline", "NCCL_NET_PLUGIN_REF_COUNT=1"])

    def test_mpirun_keeps_the_library_path_of_the_caller(self):
        run = subprocess.run([self.install("opt"), "env", "--mpirun"], capture_output=True, text=True, check=True,
                             env={"LD_LIBRARY_PATH": "/usr/local/cuda/lib64"})
        self.assertIn(f"-x LD_LIBRARY_PATH={self.root}/opt/lib:/usr/local/cuda/lib64 ", run.stdout)

    def test_kubernetes_gets_the_file_of_the_plugin_and_leaves_the_library_path_alone(self):
        text = self.text(self.install("opt"), "--k8s")
        lines = text.splitlines()
        self.assertTrue(all(re.match("# .*[.]$", line) for line in lines[0::3]), lines)
        self.assertEqual([line.split()[2] for line in lines[1::3]], NAMES)
        self.assertEqual(lines[2::3], [f'  value: "{self.root}/opt/lib/{PLUGIN}"', '  value: "Beeline"', '  value: "1"'])

    def test_with_an_old_nccl_a_shell_adds_the_folder_to_the_library_path_of_the_image(self):
        page = (pathlib.Path(__file__).resolve().parents[3] / "docs" / "containers.md").read_text(encoding="utf-8")
        command, = re.findall(r"<!-- run by env -->\n```sh\n(.*)\n```", page)
        command = command.replace("torchrun ...", "printenv LD_LIBRARY_PATH")
        for image, wanted in ({}, "/opt/beeline/lib"), ({"LD_LIBRARY_PATH": "/a:/b"}, "/opt/beeline/lib:/a:/b"):
            said = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True,
                                  env={"PATH": "/usr/bin:/bin", **image}).stdout
            self.assertEqual(said, wanted + "\n")

    def test_a_program_gets_json(self):
        run = subprocess.run([self.install("opt"), "env", "--json"], capture_output=True, text=True, check=True,
                             env={"LD_LIBRARY_PATH": "/a:/b"})
        self.assertEqual(json.loads(run.stdout), {"LD_LIBRARY_PATH": f"{self.root}/opt/lib:/a:/b", **dict(zip(
            NAMES, ("beeline", "Beeline", "1")))})

    def test_a_job_script_of_slurm_is_told_about_locked_memory(self):
        self.assertIn("ulimit -l", self.text(self.install("opt"), "--slurm"))

    def test_each_variable_has_a_reason(self):
        lines = self.text(self.install("opt")).splitlines()
        self.assertEqual([re.match(r"export (\w+)=", line)[1] for line in lines[1::2]], ["LD_LIBRARY_PATH", *NAMES])
        for reason in lines[0::2]:
            self.assertRegex(reason, r"^# .*\.$")

    def test_a_program_without_a_plugin_says_where_it_looked(self):
        program = self.install("opt", lib=None)
        run = subprocess.run([program, "env"], capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertIn(f"{PLUGIN} is not in {self.root}/opt/lib", run.stderr)

    def test_one_form_at_a_time(self):
        run = subprocess.run([BEELINE, "env", "--mpirun", "--k8s"], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("use one of them", run.stderr)


if __name__ == "__main__":
    unittest.main()
