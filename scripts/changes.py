# SPDX-License-Identifier: Apache-2.0
"""Which files changed, and whose turn it is where each commit checks only a part.

  changes.py files                 the files that changed, the newest change first
  changes.py turn                  the number of this commit, by which parts take turns
  changes.py sources EVERY MOST    of the sources on standard input those that this commit reads: at
                                   most so many that changed or include a header that did, the newest
                                   change first, and of all one EVERYth

The turn is the number of commits behind HEAD, so that N parts have all had their turn after N
commits. The Ns in use are prime numbers: whoever tests only every second or every tenth commit comes
round to all parts, too. A shallow clone does not know the number and takes the commit's hash.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What counts as changed where HEAD is not ahead of the main branch: the files of so many commits.
NEWEST_COMMITS = 16


def git(*words):
    """What git prints, or None where git knows nothing."""
    done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def turn():
    if git("rev-parse", "--is-shallow-repository") == "true":
        return int(git("rev-parse", "HEAD"), 16)
    return int(git("rev-list", "--count", "HEAD") or 0)


def is_due(index, every):
    """Whether part `index` of `every` parts has its turn at this commit."""
    return index % every == turn() % every


def merge_base():
    """The commit at which the main branch was left; HEAD where it was not."""
    if "BEELINE_CHANGED_SINCE" in os.environ:
        return os.environ["BEELINE_CHANGED_SINCE"]
    head = git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        common = git("merge-base", "HEAD", branch)
        if common and common != head:
            return common
    return "HEAD"


def changed_since(base):
    """Relative to the root, the newest first, those that were deleted left out."""
    names = (git("diff", "--name-only", "HEAD") or "").splitlines()
    names += (git("ls-files", "--others", "--exclude-standard") or "").splitlines()
    names += (git("log", "--format=", "--name-only", f"{base}..HEAD") or "").splitlines()
    return [name for name in dict.fromkeys(names) if name and (ROOT / name).exists()]


def changed_on_branch():
    """The files that this branch changed. On the main branch: none."""
    return changed_since(merge_base())


def changed_files():
    """The files that this branch changed. On the main branch: the newest commits."""
    base = merge_base()
    return changed_since(f"HEAD~{NEWEST_COMMITS}" if base == "HEAD" else base)


def touched_sources(sources):
    """Those that changed, then the users of headers that did."""
    changed = changed_files()
    headers = {f'#include "{name}"' for name in changed if name.endswith(".h")}

    def uses_one(source):
        lines = (ROOT / source).read_text(encoding="utf-8").splitlines()
        return any(line.startswith("#include") and line.rstrip() in headers for line in lines)

    known = set(sources)
    first = [name for name in changed if name in known]
    return first + [name for name in sources if name not in first and uses_one(name)]


def sources_to_read(sources, every, most):
    touched = touched_sources(sources)
    due = [name for index, name in enumerate(sources) if is_due(index, every)]
    return list(dict.fromkeys(touched[:most] + due)), max(0, len(touched) - most)


def main():
    if sys.argv[1:2] == ["sources"]:
        every, most = map(int, sys.argv[2:])
        chosen, dropped = sources_to_read(sys.stdin.read().split(), every, most)
        print("\n".join(chosen))
        if dropped:
            print(f"{dropped} more sources changed, or use a header that did; each has its turn "
                  f"within {every} commits", file=sys.stderr)
    elif sys.argv[1:] == ["files"]:
        print("\n".join(changed_files()))
    elif sys.argv[1:] == ["turn"]:
        print(turn())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
