#!/usr/bin/env python3
"""Verification, the chain for people and for other tools, and kept versions."""

import hashlib
import json
import os
import subprocess
import sys
import unittest

import harness

VERIFIER = harness.PROJECT / "tests" / "interop" / "verify_chain.py"


class VerifyCase(harness.ProductCase):
    def worked_store(self):
        """A store in which each kind of change has happened; unmounted."""
        store = self.new_store("a", "b")
        memory = store.mount_agent("a")
        (memory / "MEMORY.md").write_text("first\n")
        (memory / "MEMORY.md").write_text("둘째 🧠\n")
        with open(memory / "MEMORY.md", "a") as file:
            file.write("third\n")
        (memory / "폴더").mkdir()
        (memory / "폴더/big").write_bytes(harness.noise(700_000))
        os.rename(memory / "폴더/big", memory / "big")
        os.link(memory / "big", memory / "hard")
        os.symlink("big", memory / "link")
        os.setxattr(memory / "big", "user.note", b"\xff")
        os.chmod(memory / "big", 0o600)
        os.unlink(memory / "hard")
        os.rmdir(memory / "폴더")
        store.umount()
        return store

    def segments(self, store, agent):
        folder = {a["name"]: a["chain"] for a in store.status()["agents"]}[agent]
        return sorted((store.path / folder).glob("*.jsonl"), key=lambda path: int(path.stem))

    def records(self, store, agent):
        text = b"".join(path.read_bytes() for path in self.segments(store, agent))
        return [json.loads(line) for line in text.splitlines()]


class Verify(VerifyCase):
    def test_a_clean_store_verifies(self):
        store = self.worked_store()
        for options in ([], ["--agent", "a"], ["--level", "heads"], ["--level", "chains"],
                        ["--level", "index"], ["--level", "objects"]):
            with self.subTest(options=options):
                store.command("verify", *options)
        report = json.loads(store.command("verify", "--json").stdout)
        self.assertEqual([], report["problems"])
        self.assertGreater(report["records"], 10)

    def test_a_mounted_store_verifies(self):
        store = self.worked_store()
        memory = store.mount_agent("a")
        (memory / "new").write_text("not synced yet")
        store.command("verify")
        self.assertEqual("not synced yet", (memory / "new").read_text())

    def test_nothing_to_verify(self):
        store = self.new_store()
        store.command("verify", expect=3)

    def test_an_unknown_agent_is_an_error(self):
        store = self.new_store("a")
        done = store.command("verify", "--agent", "nobody", expect=None)
        self.assertNotIn(done.returncode, (0, 3))
        self.assertIn(b"nobody", done.stderr)

    def test_an_edited_record_is_found(self):
        store = self.worked_store()
        segment = self.segments(store, "a")[-1]
        text = segment.read_bytes()
        self.assertIn(b"MEMORY.md", text)
        segment.write_bytes(text.replace(b"MEMORY.md", b"MEMORY.mx", 1))
        done = store.command("verify", expect=1)
        self.assertIn(b"a", done.stdout + done.stderr)
        store.command("verify", "--agent", "b")

    def test_each_kind_of_forgery_is_found(self):
        forgeries = {"dropped": lambda lines: lines[:3] + lines[4:],
                     "swapped": lambda lines: lines[:3] + [lines[4], lines[3]] + lines[5:],
                     "duplicated": lambda lines: lines[:4] + lines[3:],
                     "not JSON": lambda lines: lines[:3] + [b"{broken\n"] + lines[4:],
                     "emptied": lambda lines: []}
        store = self.worked_store()
        segment = self.segments(store, "a")[0]
        lines = segment.read_bytes().splitlines(keepends=True)
        self.assertGreater(len(lines), 8)
        for name, forge in forgeries.items():
            with self.subTest(forgery=name):
                segment.write_bytes(b"".join(forge(lines)))
                store.command("verify", "--level", "chains", expect=1)
                segment.write_bytes(b"".join(lines))
                store.command("verify")

    def test_any_number_of_problems_of_a_mounted_store_is_told(self):
        store = self.new_store("a")
        store.mount()
        names = {f"{number}-{'x' * 240}" for number in range(30_000)}  # 10 MB of problems
        for name in names:
            (store.path / "packs" / name).touch()
        report = json.loads(store.command("verify", "--json", expect=1).stdout)
        self.assertEqual("broken", report["verdict"])
        self.assertEqual({f"packs/{name}" for name in names}, {p["where"] for p in report["problems"]})

    def rolled_back_store(self):
        """A store with an older state of itself in its place."""
        store = self.worked_store()
        old = store.scratch / "old"
        subprocess.run(["cp", "-a", "--sparse=always", store.path, old], check=True)
        memory = store.mount_agent("a")
        (memory / "later").write_text("gone after the rollback")
        store.umount()
        new = store.scratch / "new"
        os.rename(store.path, new)
        os.rename(old, store.path)
        return store

    def test_a_rolled_back_store_is_told(self):
        self.rolled_back_store().command("verify", expect=1)

    @unittest.skipUnless(harness.is_root(), "a bind mount needs root")
    def test_a_rolled_back_store_is_told_through_a_bind_mount(self):
        store = self.rolled_back_store()
        alias = store.folder("alias")
        script = 'mount --bind "$1" "$2" && exec "$3" verify --store "$2"'
        words = ["unshare", "--mount", "sh", "-c", script, "sh", store.path, alias, harness.binary()]
        done = subprocess.run(words, env=store.environment(), capture_output=True, timeout=60,
                              check=False)
        self.assertEqual(1, done.returncode, done.stderr)
        self.assertIn(b"known outside the store", done.stdout + done.stderr)


