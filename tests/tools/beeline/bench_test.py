#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs scripts/bench. nccl-tests, mpirun and srun are replaced by programs that print an output made for
this; the profile softnic-host is run for real, with what is built.

    bench_test.py BUILD_FOLDER FAKE_PLUGIN
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.etree import ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
FAKES = HERE / "fake_nccl_tests"
PLOT = ROOT / "scripts" / "benchmark" / "plot.py"
LIMIT_S = 100


def clean_environment():
    ours = ("NCCL_", "BEELINE_", "SOFTNIC_", "SLURM_", "OMPI_", "PMI", "FAKE_")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


class Bench(unittest.TestCase):
    """Runs it in an empty folder, to prove that it needs no other."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def bench(self, *words, **environment):
        done = subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "bench"), "--build", BUILD, *words], cwd=self.folder,
            env={**clean_environment(), "PATH": f"{FAKES}:{os.environ['PATH']}", **environment},
            capture_output=True, text=True, timeout=LIMIT_S, check=False)
        return done.returncode, done.stdout, done.stderr

    def refused(self, text, *words, **environment):
        status, stdout, stderr = self.bench(*words, **environment)
        self.assertEqual((status, stdout), (2, ""), stderr)
        self.assertIn(text, stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def measured(self, *words, status=0, **environment):
        """Returns (result, output)."""
        done, stdout, stderr = self.bench("--out", "results", *words, **environment)
        self.assertEqual(done, status, stdout + stderr)
        file = self.folder / "results" / "bench.json"
        self.assertIn(str(file.resolve()), stdout)
        return json.loads(file.read_text(encoding="utf-8")), stdout


class Misuse(Bench):
    def test_options(self):
        self.refused("name a profile with --profile NAME, one of infiniband, ")
        self.refused('no profile "frob"', "--profile", "frob")
        self.refused('"8" is no range of sizes', "--profile", "iwarp", "--sizes", "8")
        self.refused('"A" is not NAME=VALUE', "--profile", "iwarp", "--env", "A")
        self.refused("set the ranks and their hosts with --np N", "--profile", "infiniband")
        self.refused("--hostfile nowhere: no such file", "--profile", "infiniband", "--hostfile", "nowhere")
        self.refused("set the number of GPUs of this machine with --np N",
                     "--profile", "infiniband", "--launcher", "local")
        self.refused("needs a process for each rank: --launcher mpirun or srun",
                     "--profile", "one-gpu-softnic", "--launcher", "local")
        self.refused("omit them", "--profile", "iwarp", "--launcher", "local", "--np", "2",
                     "--launcher-args=-v")
        self.refused("runs on this machine only", "--profile", "softnic-host", "--launcher", "srun")

    def test_comparisons_that_cannot_be(self):
        host = ("--profile", "softnic-host")
        self.refused("compare with another plugin: --plugin-baseline FILE", *host, "--baseline")
        self.refused("uses no GPU, so GPUDirect has no effect", *host, "--gdr-gain")
        self.refused("/nowhere.so: no such file", *host, "--plugin-baseline", "/nowhere.so")

    def test_what_is_not_installed(self):
        job = ("--profile", "infiniband", "--np", "2")
        bare = tempfile.TemporaryDirectory()
        self.addCleanup(bare.cleanup)
        os.symlink(sys.executable, pathlib.Path(bare.name) / "python3")
        self.refused("all_reduce_perf is not in PATH, and NCCL_TESTS_HOME is not set. It belongs to "
                     "NVIDIA's nccl-tests:\n  git clone ", *job, PATH=bare.name)
        self.refused("mpirun is not in PATH: install OpenMPI, or choose --launcher srun or local", *job,
                     PATH=bare.name, NCCL_TESTS_HOME=str(FAKES))
        self.refused("all_reduce_perf is not in NCCL_TESTS_HOME (/nowhere)", *job, NCCL_TESTS_HOME="/nowhere")
        self.refused("make -C nccl-tests MPI=1 MPI_HOME=FOLDER CUDA_HOME=FOLDER NCCL_HOME=FOLDER\n", *job,
                     NCCL_TESTS_HOME="/nowhere")

    def test_a_dry_run_needs_nothing(self):
        for launcher in ("mpirun", "srun"):
            status, stdout, stderr = self.bench("--profile", "infiniband", "--np", "2", "--launcher", launcher,
                                                "--dry-run", PATH=str(self.folder))
            self.assertEqual((status, stderr), (0, ""))
            self.assertRegex(stdout, rf" {launcher} .* all_reduce_perf -b 8 ")

    def test_a_folder_that_holds_results(self):
        (self.folder / "results").mkdir()
        (self.folder / "results" / "bench.json").write_text("{}", encoding="utf-8")
        status, _, stderr = self.bench("--profile", "infiniband", "--np", "2", "--out", "results")
        self.assertEqual(status, 2)
        self.assertIn("it contains the result of an earlier run; name another folder", stderr)

    def test_what_is_not_built(self):
        self.refused("/nowhere/softnic/softnic is not built", "--profile", "softnic-host", "--build", "/nowhere")


class NcclTests(Bench):
    def test_the_result(self):
        result, stdout = self.measured("--profile", "infiniband", "--np", "2", NCCL_IB_TC="96")
        self.assertEqual((result["schema"], result["profile"]["name"]), (1, "infiniband"))
        self.assertEqual(result["inherited"], {"NCCL_IB_TC": "96"})
        self.assertEqual(result["machine"]["host"], os.uname().nodename)
        run, = result["runs"]
        self.assertEqual((run["name"], run["nccl"], run["network"], run["plugin"], run["beeline"]),
                         ("Beeline", "2.27.3+cuda12.9", "Beeline", "Beeline (v10)", "0.1.0 (v0.1.0-3-g0123456789)"))
        self.assertEqual(run["ranks"][1], {"rank": "1", "host": "node1", "device": "0", "pci": "0x1a",
                                           "gpu": "NVIDIA H100 80GB HBM3"})
        self.assertEqual((run["network_paths"], run["gpudirect_paths"]), (4, 4))
        self.assertEqual(run["environment"]["NCCL_IB_HCA"], "mlx5")
        self.assertEqual(len(run["rows"]), 13)
        last = run["rows"][-1]
        self.assertEqual((last["size"], last["time_us"], last["algbw"], last["busbw"], last["wrong"]),
                         (134217728, 2882.1, 46.57, 46.57, 0))
        self.assertEqual(last["in_place"]["time_us"], 2910.9)
        self.assertIn("128 MiB      2882.1        46.570\n", stdout)
        self.assertIn("GPUDirect on 4 of 4 paths", stdout)
        self.assertIn("every element was right", stdout)

    def said(self):
        return (self.folder / "results" / "beeline.txt").read_text(encoding="utf-8")

    def test_mpirun(self):
        hosts = self.folder / "hosts"
        hosts.write_text("node0 slots=8\n", encoding="utf-8")
        result, _ = self.measured("--profile", "infiniband", "--hostfile", "hosts", "--env", "NCCL_IB_HCA=mlx5_3",
                                  "--launcher-args=--oversubscribe", "--sizes", "4..1K")
        command = result["runs"][0]["command"]
        self.assertEqual(command[:4], ["mpirun", "--hostfile", str(hosts.resolve()), "--oversubscribe"])
        self.assertIn("called with -b 4 -e 1024 -f 2 -g 1 -c 1 -n 20 -w 5 by mpirun HCA mlx5_3 ", self.said())

    def test_srun(self):
        (self.folder / "hosts").write_text("node0\nnode0\nnode1\n", encoding="utf-8")
        self.measured("--profile", "roce-v2", "--launcher", "srun", "--hostfile", "hosts")
        self.assertIn("by srun --ntasks 3 HCA", self.said())

    def test_local(self):
        self.measured("--profile", "iwarp", "--launcher", "local", "--np", "8")
        self.assertRegex(self.said(), r"called with .* -g 8 .* by nobody HCA  P2P_DISABLE 1")

    def test_ranks_that_share_a_gpu(self):
        result, _ = self.measured("--profile", "one-gpu-softnic", "--env", "NCCL_NET_GDR_LEVEL=SYS")
        self.assertIn("softnic_rank", " ".join(result["runs"][0]["command"]))
        self.assertIn("by mpirun", self.said())

    def test_open_mpi_keeps_off_the_devices_of_softnic(self):
        said = self.bench("--profile", "one-gpu-softnic", "--dry-run")[1]
        before, _, ranks = said.partition(" mpirun -np 2 ")
        for variable in ("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_MCA_pml=ob1", "OMPI_MCA_btl=self,tcp"):
            self.assertIn(f" {variable} ", before)
        self.assertNotIn("OMPI_", ranks)
        self.assertNotIn("OMPI_", self.bench("--profile", "infiniband", "--np", "2", "--dry-run")[1])

    def test_nccls_own_network_is_told_which_gid_of_softnic_to_take(self):
        job = ("--profile", "one-gpu-softnic", "--baseline", "--dry-run")
        ours, other = self.bench(*job)[1].split("# NCCL's IB")
        self.assertNotIn("NCCL_IB_GID_INDEX", ours)
        self.assertIn("-x NCCL_IB_GID_INDEX=3 ", other)
        self.assertIn("-x NCCL_IB_GID_INDEX=1 ", self.bench(*job, "--env", "NCCL_IB_GID_INDEX=1")[1])
        self.assertNotIn("GID_INDEX", self.bench("--profile", "infiniband", "--np", "2", *job[2:])[1])

    def test_with_and_without_beeline(self):
        result, stdout = self.measured("--profile", "infiniband", "--np", "2", "--baseline")
        ours, other = result["runs"]
        self.assertEqual((other["name"], other["network"], other["plugin"]), ("NCCL's IB", "IB", None))
        self.assertEqual(other["environment"]["NCCL_NET_PLUGIN"], "none")
        self.assertEqual(ours["environment"]["NCCL_NET_PLUGIN"], "beeline")
        self.assertRegex(stdout, r"128 MiB +2882.1 +6276.6 +-54 % +46.570 +21.380 +\+118 %\n")

    def test_another_plugin(self):
        result, _ = self.measured("--profile", "infiniband", "--np", "2", "--plugin-baseline", "ofi")
        other = result["runs"][1]
        self.assertEqual((other["name"], other["network"]), ("ofi", "Other"))
        self.assertNotIn("NCCL_NET", other["environment"])

    def test_what_gpudirect_brings(self):
        result, stdout = self.measured("--profile", "infiniband", "--np", "2", "--gdr-gain")
        self.assertEqual(result["runs"][1]["gpudirect_paths"], 0)
        self.assertIn("the gain from GPUDirect is as expected\n", stdout)

    def test_gpudirect_that_brings_nothing(self):
        _, stdout = self.measured("--profile", "infiniband", "--np", "2", "--gdr-gain", "--env",
                                  "NCCL_NET_GDR_LEVEL=LOC", status=1)
        self.assertIn("GPUDirect was not used", stdout)

    def test_another_network_than_ours(self):
        _, stdout = self.measured("--profile", "infiniband", "--np", "2", status=1, FAKE_NETWORK="Socket")
        self.assertIn("FAULT Beeline: NCCL used network Socket, not Beeline\n", stdout)

    def test_wrong_data(self):
        result, stdout = self.measured("--profile", "infiniband", "--np", "2", status=1, FAKE_WRONG="1")
        self.assertEqual([row["in_place"]["wrong"] for row in result["runs"][0]["rows"]].count(3), 1)
        self.assertIn("FAULT Beeline: wrong data in 1 of its results", stdout)
        self.assertIn("FAULT Beeline: ended with status 1", stdout)
        self.assertNotIn("every element was right", stdout)

    def test_a_run_that_dies(self):
        status, _, stderr = self.bench("--profile", "infiniband", "--np", "2", "--out", "results", FAKE_LINES="20")
        self.assertEqual(status, 1)
        self.assertIn("Beeline: mpirun ended with status 1, without a result", stderr)
        self.assertIn("it ends before its last line", stderr)
        self.assertIn(f"The whole output: {self.folder.resolve()}/results/beeline.txt", stderr)

    def test_the_version_is_that_of_beeline(self):
        status, stdout, stderr = self.bench("--version")
        self.assertEqual((status, stderr), (0, ""))
        self.assertTrue(stdout.startswith("Beeline "), stdout)
        self.refused("/nowhere/tools/beeline does not exist", "--version", "--build", "/nowhere")

    def test_a_dry_run_runs_nothing(self):
        status, stdout, _ = self.bench("--profile", "infiniband", "--np", "2", "--baseline", "--dry-run")
        self.assertEqual(status, 0)
        self.assertEqual(stdout.count("NCCL_DEBUG=INFO mpirun ") + stdout.count("mpirun -np 2"), 2)
        self.assertEqual(list(self.folder.iterdir()), [])


class SoftnicHost(Bench):
    def test_for_real(self):
        result, stdout = self.measured("--profile", str(self.quick_profile()), "--sizes", "8..32",
                                       "--plugin-baseline", FAKE_PLUGIN)
        ours, other = result["runs"]
        self.assertEqual((ours["plugin"], other["plugin"]), ("Beeline (v12)", "Fake (v12)"))
        self.assertRegex(ours["beeline"], r"^\d+\.\d+\.\d+(~dev)? \((unknown revision|[\w.-]+)\)$")
        for run in (ours, other):
            self.assertEqual([row["size"] for row in run["rows"]], [8, 16, 32])
            self.assertEqual([row["wrong"] for row in run["rows"]], [0, 0, 0])
            self.assertEqual([rank["host"] for rank in run["ranks"]], ["h0", "h0", "h1", "h1"])
            self.assertTrue(all(row["time_us"] > 0 for row in run["rows"]))
        self.assertIn("every element was right", stdout)

    def test_one_build_against_another(self):
        ours = pathlib.Path(BUILD) / "plugin" / "abi" / "libnccl-net-beeline.so"
        result, _ = self.measured("--profile", str(self.quick_profile()), "--sizes", "8..8",
                                  "--plugin-baseline", str(ours))
        self.assertEqual([run["name"] for run in result["runs"]], ["Beeline", "Beeline, other build"])

    def quick_profile(self):
        """softnic-host, with less time for each size."""
        text = (ROOT / "nccl-tests-config" / "profiles" / "softnic-host.conf").read_text(encoding="utf-8")
        self.assertIn("\nseconds=0.4\n", text)
        file = self.folder / "quick.conf"
        file.write_text(text.replace("\nseconds=0.4\n", "\nseconds=0.02\n"), encoding="utf-8")
        return file

    def test_a_run_that_fails(self):
        status, _, stderr = self.bench("--profile", "softnic-host", "--out", "results", "--sizes", "8..8",
                                       "--env", "BEELINE_IB_DISABLE=1")
        self.assertEqual(status, 1, stderr)
        self.assertIn("without a result: beeline perf wrote no report", stderr)
        self.assertIn("found no devices", stderr)

    def test_a_rank_has_a_host_and_a_name(self):
        wrapper = str(ROOT / "nccl-tests-config" / "softnic_rank")
        softnic = str(pathlib.Path(BUILD) / "softnic" / "softnic")
        command = [softnic, "run", "--name", f"bench-test-{os.getpid()}", "--fabric",
                   str(ROOT / "tools" / "gpu_check" / "two-hosts.toml"), "--", wrapper, "env"]

        def ranked(**more):
            return subprocess.run(command, env={**clean_environment(), "SOFTNIC": softnic, **more},
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)

        for variable, rank in (("OMPI_COMM_WORLD_RANK", 1), ("SLURM_PROCID", 2)):
            done = ranked(**{variable: str(rank)})
            self.assertIn(f"NCCL_HOSTID=rank-{rank}\n", done.stdout, done.stderr)
            self.assertIn(f"SOFTNIC_HOST=h{rank % 2}\n", done.stdout)
        self.assertEqual((ranked().returncode, ranked().stdout), (2, ""))
        self.assertIn("which rank is this? Start it with mpirun or srun", ranked().stderr)


class Plot(Bench):
    def test_the_picture(self):
        result, stdout = self.measured("--profile", "infiniband", "--np", "2", "--baseline")
        file = self.folder / "results" / "bench.svg"
        self.assertIn(f"{file.resolve()}\n", stdout)
        svg = "{http://www.w3.org/2000/svg}"
        picture = ElementTree.parse(file)
        words = [element.text for element in picture.iter(svg + "text")]
        for word in (result["title"], "Beeline", "NCCL's IB", "8 B", "64 B", "128 MiB", "50", "10 µs", "10 ms"):
            self.assertIn(word, words)
        # Faster is higher in the first diagram, and lower in the second. y grows downwards.
        ends = [float(line.get("points").rpartition(",")[2]) for line in picture.iter(svg + "polyline")]
        ours_speed, other_speed, ours_time, other_time = ends
        self.assertLess(ours_speed, other_speed)
        self.assertGreater(ours_time, other_time)

    def test_it_is_drawn_again_from_the_result(self):
        self.measured("--profile", "infiniband", "--np", "2")
        results = self.folder / "results"
        again = self.folder / "again.svg"
        subprocess.run([sys.executable, "-B", str(PLOT), str(results / "bench.json"), str(again)], check=True,
                       timeout=LIMIT_S)
        self.assertEqual(again.read_bytes(), (results / "bench.svg").read_bytes())

    def test_labels_fit(self):
        script = "import sys; sys.path[:0] = [sys.argv[1]]; from plot import *; " \
                 "print(size_ticks([8, 8 << 30])[:3], len(size_ticks([8, 8 << 30])), time_ticks(30, 900), " \
                 "time_ticks(20, 9000), bandwidth_ticks(47))"
        done = subprocess.run([sys.executable, "-B", "-c", script, str(PLOT.parent)], capture_output=True,
                              text=True, check=True)
        self.assertEqual(done.stdout, "[8, 64, 512] 11 [20.0, 50.0, 100.0, 200.0, 500.0, 1000.0] "
                         "[10.0, 100.0, 1000.0, 10000.0] [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]\n")


if __name__ == "__main__":
    BUILD, FAKE_PLUGIN = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
