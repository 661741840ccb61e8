#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`beeline bundle` beside a ring of four ranks: what the file contains, and what it does not.

Usage: bundle_test.py BEELINE SOFTNIC PLUGIN HANG_RANK"""

import json
import pathlib
import tarfile

from ring import RANKS, RingTest, main

SECRETS = {"BEELINE_RENDEZVOUS_TOKEN": "hush-token", "AWS_SECRET_ACCESS_KEY": "hush-key"}


class Bundle(RingTest):
    def test_what_it_contains(self):
        ring = self.ring(NCCL_DEBUG="INFO", **SECRETS)
        ring.wait_for_pages()
        elsewhere = ring.folder / "elsewhere"
        elsewhere.write_text("hush-file")
        (ring.folder / "pages" / "beeline-1-1").symlink_to(elsewhere)
        file = ring.folder / "bundle.tar.gz"
        status, text, error = ring.beeline("bundle", "--save", str(file))
        self.assertEqual((status, error), (0, ""))
        self.assertIn(f"wrote {file}", text)
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        folder = ring.folder / "unpacked"
        with tarfile.open(file) as packed:
            packed.extractall(folder)
        top, = folder.iterdir()
        self.assertIn((top / "CONTENTS.txt").read_text(), text)
        self.assertEqual(json.loads((top / "hang.json").read_text()), {"causes": [], "waits": []})
        for name in "top", "topo", "info", "doctor-record", "hang-snapshot":
            json.loads((top / f"{name}.json").read_text())
        self.assertIn("beeline_bytes_total", (top / "metrics.txt").read_text())
        for rank in ring.ranks:
            of_rank = top / "processes" / str(rank.pid)
            self.assertIn("NCCL_DEBUG=INFO\n", (of_rank / "environ").read_text())
            self.assertIn(f"{rank.pid} (hang_rank)", (of_rank / "threads").read_text())
        pages = [str(page) for page in (top / "pages").iterdir()]
        self.assertEqual(len(pages), RANKS)
        status, replayed, _ = ring.beeline("replay", *pages)
        self.assertEqual((status, replayed.count("last seen to run")), (0, RANKS))
        for path in filter(pathlib.Path.is_file, top.rglob("*")):
            self.assertNotIn(b"hush-", path.read_bytes(), path)

    def test_a_file_that_cannot_be_written(self):
        status, text, error = self.ring().beeline("bundle", "--save", "/none/bundle.tar.gz")
        self.assertEqual((status, text), (2, ""))
        self.assertRegex(error, "^beeline: /none/bundle.tar.gz cannot be written: tar: .*No such file")


if __name__ == "__main__":
    main()
