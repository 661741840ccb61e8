# SPDX-License-Identifier: Apache-2.0
"""Makes packages from a build folder, and checks what was installed from one."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FORMATS = ["deb", "rpm", "wheel", "tarball", "image"]
# A commit after a release, of 2023-11-14 22:13:20.
SOURCE, REVISION, EPOCH = "0.1.1~dev", "0123456789-dirty", "1700000000"
VERSION = "0.1.1~dev202311142213+g0123456789.dirty"

# A process that was given the variables of `beeline env` and no others loads the plugin as NCCL does. Then four
# processes of two hosts run an all-reduce over softnic with it.
CHECK = """\
set -eu
eval "$(beeline env)"
softnic run --name packages-$$ -- beeline perf allreduce --plugin "$NCCL_NET_PLUGIN" --ranks 4 \
  --hosts h0,h0,h1,h1 --sizes 8..64K --seconds 0.05
"""


def make_packages(build, folder, formats=None):
    """Installs the build folder into `folder`/stage and packs it; returns the files by format."""
    stage = folder / "stage"
    run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], env={**os.environ, "DESTDIR": str(stage)})
    prefix = next(path.parent for path in stage.rglob("bin") if path.is_dir())
    output = folder / "packages"
    chosen = formats or FORMATS
    run([sys.executable, ROOT / "scripts" / "packaging" / "main.py", "--version", SOURCE, "--revision", REVISION,
         "--installed", prefix, "--output", output, *chosen], env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    ends = {"deb": "*.deb", "rpm": "*.rpm", "wheel": "*.whl", "tarball": "*64.tar.gz", "image": "*-image.tar"}
    return {each: next(output.glob(ends[each])) for each in chosen}


def run(command, **options):
    """The output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise AssertionError(f"exit status {done.returncode} of {words}:\n{done.stdout}{done.stderr}")
    return done.stdout


def check(test, programs, wrapper=()):
    """Runs the check with the programs of an installation, and nothing of this one's environment."""
    path = f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    output = run([*wrapper, "/usr/bin/env", "-i", f"PATH={path}", "HOME=/", "sh", "-c", CHECK])
    test.assertIn("# Wrong elements : 0 OK", output)
