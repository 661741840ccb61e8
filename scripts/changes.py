# SPDX-License-Identifier: Apache-2.0
"""Lists changed files, and selects the part of a check that this commit runs.

  changes.py files                 the files that changed, the newest change first
  changes.py turn                  the number of this commit, which selects the part
  changes.py subjects              the subjects of the branch's commits that break the rule for them
                                   (CONTRIBUTING.md), and how; on main, of the newest commits
  changes.py sources EVERY MOST    of the sources on standard input those that this commit checks: at
                                   most MOST that changed or include a changed header, the newest
                                   change first, and one of EVERY others

The turn is the number of commits up to HEAD, so N parts have all been checked after N commits. The Ns in
use are prime numbers, so all parts are also checked if only every second or every tenth commit is tested.
A shallow clone does not know the number and uses the hash of the commit.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# On the main branch, the files of the newest commits count as changed.
NEWEST_COMMITS = 16
MOST_SUBJECT_CHARACTERS = 72


def git(*words):
    """The output of git, or None if git fails or is not installed."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def turn():
    if git("rev-parse", "--is-shallow-repository") == "true":
        return int(git("rev-parse", "HEAD"), 16)
    return int(git("rev-list", "--count", "HEAD") or 0)


def is_due(index, every):
    """Whether this commit checks part `index` of `every` parts."""
    return index % every == turn() % every


def merge_base():
    """The commit at which this branch left the main branch; HEAD on the main branch."""
    if "BEELINE_CHANGED_SINCE" in os.environ:
        return os.environ["BEELINE_CHANGED_SINCE"]
    head = git("rev-parse", "HEAD")
    for branch in ("origin/main", "main"):
        common = git("merge-base", "HEAD", branch)
        if common and common != head:
            return common
    return "HEAD"


def changed_since(base):
    """The changed files, relative to the root, the newest change first, without deleted files."""
    names = (git("diff", "--name-only", "HEAD") or "").splitlines()
    names += (git("ls-files", "--others", "--exclude-standard") or "").splitlines()
    names += (git("log", "--format=", "--name-only", f"{base}..HEAD") or "").splitlines()
    return [name for name in dict.fromkeys(names) if name and (ROOT / name).exists()]


def changed_on_branch():
    """The files that this branch changed; none on the main branch."""
    return changed_since(merge_base())


def changed_files():
    """The files that this branch changed; on the main branch, those of the newest commits."""
    base = merge_base()
    return changed_since(f"HEAD~{NEWEST_COMMITS}" if base == "HEAD" else base)


def touched_sources(sources):
    """The changed sources, then the sources that include a changed header."""
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


def wrong_subjects():
    base = merge_base()
    commits = [f"-{NEWEST_COMMITS}"] if base == "HEAD" else [f"{base}..HEAD"]
    for subject in (git("log", "--no-merges", "--format=%s", *commits) or "").splitlines():
        if len(subject) > MOST_SUBJECT_CHARACTERS:
            yield f"{subject}: has {len(subject)} characters, more than {MOST_SUBJECT_CHARACTERS}"
        if not re.match(r"[A-Za-z][^:]*: \S", subject):
            yield f"{subject}: does not begin with its area, as in `transfer: poll in an irecv`"


def main():
    if sys.argv[1:2] == ["sources"]:
        every, most = map(int, sys.argv[2:])
        chosen, dropped = sources_to_read(sys.stdin.read().split(), every, most)
        print("\n".join(chosen))
        if dropped:
            print(f"{dropped} more sources changed or include a changed header; each is checked "
                  f"within {every} commits", file=sys.stderr)
    elif sys.argv[1:] == ["files"]:
        print("\n".join(changed_files()))
    elif sys.argv[1:] == ["subjects"]:
        print("\n".join(wrong_subjects()), end="")
    elif sys.argv[1:] == ["turn"]:
        print(turn())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
