# SPDX-License-Identifier: Apache-2.0
"""Packs what scripts/package has built and installed into a folder.

Usage: main.py --version VERSION --revision COMMIT --maintainer PERSON --installed FOLDER --output FOLDER FORMAT...
"""
import argparse
import pathlib

import contents
import deb
import image
import rpm
import sbom
import tarball
import wheel

WRITERS = {
    "deb": deb.write,
    "rpm": rpm.write,
    "wheel": wheel.write,
    "tarball": tarball.write,
    "image": image.write,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="the commit; empty if it is not known")
    parser.add_argument("--maintainer", required=True, help="who answers for the packages: NAME <ADDRESS>")
    parser.add_argument("--installed", type=pathlib.Path, required=True, help="the prefix of an installation")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("formats", nargs="+", choices=WRITERS)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    release = contents.Release(options.version, options.revision, options.maintainer)
    files, debug = contents.read_stage(options.installed)
    made = []
    for package in contents.split(files):
        bill = sbom.text(release, package)
        package.files[f"share/doc/{package.name}/sbom.spdx.json"] = contents.File(bill)
        package.files[f"share/doc/{package.name}/third-party-licenses.txt"] = contents.File(sbom.licenses(package))
        # The image is for jobs.
        made += [WRITERS[each](release, package, options.output) for each in options.formats
                 if (each, package.name) != ("image", contents.SOFTNIC.name)]
        made.append(options.output / f"{release.stem(package)}.spdx.json")
        made[-1].write_bytes(bill)
    made.append(tarball.write_debug(release, debug, options.output))
    for path in made:
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
