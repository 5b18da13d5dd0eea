#!/usr/bin/env python3
"""Commands that only read leave a store as it is, byte for byte, whatever state it is in."""

import json
import os
import shutil
import subprocess
import unittest

import harness


class Reading(harness.ProductCase):
    def killed_store(self):
        """A store whose daemon was killed with changes that no index and no segment has yet."""
        store = self.new_store("a", "b")
        memory = store.mount_agent("a")
        (memory / "old").write_text("first\n")
        (memory / "big").write_bytes(harness.noise(700_000))
        store.umount()
        point = store.mount()
        (point / "a/memory/old").write_text("second\n")
        (point / "b/memory/new").write_text("only in the journal\n")
        store.kill()
        subprocess.run(["fusermount3", "-uz", str(point)], check=True)
        store.forget(point)
        return store

    def read_everything(self, store):
        self.assertEqual(2, len(json.loads(store.command("agent", "list", "--json").stdout)["agents"]))
        self.assertIsNone(store.status()["pid"])
        self.assertEqual(b"second\n", store.command("cat", "a", "old").stdout)
        self.assertEqual(b"only in the journal\n", store.command("cat", "b", "new").stdout)
        self.assertEqual(harness.noise(700_000), store.command("cat", "a", "big").stdout)
        self.assertIn(b"new", store.command("log", "b").stdout)
        store.command("verify")
        store.command("fsck")

    def test_a_killed_store_is_read_and_not_changed(self):
        store = self.killed_store()
        before = harness.picture(store.path)
        self.read_everything(store)
        self.assertEqual(before, harness.picture(store.path))
        # And it is opened afterwards as if nobody had looked.
        memory = store.mount_agent("b")
        self.assertEqual("only in the journal\n", (memory / "new").read_text())

    def test_a_clean_store_is_read_and_not_changed(self):
        store = self.killed_store()
        store.mount()
        store.umount()
        before = harness.picture(store.path)
        self.read_everything(store)
        self.assertEqual(before, harness.picture(store.path))

    def test_a_damaged_store_is_told_and_not_changed(self):
        store = self.killed_store()
        segment = max(store.path.glob("chains/*/*.jsonl"), key=lambda path: path.stat().st_size)
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        before = harness.picture(store.path)
        store.command("verify", expect=1)
        store.command("fsck", expect=1)
        self.assertEqual(before, harness.picture(store.path))

    @unittest.skipUnless(harness.is_root(), "mounts a folder read-only")
    def test_a_store_that_nobody_may_write_is_read(self):
        store = self.killed_store()
        subprocess.run(["mount", "--bind", str(store.path), str(store.path)], check=True)
        self.addCleanup(subprocess.run, ["umount", str(store.path)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(store.path)], check=True)
        self.read_everything(store)
        refused = store.command("agent", "add", "c", expect=1)
        self.assertIn(b"Read-only file system", refused.stderr)

    def test_readers_do_not_exclude_each_other(self):
        store = self.killed_store()
        harness.together(4, lambda _: store.command("verify"))

    def test_nothing_is_left_in_the_temporary_folder(self):
        store = self.killed_store()
        folder = store.scratch / "tmp"
        folder.mkdir()
        os.environ["TMPDIR"] = str(folder)
        self.addCleanup(os.environ.pop, "TMPDIR")
        store.command("verify")
        self.assertEqual([], list(folder.iterdir()))
        shutil.rmtree(folder)
        missing = store.command("cat", "a", "old", expect=1)
        self.assertIn(str(folder).encode(), missing.stderr)


if __name__ == "__main__":
    harness.main()
