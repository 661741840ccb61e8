#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each format that scripts/package makes is installed into a folder of its own and used from there.

Usage: packages_test.py BUILD

`package_roots` installs packages into whole systems of other distributions.
"""
import hashlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import venv

import installed

BUILD = pathlib.Path(sys.argv.pop(1))
LIBC = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.scratch = pathlib.Path(folder.name).resolve()
        cls.packages = installed.make_packages(BUILD, cls.scratch)

    def setUp(self):
        self.root = self.scratch / self.id().rpartition(".")[2]
        self.root.mkdir()

    def test_tarball(self):
        """With the command of the documentation, it lies where the files in docs/deploy look."""
        page = (installed.ROOT / "docs" / "install.md").read_text(encoding="utf-8")
        command, = re.findall(r"`(tar -xf FILE [^`]*)`", page)
        command = command.replace("/opt", str(self.root)).replace("VERSION", installed.VERSION)
        ours, softnic = (command.replace("FILE", str(path)) for path in self.packages["tarball"])
        installed.run(["sh", "-c", ours])
        self.assertEqual(installed.stand_ins(self.root), [])
        installed.check_documents(self, self.root / f"beeline-{installed.VERSION}")
        installed.run(["sh", "-c", softnic])
        used = set()
        for file in sorted((installed.ROOT / "docs").glob("deploy/*")) + [installed.ROOT / "docs" / "monitoring.md"]:
            used.update(re.findall(r"/(opt/beeline/[\w./-]+)", file.read_text(encoding="utf-8")))
        self.assertIn("opt/beeline/bin", used)  # deploy/beeline-export.service
        self.assertIn("opt/beeline/lib", used)
        for name in used:
            self.assertTrue((self.root / name.removeprefix("opt/")).exists(), name)
        installed.check(self, self.root / "beeline" / "bin")
        commands = installed.check_benchmark(self, self.root / "beeline" / "bin", self.root)
        self.assertIn(f"LD_LIBRARY_PATH={self.root}/beeline-{installed.VERSION}/lib", commands)
        # A folder of that name is not replaced, nor is the link made inside it.
        (self.root / "beeline").unlink()
        (self.root / "beeline").mkdir()
        with self.assertRaisesRegex(AssertionError, "cannot overwrite directory"):
            installed.run(["sh", "-c", ours])

    def test_a_commit_after_a_release_has_a_version_between_it_and_the_next(self):
        ordered = ["0.1.0", "0.1.1~dev202311142212+gfff", installed.VERSION, "0.1.1"]
        for older, newer in zip(ordered, ordered[1:]):
            installed.run(["dpkg", "--compare-versions", older, "lt", newer])
            compared = f'%{{lua:print(rpm.vercmp("{older}", "{newer}"))}}'
            self.assertEqual(installed.run(["rpm", "--eval", compared]).strip(), "-1", newer)
        venv.create(self.root, with_pip=True)
        python_versions = [version.replace("~", ".") for version in ordered]
        script = ("import sys\nfrom pip._vendor.packaging.version import Version\n"
                  "assert sorted(sys.argv[1:], key=Version) == sys.argv[1:]\nprint(Version(sys.argv[3]))")
        said = installed.run([self.root / "bin" / "python", "-c", script, *python_versions]).strip()
        self.assertEqual(said, python_versions[2])

    def test_wheel(self):
        venv.create(self.root, with_pip=True)
        installed.run([self.root / "bin" / "pip", "install", "--no-index", "--quiet", *self.packages["wheel"]])
        installed.check(self, self.root / "bin")
        commands = installed.check_benchmark(self, self.root / "bin", self.root)
        self.assertRegex(str(commands), "'LD_LIBRARY_PATH=[^']*/site-packages/beeline_nccl/lib'")
        variables = installed.run([self.root / "bin" / "beeline", "env"])
        self.assertIn("/site-packages/beeline_nccl/lib", variables)
        shown = installed.run([self.root / "bin" / "pip", "show", "beeline-nccl"])
        self.assertIn(f"\nVersion: {installed.VERSION.replace('~', '.')}\n", shown)
        installed.check_documents(self, self.root)
        installed.run([self.root / "bin" / "pip", "uninstall", "--yes", "--quiet", "beeline-nccl-softnic"])
        self.assertEqual(installed.stand_ins(self.root), [])

    def test_deb(self):
        admin = self.root / "var" / "lib" / "dpkg"
        for folder in ("info", "updates", "triggers"):
            (admin / folder).mkdir(parents=True)
        (admin / "status").touch()
        dpkg = ["dpkg", f"--root={self.root}", "--log=/dev/null", "--force-depends", "--force-script-chrootless"]
        installed.run([*dpkg, "--install", *self.packages["deb"]])
        installed.check(self, self.root / "usr" / "bin")
        commands = installed.check_benchmark(self, self.root / "usr" / "bin", self.root)
        self.assertNotIn("LD_LIBRARY_PATH", str(commands))  # the plugin is in the loader's own folders
        shown = installed.run(["dpkg-query", f"--admindir={admin}", "--show", "--showformat=${Version} ${Maintainer}",
                               "beeline"])
        self.assertEqual(shown, f"{installed.VERSION} {installed.MAINTAINER}")
        installed.check_documents(self, self.root, "beeline", "vendor-completions")
        installed.run([*dpkg, "--purge", "beeline-softnic"])
        self.assertEqual(installed.stand_ins(self.root), [])
        with self.assertRaisesRegex(AssertionError, "softnic is not in PATH; softnic is in the package beeline-softnic"):
            installed.check_benchmark(self, self.root / "usr" / "bin", self.root)
        installed.run([*dpkg, "--purge", "beeline"])
        # Running beeline-bench left nothing here.
        self.assertEqual([path for path in (self.root / "usr").rglob("*") if path.is_file()], [])

    def test_rpm(self):
        installed.run(["rpm", "--root", self.root, "--install", "--nodeps", "--noscripts", *self.packages["rpm"]])
        self.assertEqual(installed.run(["rpm", "--root", self.root, "--verify", "--nodeps", "--all"]), "")
        self.assertEqual(installed.run(["rpm", "--root", self.root, "--query", "--queryformat", "%{version}", "beeline"]),
                         installed.VERSION)
        installed.check(self, self.root / "usr" / "bin")
        installed.check_benchmark(self, self.root / "usr" / "bin", self.root)
        installed.check_documents(self, self.root, "beeline")
        installed.run(["rpm", "--root", self.root, "--erase", "--noscripts", "beeline-softnic"])
        self.assertEqual(installed.stand_ins(self.root), [])
        installed.run(["rpm", "--root", self.root, "--erase", "--noscripts", "beeline"])
        self.assertEqual(list((self.root / "usr").rglob("*beeline*")), [])

    def test_image(self):
        with tarfile.open(self.packages["image"][0]) as archive:
            blobs = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
        for name, data in blobs.items():
            if name.startswith("blobs/"):
                self.assertEqual(name, f"blobs/sha256/{hashlib.sha256(data).hexdigest()}")

        def blob(entry):
            data = blobs["blobs/" + entry["digest"].replace(":", "/")]
            self.assertEqual(len(data), entry["size"])
            return data

        described, = json.loads(blobs["index.json"])["manifests"]
        manifest = json.loads(blob(described))
        config = json.loads(blob(manifest["config"]))
        self.assertEqual(config["config"]["Labels"]["org.opencontainers.image.version"], installed.VERSION)
        self.assertEqual(config["config"]["Labels"]["org.opencontainers.image.revision"], installed.REVISION)
        tag = described["annotations"]["org.opencontainers.image.ref.name"]
        self.assertRegex(tag, r"^0\.1\.1\.dev[\w.-]{1,110}$")
        layer, = manifest["layers"]
        with tarfile.open(fileobj=io.BytesIO(blob(layer))) as archive:
            archive.extractall(self.root)
        plain = subprocess.run(["gzip", "-d"], input=blob(layer), capture_output=True, check=True).stdout
        self.assertEqual(config["rootfs"]["diff_ids"], [f"sha256:{hashlib.sha256(plain).hexdigest()}"])
        self.assertEqual(installed.stand_ins(self.root), [])
        installed.check_documents(self, self.root)
        with tarfile.open(self.packages["tarball"][1]) as archive:
            archive.extractall(self.root)
        softnic = self.root / f"beeline-{installed.VERSION}" / "bin"
        installed.check(self, f"{self.root}/opt/beeline/bin:{softnic}")

    def test_packing_again_gives_the_same_bytes(self):
        again = self.root / "again"
        again.mkdir()
        for name, paths in installed.make_packages(BUILD, again).items():
            for path, before in zip(paths, self.packages[name]):
                with self.subTest(path.name):
                    self.assertEqual(path.read_bytes(), before.read_bytes())

    def test_programs_need_only_libc_and_have_no_debug_information(self):
        programs = 0
        for path in installed_programs(self.packages["tarball"], self.root):
            with self.subTest(path.name):
                programs += 1
                dynamic = installed.run(["readelf", "-dW", path])
                needed = {line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line}
                self.assertLessEqual(needed, LIBC)
                self.assertNotIn("RUNPATH", dynamic)
                self.assertNotIn(".debug_info", installed.run(["readelf", "-SW", path]))
        self.assertEqual(programs, 5)

    def test_debug_information_lies_under_the_build_id(self):
        program = next(path for path in installed_programs(self.packages["tarball"], self.root)
                       if path.name == "beeline")
        notes = installed.run(["readelf", "-n", program])
        build_id = next(line.split()[-1] for line in notes.splitlines() if "Build ID" in line)
        with tarfile.open(next(self.packages["tarball"][0].parent.glob("*-debug.tar.gz"))) as archive:
            self.assertIn(f"lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug", archive.getnames())


def installed_programs(tarballs, root):
    for tarball in tarballs:
        with tarfile.open(tarball) as archive:
            archive.extractall(root)
    return [path for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF"]


if __name__ == "__main__":
    unittest.main()
