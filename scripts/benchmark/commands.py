# SPDX-License-Identifier: Apache-2.0
"""The command line of a run: the measuring program, and the launcher that starts it on all ranks."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from errors import Misuse
from profiles import HOSTFILES
from sizes import range_text

WARM_UP = 5  # iterations that are not counted; nccl-tests' own default depends on its version
# Options of mpirun if all ranks run over softnic on this machine. Without them Open MPI would use softnic's
# devices itself, require more processors than there are, and refuse to run as root.
OPEN_MPI_ON_THIS_MACHINE = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "UCX_TLS": "self,tcp"}
FIX = """  git clone https://github.com/NVIDIA/nccl-tests
  make -C nccl-tests{mpi} CUDA_HOME=FOLDER NCCL_HOME=FOLDER
  export NCCL_TESTS_HOME=$PWD/nccl-tests
Each FOLDER has include and lib of what its name says, such as /usr/local/cuda, /usr for NCCL, and for Open MPI on Debian
/usr/lib/x86_64-linux-gnu/openmpi."""


@dataclass
class Command:
    words: list
    environment: dict  # in addition to this process's own


def build(profile, run, options, folders):
    if profile.engine == "beeline-perf":
        return beeline_perf(profile, run, options, folders)
    environment = {**run.environment, **paths(profile, folders)}
    program = nccl_tests(profile, options)
    if options.launcher == "mpirun":
        words = mpirun(profile, options, environment) + program
    elif options.launcher == "srun":
        words = srun(profile, options, environment) + program
    else:
        words = local(profile, options, environment) + program
    if profile.fabric:
        words = on_softnic(profile, folders) + words
    return Command(words, environment)


def beeline_perf(profile, run, options, folders):
    if options.launcher != "local" or options.hostfile:
        raise Misuse(f"profile {profile.name} runs on this machine only: use --launcher local, without --hostfile")
    words = on_softnic(profile, folders) + [
        str(folders.programs.beeline), "perf", "allreduce",
        "--ranks", str(options.np or 2), "--comms", str(profile.comms),
        "--sizes", range_text(options.sizes), "--seconds", f"{profile.seconds:g}",
        "--log", run.environment.get("NCCL_DEBUG", "WARN"),
        "--json", str(folders.out / f"{run.stem}.perf.json")]
    if profile.hosts:
        words += ["--hosts", profile.hosts]
    if run.plugin:
        words += ["--plugin", run.plugin]
    return Command(words, dict(run.environment))


def on_softnic(profile, folders):
    fabric = ["--fabric", profile.fabric] if profile.fabric else []
    return [str(folders.programs.softnic), "run", "--name", f"bench-{os.getpid()}", *fabric, "--"]


def paths(profile, folders):
    """The library path with which the ranks find this plugin. That of a deb or rpm is found without."""
    found = {}
    if (folders.programs.plugin / "libnccl-net-beeline.so").exists():
        old = os.environ.get("LD_LIBRARY_PATH")
        ours = str(folders.programs.plugin)
        found["LD_LIBRARY_PATH"] = f"{ours}:{old}" if old else ours
    if profile.wrapper:
        found["SOFTNIC"] = str(folders.programs.softnic)
    return found


def nccl_tests(profile, options):
    least, most = options.sizes
    gpus = options.np if options.launcher == "local" else 1
    wrapper = [profile.wrapper] if profile.wrapper else []
    return wrapper + [find_all_reduce_perf(options), "-b", str(least), "-e", str(most),
                      "-f", "2", "-g", str(gpus), "-c", "1", "-n", str(profile.iterations),
                      "-w", str(WARM_UP)]


def find_all_reduce_perf(options):
    home = os.environ.get("NCCL_TESTS_HOME")
    if home:
        for file in (Path(home) / "build" / "all_reduce_perf", Path(home) / "all_reduce_perf"):
            if os.access(file, os.X_OK):
                return os.path.abspath(file)
    found = None if home else shutil.which("all_reduce_perf")
    if found:
        return os.path.abspath(found)
    if options.dry_run:
        return "all_reduce_perf"
    where = f"in NCCL_TESTS_HOME ({home})" if home else "in PATH, and NCCL_TESTS_HOME is not set"
    fix = FIX.format(mpi="" if options.launcher == "local" else " MPI=1 MPI_HOME=FOLDER")
    raise Misuse(f"all_reduce_perf is not {where}. It belongs to NVIDIA's nccl-tests:\n{fix}")


def need(program, package, others, options):
    if not options.dry_run and not shutil.which(program):
        raise Misuse(f"{program} is not in PATH: install {package}, or choose --launcher {others}")


def hostfile(options):
    if options.hostfile and not os.path.isfile(options.hostfile):
        raise Misuse(f"--hostfile {options.hostfile}: no such file; {HOSTFILES} has examples")
    return options.hostfile and os.path.abspath(options.hostfile)


def mpirun(profile, options, environment):
    """OpenMPI's launcher. Ranks on other hosts get only the variables that are named."""
    need("mpirun", "OpenMPI", "srun or local", options)
    words = ["mpirun"]
    if options.np:
        words += ["-np", str(options.np)]
    if hostfile(options):
        words += ["--hostfile", hostfile(options)]
    elif not options.np and not os.environ.get("SLURM_JOB_ID"):
        raise Misuse(f"profile {profile.name}: set the ranks and their hosts with --np N or --hostfile FILE")
    words += options.launcher_args
    for name, value in environment.items():
        words += ["-x", f"{name}={value}"]
    if profile.fabric:
        environment.update(OPEN_MPI_ON_THIS_MACHINE)
    return words


def srun(profile, options, environment):
    """Slurm's launcher. Its ranks inherit the environment."""
    need("srun", "Slurm", "mpirun or local", options)
    words = ["srun"]
    ranks = options.np
    if hostfile(options):
        environment["SLURM_HOSTFILE"] = hostfile(options)
        words += ["--distribution=arbitrary"]
        # The hostfile names the host of each rank.
        ranks = ranks or len(Path(options.hostfile).read_text(encoding="utf-8").replace(",", " ").split())
    elif not ranks and not os.environ.get("SLURM_JOB_ID"):
        raise Misuse(f"profile {profile.name}: set the ranks with --np N, or run it in an allocation "
                     "(salloc)")
    if ranks:
        words += ["--ntasks", str(ranks)]
    return words + options.launcher_args


def local(profile, options, environment):
    """One process for all GPUs. NCCL would connect the GPUs of one machine without a network."""
    if profile.wrapper:
        raise Misuse(f"profile {profile.name} needs a process for each rank: --launcher mpirun or srun")
    if options.launcher_args:
        raise Misuse("--launcher local has no launcher for --launcher-args; omit them")
    if not options.np:
        raise Misuse("--launcher local: set the number of GPUs of this machine with --np N")
    if options.hostfile:
        raise Misuse("--launcher local uses this machine only; omit --hostfile, or choose mpirun "
                     "or srun")
    environment.update(NCCL_P2P_DISABLE="1", NCCL_SHM_DISABLE="1")
    return []
