# SPDX-License-Identifier: Apache-2.0
"""What is linked into the programs: a list in the form of SPDX 2.3, and the licenses."""
import json
import pathlib
import subprocess
import time

# Debian's package, the name of the project, its license, and what contains it.
LINKED = [
    ("g++", "GCC runtime libraries", "GPL-3.0-or-later WITH GCC-exception-3.1", "all programs"),
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


def licenses():
    """The notices that the licenses want in every copy, as Debian's packages have them."""
    parts = []
    for debian, name, _, users in LINKED:
        notice = pathlib.Path("/usr/share/doc", debian, "copyright")
        if not notice.exists():
            raise SystemExit(f"{notice} is missing: the packages must contain the licenses of what is linked in. "
                             f"Install the package {debian}, or make your package manager keep /usr/share/doc")
        parts.append(f"{name}, linked statically into {users}\n\n{notice.read_text(encoding='utf-8')}")
    return ("\n" + "=" * 80 + "\n\n").join(parts).encode()


def text(release):
    def package(identifier, name, version, license_name, comment=None):
        entry = {"SPDXID": f"SPDXRef-{identifier}", "name": name, "versionInfo": version,
                 "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": license_name,
                 "licenseDeclared": license_name, "copyrightText": "NOASSERTION"}
        return {**entry, "comment": comment} if comment else entry

    def relation(first, kind, second):
        return {"spdxElementId": first, "relationshipType": kind, "relatedSpdxElement": second}

    packages = [package("beeline", "beeline", release.version, "Apache-2.0")]
    relations = [relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-beeline")]
    for number, (debian, name, license_name, users) in enumerate(LINKED):
        packages.append(package(f"linked-{number}", name, version_of(debian), license_name,
                                f"linked statically into {users}"))
        relations.append(relation("SPDXRef-beeline", "STATIC_LINK", f"SPDXRef-linked-{number}"))
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": release.stem,
        "documentNamespace": f"urn:beeline:{release.stem}:{release.epoch}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(release.epoch)),
                         "creators": ["Tool: scripts/package"]},
        "packages": packages,
        "relationships": relations,
    }
    return json.dumps(document, indent=1).encode() + b"\n"