class Chain(VerifyCase):
    def test_records_are_linked_and_hashed(self):
        store = self.worked_store()
        records = self.records(store, "a")
        previous = "0" * 64
        for record in records:
            self.assertEqual(previous, record["integrity"]["prev_hash"])
            declared = record["integrity"].pop("hash")
            plain = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            self.assertEqual(hashlib.sha256(plain.encode()).hexdigest(), declared)
            previous = declared
        head = {a["name"]: a for a in store.status()["agents"]}["a"]
        self.assertEqual(previous, head["hash"])
        self.assertEqual(len(records), head["seq"])

    def test_lines_are_plain_ascii(self):
        store = self.worked_store()
        for path in self.segments(store, "a"):
            self.assertTrue(path.read_bytes().isascii())
            self.assertTrue(path.read_bytes().endswith(b"\n"))

    def test_each_change_is_recorded_with_its_actor(self):
        records = self.records(self.worked_store(), "a")
        done = {record["action"].get("tool", "").removeprefix("memoirfs.") for record in records}
        self.assertLessEqual({"genesis", "session", "put", "mkdir", "rename", "link", "symlink",
                              "xattr", "attr", "unlink", "rmdir"}, done)
        puts = [record for record in records if record["action"].get("tool") == "memoirfs.put"]
        self.assertEqual("sha256:" + hashlib.sha256("둘째 🧠\n".encode()).hexdigest(),
                         puts[1]["action"]["input"]["hash"])
        self.assertIn(str(os.getuid()), json.dumps(puts[0]["fs"]["actor"]))

    def test_an_independent_verifier_accepts_the_chain(self):
        if not VERIFIER.exists():
            self.skipTest("tests/interop/verify_chain.py is not there")
        store = self.worked_store()
        for agent in ("a", "b"):
            paths = [str(path) for path in self.segments(store, agent)]
            done = subprocess.run([sys.executable, str(VERIFIER), *paths], capture_output=True)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_an_independent_verifier_refuses_a_changed_chain(self):
        if not VERIFIER.exists():
            self.skipTest("tests/interop/verify_chain.py is not there")
        store = self.worked_store()
        text = b"".join(path.read_bytes() for path in self.segments(store, "a"))
        forged = store.scratch / "forged.jsonl"
        forged.write_bytes(text.replace(b"MEMORY.md", b"MEMORY.mx", 1))
        done = subprocess.run([sys.executable, str(VERIFIER), str(forged)], capture_output=True)
        self.assertEqual(1, done.returncode)

    def test_the_chain_on_the_mount_is_the_chain_of_the_store(self):
        store = self.worked_store()
        point = store.mount("--agent", "a")
        (point / "memory/f").write_text("x")
        descriptor = os.open(point / "memory/f", os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
        shown = [json.loads(line) for line in (point / ".memoir/chain.jsonl").read_bytes().splitlines()]
        store.umount()
        self.assertEqual(shown, self.records(store, "a")[:len(shown)])
        self.assertGreater(len(shown), 10)

    def test_agents_have_chains_of_their_own(self):
        store = self.worked_store()
        self.assertNotIn("MEMORY.md", json.dumps(self.records(store, "b")))


class Versions(VerifyCase):
    def sequence_numbers(self, store, path):
        done = store.command("log", "a", path, "--json").stdout.decode()
        entries = [json.loads(line) for line in done.splitlines()] if done.startswith("{") \
            else json.loads(done)
        return [entry["fs"]["seq"] if "fs" in entry else entry["seq"] for entry in entries]

    def test_log_shows_what_happened(self):
        store = self.worked_store()
        everything = store.command("log", "a").stdout.decode()
        for text in ("MEMORY.md", "put", "rename", "폴더"):
            self.assertIn(text, everything)
        one = store.command("log", "a", "MEMORY.md").stdout.decode()
        self.assertIn("MEMORY.md", one)
        self.assertNotIn("mkdir", one)

    def test_cat_prints_the_newest_and_each_kept_version(self):
        store = self.worked_store()
        for mounted in (False, True):
            with self.subTest(mounted=mounted):
                if mounted:
                    store.mount()
                newest = store.command("cat", "a", "MEMORY.md").stdout.decode()
                self.assertEqual("둘째 🧠\nthird\n", newest)
                versions = [store.command("cat", "a", f"MEMORY.md@{seq}").stdout.decode()
                            for seq in self.sequence_numbers(store, "MEMORY.md")]
                self.assertEqual({"first\n", "둘째 🧠\n", newest}, set(versions) - {""})

    def test_cat_of_a_large_file(self):
        store = self.worked_store()
        self.assertTrue(harness.noise(700_000) == store.command("cat", "a", "big").stdout)

    def test_cat_of_what_does_not_exist(self):
        store = self.worked_store()
        for path in ("missing", "MEMORY.md@999999", "MEMORY.md/x", "../b/x"):
            done = store.command("cat", "a", path, expect=None)
            self.assertNotEqual(0, done.returncode, path)
            self.assertEqual(b"", done.stdout)
            self.assertTrue(done.stderr.strip())


if __name__ == "__main__":
    harness.main()
