# SPDX-License-Identifier: Apache-2.0
"""What is in the packages: the installed files, without their debug information, and the documents."""
import dataclasses
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# At the places where the links and the commands in them look.
DOCUMENTS = ["README.md", "CHANGELOG.md", "LICENSE", "NOTICE", "SECURITY.md", "tools/README.md", "bench/README.md",
             "nccl-tests-config/README.md"]
FOLDERS = ["docs", "tests/fabrics"]
SUFFIXES = {".md", ".sh", ".yaml", ".toml", ".svg", ".png", ".conf", ".service"}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")
# The benchmark, which is the command beeline-bench.
BENCHMARK = ["scripts/bench", "scripts/benchmark/*.py", "nccl-tests-config/*.py", "nccl-tests-config/softnic_rank",
             "nccl-tests-config/profiles/*", "nccl-tests-config/hostfiles/*", "tools/gpu_check/two-hosts.toml"]
# What Debian and container images call the processors.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PLUGIN = "lib/libnccl-net-beeline.so"
COMPLETION = "share/zsh/site-functions/_beeline"


@dataclasses.dataclass(frozen=True)
class File:
    data: bytes
    mode: int = 0o644
    link: str = ""  # where a symbolic link points to


@dataclasses.dataclass(frozen=True)
class Package:
    name: str
    summary: str
    description: str
    files: dict = dataclasses.field(default_factory=dict)  # by their paths below the prefix


BEELINE = Package("beeline", "NCCL network plugin for RDMA", """\
Beeline moves NCCL's traffic between GPU memory and the network over InfiniBand, RoCE and iWARP. It keeps jobs
running when links fail, and says what is slow or broken. The command beeline measures, checks and watches it;
beeline env prints what to set so that NCCL uses it.""")
# A package of its own, because its libraries have the names of libibverbs and of the CUDA driver.
SOFTNIC = Package("beeline-softnic", "software RDMA device for tests", """\
softnic runs programs that use libibverbs on a machine without RDMA hardware. With its stand-in for the CUDA driver
they need no GPU either. It is for tests, and not for the nodes of a cluster.""")


class Release:
    def __init__(self, version, revision, maintainer):
        self.maintainer = maintainer
        self.epoch = int(os.environ["SOURCE_DATE_EPOCH"])
        self.revision = revision  # "251b7f5690", "251b7f5690-dirty", or nothing without git
        # Between releases, each commit has a version of its own, and that of a later commit is newer. The same text
        # is ordered so by dpkg, by rpm and, with a dot, by pip: 0.2.0~dev... is older than 0.2.0.
        self.version = version
        if version.endswith("~dev"):
            self.version += time.strftime("%Y%m%d%H%M", time.gmtime(self.epoch))
        if revision and self.version != version or revision.endswith("-dirty"):
            self.version += "+g" + revision.replace("-", ".")
        self.python_version = self.version.replace("~", ".")
        self.machine = platform.machine()  # x86_64, aarch64
        self.architecture = ARCHITECTURES[self.machine]

    def stem(self, package=BEELINE):
        return f"{package.name}-{self.version}-{self.machine}"


def read_stage(folder):
    """The files by their paths below the prefix, and the debug information of programs by theirs."""
    files, debug = {}, {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            files[name] = File(b"", 0o777, os.readlink(path))
        elif path.is_file():
            data = path.read_bytes()
            if data.startswith(b"\x7fELF"):
                data, build_id, symbols = without_debug_information(path)
                debug[f"lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"] = File(symbols)
            files[name] = dataclasses.replace(file_of(path), data=data)
    if PLUGIN not in files:
        raise SystemExit(f"{folder} has no {PLUGIN}: configure the build with -Dlibdir=lib")
    documents = [ROOT / name for name in DOCUMENTS]
    for folder in FOLDERS:
        documents += [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]
    for path in documents:
        files[f"share/doc/beeline/{path.relative_to(ROOT)}"] = file_of(path)
    for name in [name for name in files if name.startswith("share/doc/") and name.endswith(".md")]:
        files[name] = without_dead_links(name, files)
    for path in (path for pattern in BENCHMARK for path in sorted(ROOT.glob(pattern))):
        files[f"share/beeline/{path.relative_to(ROOT)}"] = file_of(path)
    files["bin/beeline-bench"] = File(b"", 0o777, "../share/beeline/scripts/bench")
    return files, debug


def file_of(path):
    return File(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)


def without_dead_links(name, files):
    """The document without its links to files of the sources that are not in the package; their words stay."""
    def kept(link):
        target = os.path.normpath(os.path.join(os.path.dirname(name), link[2]))
        return link[0] if any(each == target or each.startswith(target + "/") for each in files) else link[1]

    return dataclasses.replace(files[name], data=LINK.sub(kept, files[name].data.decode()).encode())


def split(files):
    """The two packages, with their files."""
    softnic = {name: file for name, file in files.items() if name.startswith(("bin/softnic", "lib/beeline-softnic/"))}
    ours = {name: file for name, file in files.items() if name not in softnic}
    for name in ("LICENSE", "NOTICE"):
        softnic[f"share/doc/{SOFTNIC.name}/{name}"] = files[f"share/doc/beeline/{name}"]
    return dataclasses.replace(BEELINE, files=ours), dataclasses.replace(SOFTNIC, files=softnic)


def without_debug_information(path):
    """The stripped program, its build id, and what was stripped; debuggers find it by the id."""
    notes = subprocess.run(["readelf", "-n", path], capture_output=True, text=True, check=True).stdout
    build_id = next(line.split()[-1] for line in notes.splitlines() if "Build ID:" in line)
    with tempfile.TemporaryDirectory() as scratch:
        symbols, stripped = pathlib.Path(scratch, "symbols"), pathlib.Path(scratch, "stripped")
        subprocess.run(["objcopy", "--only-keep-debug", "--compress-debug-sections", path, symbols], check=True)
        subprocess.run(["strip", "--strip-unneeded", "-o", stripped, path], check=True)
        return stripped.read_bytes(), build_id, symbols.read_bytes()


def moved(files, folder, zsh=COMPLETION):
    """The files as they are for a distribution whose libraries lie in `folder` instead of lib, where the loader finds
    the plugin by its name, and whose completion for zsh is the file `zsh`."""
    places = {PLUGIN: folder + "/" + PLUGIN.removeprefix("lib/"), COMPLETION: zsh}

    def named(name, file):
        if not name.startswith("share/doc/beeline/docs/deploy/"):
            return file
        by_file, by_name = (f"NCCL_NET_PLUGIN={each}\n".encode() for each in (f"/opt/beeline/{PLUGIN}", "beeline"))
        return dataclasses.replace(file, data=file.data.replace(by_file, by_name))

    return {places.get(name, name): named(name, file) for name, file in files.items()}


def write_tree(files, root, epoch):
    """Writes the files below `root`, with the given time."""
    for name, file in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link:
            path.symlink_to(file.link)
        else:
            path.write_bytes(file.data)
            path.chmod(file.mode)
    for path in [*root.rglob("*"), root]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
        os.utime(path, (epoch, epoch), follow_symlinks=False)
