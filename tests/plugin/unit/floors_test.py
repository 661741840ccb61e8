#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every #include of the repository against the tables in docs/floors.md.

A table whose header begins "| floor | folder |" says what each folder may include, and the one that begins
"| header | used in |" says where the headers of other projects are used."""

import collections
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "floors.md"
SOURCES = ("*.h", "*.hpp", "*.cc", "*.cpp", "*.c", "*.def", "*.inc")
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
# Headers of the C library and the kernel. Those of the C++ library have neither a folder nor a suffix.
SYSTEM = re.compile(
    r"(sys|linux|net|netinet|arpa)/.*|(assert|dirent|dlfcn|endian|fcntl|fnmatch|grp|ifaddrs|link|malloc|netdb|poll|"
    r"pthread|pwd|sched|semaphore|signal|spawn|stdarg|stddef|stdint|stdio|stdlib|string|strings|termios|time|unistd)\.h|[a-z_]+")

# All folders may include this one, and no row says so.
EVERYWHERE = "common/check"

Room = collections.namedtuple("Room", "row floor folder may_include")
Include = collections.namedtuple("Include", "file line header is_quoted")


def covers(name, path):
    """`x/*` covers all that is below x, and any other name itself alone."""
    return path.startswith(name[:-1]) and path != name[:-2] if name.endswith("/*") else path == name


def floor_number(text):
    return tuple(int(part) for part in text.split("."))


def table_rows(page, header):
    """The cells of all rows of those tables whose header begins so."""
    is_inside = False
    for line in page.splitlines():
        if not line.startswith("|"):
            is_inside = False
        elif line.startswith(header):
            is_inside = True
        elif is_inside and not line.startswith("|-"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def names_in(cell):
    return re.findall(r"`([^`]+)`", cell)


def in_full(name, folder, folders):
    """The name as seen from the root. It begins there, or in a folder above `folder`."""
    parents = [""] + [folder[:at.start() + 1] for at in re.finditer("/", folder)]
    for parent in parents:
        if any(covers(parent + name, other) for other in folders):
            return parent + name
    raise ValueError(f"{folder} may include {name}, but no such folder is in the tables")


def parse_rooms(page):
    rows = [(row, cells[0], folder, names_in(cells[-1]))
            for row, cells in enumerate(table_rows(page, "| floor | folder |")) for folder in names_in(cells[1])]
    folders = [folder for _, _, folder, _ in rows]
    twice = {folder for folder in folders if folders.count(folder) > 1}
    if twice:
        raise ValueError(f"in the tables twice: {', '.join(twice)}")
    return {folder: Room(row, floor, folder, [in_full(name, folder, folders) for name in names])
            for row, floor, folder, names in rows}


def parse_headers(page):
    """The folders where a header of another project may be used, by its name or the folder it is in."""
    return {header: names_in(cells[1])
            for cells in table_rows(page, "| header | used in |") for header in names_in(cells[0])}


def includes_of(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield Include(path, number, match[1] or match[2], match[1] is not None)


def read_repository():
    # The repository may belong to another user than the one that runs the test.
    git = ["git", "-C", ROOT, "-c", "safe.directory=*"]
    if (ROOT / ".git").exists():
        listed = subprocess.run([*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
                                stdout=subprocess.PIPE, check=True, text=True).stdout.split("\0")
    else:
        listed = [str(file.relative_to(ROOT)) for suffix in SOURCES for file in ROOT.rglob(suffix)
                  if not file.relative_to(ROOT).parts[0].startswith("build")]
    return {name: (ROOT / name).read_text(encoding="utf-8") for name in listed if name and (ROOT / name).is_file()}


def folder_of(path):
    return path.rpartition("/")[0]


def judge_own(rooms, found):
    here = rooms[folder_of(found.file)]
    target = folder_of(found.header) or here.folder
    if target in (here.folder, EVERYWHERE):
        return None
    said = f"{found.file}:{found.line} includes {found.header}: "
    if target not in rooms:
        return said + f"the table in docs/floors.md has no folder {target}"
    if any(covers(name, target) for name in here.may_include):
        return None
    allowed = ", ".join(here.may_include) or "nothing"
    return said + f"floor {here.floor} may not include floor {rooms[target].floor} (allowed: {allowed})"


def judge_foreign(headers, found):
    if SYSTEM.fullmatch(found.header):
        return None
    said = f"{found.file}:{found.line} includes <{found.header}>: "
    for name, used_in in headers.items():
        if covers(name, found.header):
            if any(covers(folder, folder_of(found.file)) for folder in used_in):
                return None
            return said + f"only for {', '.join(used_in)}"
    return said + "the table in docs/floors.md does not have this header"


def complaints(rooms, headers, sources):
    """One sentence for each include that the tables do not allow, and for each folder that they do not have."""
    result = [f"{folder}: the table in docs/floors.md does not have this folder"
              for folder in sorted({folder_of(path) for path in sources} - rooms.keys())]
    for path, text in sources.items():
        if folder_of(path) in rooms:
            for found in includes_of(path, text):
                said = judge_own(rooms, found) if found.is_quoted else judge_foreign(headers, found)
                if said:
                    result.append(said)
    return result


class Floors(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.page = PAGE.read_text(encoding="utf-8")
        cls.rooms = parse_rooms(cls.page)
        cls.headers = parse_headers(cls.page)
        cls.sources = read_repository()

    def check_none(self, found):
        self.assertFalse(found, "\n" + "\n".join(found))

    def test_every_include_is_one_that_the_tables_allow(self):
        self.check_none(complaints(self.rooms, self.headers, self.sources))

    def test_a_permission_only_goes_down(self):
        wrong = []
        for room in self.rooms.values():
            for name in room.may_include:
                wrong += [f"{room.folder} (floor {room.floor}) may include {name}, but {other.folder} is on floor "
                          f"{other.floor}" for other in self.rooms.values()
                          if covers(name, other.folder) and floor_number(other.floor) >= floor_number(room.floor)]
        self.check_none(wrong)
        self.assertEqual(self.rooms[EVERYWHERE].may_include, [])

    def test_each_row_has_sources_and_uses_what_it_may_include(self):
        used = collections.defaultdict(set)
        used_headers = collections.defaultdict(set)
        for path, text in self.sources.items():
            for found in includes_of(path, text):
                (used if found.is_quoted else used_headers)[folder_of(path)].add(
                    folder_of(found.header) if found.is_quoted else found.header)
        folders = {folder_of(path) for path in self.sources}
        wrong = [f"{folder} has no sources" for folder in self.rooms if folder not in folders]
        for row in {room.row: [other for other in self.rooms.values() if other.row == room.row]
                    for room in self.rooms.values()}.values():
            targets = set().union(*(used[room.folder] for room in row))
            wrong += [f"{row[0].folder} may include {name}, and does not" for name in row[0].may_include
                      if not any(covers(name, target) for target in targets)]
        for header, names in self.headers.items():
            wrong += [f"{header} may be included in {name}, and is not" for name in names
                      if not any(covers(name, folder) and any(covers(header, target) for target in targets)
                                 for folder, targets in used_headers.items())]
        self.check_none(wrong)

    def test_what_is_shipped_stands_on_nothing_that_is_not(self):
        for room in self.rooms.values():
            top = room.folder.partition("/")[0]
            for name in room.may_include:
                if top not in ("tests", "bench"):
                    self.assertNotIn(name.partition("/")[0], ("tests", "bench"), room.folder)
                if top not in ("tests", "bench", "softnic"):
                    self.assertNotEqual(name.partition("/")[0], "softnic", room.folder)
                if top == "tests":
                    self.assertNotEqual(name.partition("/")[0], "bench", room.folder)

    # The proof that the first test can fail, for each pair of folders.
    def test_each_folder_is_stopped_at_each_folder_that_it_may_not_include(self):
        for here in self.rooms.values():
            forbidden = [other for other in self.rooms if other not in (here.folder, EVERYWHERE) and
                         not any(covers(name, other) for name in here.may_include)]
            path = f"{here.folder}/probe.h"
            text = "".join(f'#include "{other}/probe.h"\n' for other in forbidden)
            said = complaints(self.rooms, self.headers, {path: text})
            expected = [f"{path}:{line} includes {other}/probe.h: floor {here.floor} may not include floor "
                        f"{self.rooms[other].floor} (allowed: {', '.join(here.may_include) or 'nothing'})"
                        for line, other in enumerate(forbidden, 1)]
            self.assertEqual(said, expected)

    def test_each_header_is_stopped_outside_the_folders_that_use_it(self):
        for header, used_in in self.headers.items():
            for folder in self.rooms:
                example = header.replace("*", "probe.h")
                said = complaints(self.rooms, self.headers, {f"{folder}/probe.h": f"#include <{example}>\n"})
                is_allowed = any(covers(name, folder) for name in used_in)
                self.assertEqual(len(said), 0 if is_allowed else 1, (header, folder))

    def test_unknown_folders_and_headers_are_named(self):
        said = complaints(self.rooms, self.headers, {
            "plugin/attic/a.h": "",
            "plugin/wire/b.h": '#include "plugin/attic/a.h"\n  #  include <boost/any.hpp>\n#include <vector>\n'
                               '#include "c.h"\n',
        })
        self.assertEqual(said, [
            "plugin/attic: the table in docs/floors.md does not have this folder",
            "plugin/wire/b.h:1 includes plugin/attic/a.h: the table in docs/floors.md has no folder plugin/attic",
            "plugin/wire/b.h:2 includes <boost/any.hpp>: the table in docs/floors.md does not have this header",
        ])


if __name__ == "__main__":
    unittest.main()
