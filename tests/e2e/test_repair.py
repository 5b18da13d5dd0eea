#!/usr/bin/env python3
"""What is wrong with a store, told and mended: fsck, lost files, and where nothing can be said."""

import json
import os
import shutil
import subprocess
import unittest

import harness

SECRET = b"the words that lie in a pack\n"


class Repair(harness.ProductCase):
    def stopped_store(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "good").write_bytes(b"the other file\n")
        (memory / "bad").write_bytes(SECRET)
        store.umount()
        return store

    def flip_in_journal(self, store):
        """Changes one byte of the content of `bad`, wherever it lies."""
        found = 0
        for path in [*(store.path / "journal").iterdir(), *(store.path / "packs").iterdir()]:
            data = path.read_bytes()
            at = data.find(SECRET)
            if at >= 0:
                found += 1
                with open(path, "r+b") as file:
                    file.seek(at)
                    file.write(bytes([data[at] ^ 1]))
        self.assertEqual(1, found)

    def test_a_sound_store_is_left_as_it_is(self):
        store = self.stopped_store()
        store.command("fsck")
        before = harness.picture(store.path)
        report = json.loads(store.command("fsck", "--repair", "--json").stdout)
        self.assertEqual([], report["problems"])
        self.assertEqual(before, harness.picture(store.path))

    def test_a_lost_index_is_found_and_rebuilt_once(self):
        store = self.stopped_store()
        shutil.rmtree(store.path / "index")
        (store.path / "index").mkdir(0o700)
        self.assertIn(b"index", store.command("verify", expect=1).stdout)
        report = json.loads(store.command("fsck", "--repair", "--json").stdout)
        self.assertEqual([], report["problems"])
        self.assertGreaterEqual(report["rebuilt_records"], 4)
        before = harness.picture(store.path)
        self.assertIn(b"Nothing to repair", store.command("fsck", "--repair").stdout)
        self.assertEqual(before, harness.picture(store.path))

    def test_lost_chains_and_index_are_found_and_mended(self):
        store = self.stopped_store()
        for path in [*(store.path / "chains").iterdir(), *(store.path / "index").iterdir()]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        said = store.command("verify", expect=1).stdout
        self.assertIn(b"chains/1", said)
        store.command("fsck", "--repair")
        store.command("verify")
        self.assertEqual(b"the other file\n", store.command("cat", "a", "good").stdout)

    def test_what_stays_broken_fails_a_repair(self):
        store = self.stopped_store()
        self.flip_in_journal(store)
        store.command("verify", expect=1)
        for _ in range(2):
            report = json.loads(store.command("fsck", "--repair", "--json", expect=1).stdout)
            self.assertNotEqual([], report["problems"])
        self.assertEqual(b"the other file\n", store.command("cat", "a", "good").stdout)
        store.command("cat", "a", "bad", expect=1)

    def test_a_chain_that_was_edited_is_kept_as_evidence(self):
        store = self.stopped_store()
        (segment,) = (store.path / "chains").glob("*/*.jsonl")
        edited = segment.read_bytes().replace(b"good", b"gold")
        segment.write_bytes(edited)
        said = store.command("fsck", "--repair")
        self.assertIn(b"quarantine/", said.stdout)
        (kept,) = (store.path / "quarantine").glob("chain-*.jsonl")
        self.assertEqual(edited, kept.read_bytes())
        store.command("verify")
        self.assertNotIn(b"gold", segment.read_bytes())
        recovered = [json.loads(line) for line in
                     store.command("log", "a", "--json").stdout.splitlines()]
        self.assertTrue(any(kept.name in json.dumps(record) for record in recovered))

    def test_a_missing_format_file(self):
        store = self.stopped_store()
        format_file = store.path / "FORMAT"
        text = format_file.read_bytes()
        format_file.unlink()
        before = sorted(os.listdir(store.path))
        for command in (("status",), ("init",), ("verify",), ("fsck", "--repair"),
                        ("mount", store.folder())):
            with self.subTest(command=command[0]):
                said = store.command(*command, expect=1).stderr
                self.assertIn(b"Restore", said)
        self.assertEqual(before, sorted(os.listdir(store.path)))
        format_file.write_bytes(text)
        store.command("verify")

    def test_an_interrupted_init_is_done_again(self):
        store = harness.Store()
        self.stores.append(store)
        for name in ("journal", "packs"):
            (store.path / name).mkdir(parents=True)
        store.init("a")
        self.assertEqual(1, len(store.status()["agents"]))

    def test_records_of_the_store_itself_name_nobody(self):
        store = self.stopped_store()
        lines = store.command("log", "a").stdout.decode().splitlines()
        self.assertTrue(lines[1].rstrip().endswith("genesis"), lines[1])
        self.assertIn(f"uid {os.getuid()}", lines[-1])
        self.assertIn(b"No record of nothing", store.command("log", "a", "nothing").stdout)

    def test_status_of_an_unknown_agent_is_an_error(self):
        self.assertIn(b"nobody", self.new_store("a").command("status", "--agent", "nobody",
                                                             expect=1).stderr)

    def test_errors_that_cannot_be_told(self):
        store = self.new_store("a")
        words = [harness.binary(), "verify", "--store", str(store.path), "--agent", "nobody"]
        with open("/dev/full", "wb") as full:
            for streams in ({"stderr": full}, {"stdout": full, "stderr": full},
                            {"preexec_fn": lambda: (os.close(1), os.close(2))}):
                done = subprocess.run(words, env=store.environment(), stdin=subprocess.DEVNULL,
                                      timeout=60, check=False, **streams)
                self.assertEqual(1, done.returncode)


if __name__ == "__main__":
    harness.main()
