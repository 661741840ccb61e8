# SPDX-License-Identifier: Apache-2.0
"""Makes packages from a build folder, and checks what was installed from one."""
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
FORMATS = ["deb", "rpm", "wheel", "tarball", "image"]
FILES = {
    "deb": ("beeline_*.deb", "beeline-softnic_*.deb"),
    "rpm": ("beeline-[0-9]*.rpm", "beeline-softnic-*.rpm"),
    "wheel": ("beeline_nccl-*.whl", "beeline_nccl_softnic-*.whl"),
    "tarball": ("beeline-[0-9]*64.tar.gz", "beeline-softnic-*64.tar.gz"),
    "image": ("beeline-[0-9]*-image.tar",),
}
# A commit after a release, of 2023-11-14 22:13:20.
SOURCE, REVISION, EPOCH = "0.1.1~dev", "0123456789-dirty", "1700000000"
MAINTAINER = "A Maintainer <maintainer@localhost>"
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
    """Installs the build folder into `folder`/stage and packs it; returns the files of each format, that of beeline
    before that of softnic."""
    stage = folder / "stage"
    run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], env={**os.environ, "DESTDIR": str(stage)})
    prefix = next(path.parent for path in stage.rglob("bin") if path.is_dir())
    output = folder / "packages"
    chosen = formats or FORMATS
    run([sys.executable, ROOT / "scripts" / "packaging" / "main.py", "--version", SOURCE, "--revision", REVISION,
         "--maintainer", MAINTAINER, "--installed", prefix, "--output", output, *chosen],
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH})
    return {each: [next(output.glob(name)) for name in FILES[each]] for each in chosen}


def run(command, **options):
    """The output of a command that must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        words = " ".join(str(word) for word in command)
        raise AssertionError(f"exit status {done.returncode} of {words}:\n{done.stdout}{done.stderr}")
    return done.stdout


def stand_ins(root):
    """What must not be on a node without the package of softnic."""
    return [path for path in root.rglob("*") if re.match(r"softnic$|lib(cuda|ibverbs|rdmacm)\b", path.name)]


def check_documents(test, root, plugin="/opt/beeline/lib/libnccl-net-beeline.so", zsh="site-functions"):
    """Each relative link leads to a file, and the files for administrators are there. Those that need no
    LD_LIBRARY_PATH name this plugin."""
    readme, = root.rglob("share/doc/beeline/README.md")
    for page in readme.parent.rglob("*.md"):
        for target in re.findall(r"\]\(([^)\s#:]+)[^)\s:]*\)", page.read_text(encoding="utf-8")):
            test.assertTrue((page.parent / target).exists(), f"{page}: {target}")
    share = readme.parents[2]
    for name in ("man/man1/beeline-perf.1", "bash-completion/completions/beeline", f"zsh/{zsh}/_beeline",
                 "beeline/prometheus-rules.yml", "doc/beeline/docs/deploy/slurm-job.sh",
                 "doc/beeline/docs/deploy/beeline-export.service", "doc/beeline/tests/fabrics/dgx-8rail.toml"):
        test.assertTrue((share / name).exists(), name)
    for name in ("nccl.conf", "task-prolog.sh"):
        text = (share / "doc/beeline/docs/deploy" / name).read_text(encoding="utf-8")
        test.assertEqual(re.findall("NCCL_NET_PLUGIN=(.*)", text), [plugin], name)


def check(test, programs, wrapper=()):
    """Runs the check with the programs of an installation, and nothing of this one's environment."""
    path = f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin"
    output = run([*wrapper, "/usr/bin/env", "-i", f"PATH={path}", "HOME=/", "sh", "-c", CHECK])
    test.assertIn("# Wrong elements : 0 OK", output)


def check_benchmark(test, programs, folder):
    """Runs it with the programs of an installation, and looks for what nccl-tests would get."""
    bench = ["/usr/bin/env", "-i", f"PATH={programs}:/usr/bin:/bin", programs / "beeline-bench", "--profile"]
    run([*bench, "softnic-host", "--sizes", "8..8", "--out", folder / "bench"])
    test.assertEqual({path.name for path in (folder / "bench").iterdir()},
                     {"bench.json", "bench.svg", "beeline.txt", "beeline.perf.json"})
    words = shlex.split(run([*bench, "one-gpu-softnic", "--dry-run"]), comments=True)
    for word in words:
        if re.search("^/|=/", word):
            test.assertTrue(pathlib.Path(word.rpartition("=")[2]).exists(), word)
    return words
