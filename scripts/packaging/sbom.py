# SPDX-License-Identifier: Apache-2.0
"""What is linked into the programs: a list in the form of SPDX 2.3, and the licenses."""
import json
import pathlib
import subprocess
import time

# Debian's package, the name of the project, its license, and the programs that contain it.
LINKED = [
    ("g++", "GCC runtime libraries", "GPL-3.0-or-later WITH GCC-exception-3.1", "beeline, softnic"),
    ("libfmt-dev", "fmt", "MIT", "beeline, softnic"),
    ("libcli11-dev", "CLI11", "BSD-3-Clause", "beeline, softnic"),
    ("nlohmann-json3-dev", "JSON for Modern C++", "MIT", "beeline"),
    ("libtomlplusplus-dev", "toml++", "MIT", "softnic"),
    ("libexpat1-dev", "Expat", "MIT", "beeline"),
    ("libsodium-dev", "libsodium", "ISC", "beeline"),
]


def version_of(package):
    asked = subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True,
                           text=True, check=False)
    return asked.stdout or "NOASSERTION"


def linked_into(package):
    program = package.name.rpartition("-")[2]
    return [each[:3] for each in LINKED if program in each[3]]


def licenses(package):
    """The notices that the licenses want in every copy, as Debian's packages have them."""
    parts = []
    for debian, name, _ in linked_into(package):
        notice = pathlib.Path("/usr/share/doc", debian, "copyright")
        if not notice.exists():
            raise SystemExit(f"{notice} is missing: the packages must contain the licenses of what is linked in. "
                             f"Install the package {debian}, or make your package manager keep /usr/share/doc")
        parts.append(f"{name}, linked statically\n\n{notice.read_text(encoding='utf-8')}")
    return ("\n" + "=" * 80 + "\n\n").join(parts).encode()


def text(release, package):
    def entry_of(identifier, name, version, license_name):
        return {"SPDXID": f"SPDXRef-{identifier}", "name": name, "versionInfo": version,
                "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": license_name,
                "licenseDeclared": license_name, "copyrightText": "NOASSERTION"}

    def relation(first, kind, second):
        return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}

    packages = [entry_of(package.name, package.name, release.version, "Apache-2.0")]
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", f"SPDXRef-{package.name}")]
    for number, (debian, name, license_name) in enumerate(linked_into(package)):
        packages.append(entry_of(f"linked-{number}", name, version_of(debian), license_name))
        relations.append(relation(f"SPDXRef-{package.name}", "STATIC_LINK", f"SPDXRef-linked-{number}"))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": release.stem(package),
        "documentNamespace": f"urn:beeline:{release.stem(package)}:{release.epoch}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
                         "creators": ["Tool: scripts/package"]},
        "packages": packages,
        "relationships": relations,
    }
    return json.dumps(document, indent=1).encode() + b"\n"
