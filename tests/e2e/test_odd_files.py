#!/usr/bin/env python3
"""A FIFO, a directory, a link or a device in place of a file of the store: an answer, at once.

Each file of a store and of its state directory is replaced in a copy. Each command then works, or
fails with a message that names the file; none waits, none reads without end. What was refused is as
good as before once the file is back.
"""

import os
import shutil
import stat
import subprocess
import unittest
from pathlib import Path

import harness

SECONDS = 20  # for one command; it takes a small part of one
WORKERS = 2
FILES = {"note.md": b"a note\n" * 10, "big.bin": harness.noise(5 << 20), "late.md": b"late\n"}
ABSENT = ("REBUILD", "STREAMS", "PURGE", "SPARE.tmp", "packs/x", "journal/x", "chains/x")
CONTENT = ("journal", "packs", "chains")
DERIVED = ("index/", "staging/", "SPARE")  # made anew


def copy_sparse(source, target):
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)


def place_link(path):
    os.symlink("/dev/zero", path)


def place_device(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))


ODD = {"fifo": os.mkfifo, "directory": os.mkdir, "link": place_link}
if harness.is_root():
    ODD["device"] = place_device


class Original:
    """A store with every kind of file in it, closed."""

    def __init__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.home = Path(harness.tempfile.mkdtemp(prefix="memoirfs-odd-", dir=base))
        self.scratch = self.home / "original"
        self.scratch.mkdir()
        store = harness.Store(scratch=self.scratch).init(harness.AGENT)
        memory = store.mount_agent()
        (memory / "note.md").write_bytes(FILES["note.md"])
        (memory / "big.bin").write_bytes(FILES["big.bin"])
        store.command("sync")
        store.kill()  # what the journal holds is carried into a pack
        store.abort()
        memory = store.mount_agent()
        (memory / "late.md").write_bytes(FILES["late.md"])
        store.umount()
        for pid in list(store.daemons):
            store.wait_for_end(pid)
        harness.Store.living.remove(store)

    def names(self):
        """The files, relative to the scratch folder. One spare inode stands for all of them."""
        places = [self.scratch / "store", self.scratch / "xdg-state"]
        found = [path for place in places for path in place.rglob("*") if path.is_file()]
        names = [str(path.relative_to(self.scratch)) for path in sorted(found)]
        return [name for name in names
                if not Path(name).name.startswith("spare-") or name.endswith("spare-0")]

    def one_of_the_index(self):
        """As names(), where one file of the index stands for all of them."""
        return [name for name in self.names() if "/index/" not in name or "CURRENT" in name]


class OddFiles(harness.ProductCase):
    original = None

    def setUp(self):
        super().setUp()
        if OddFiles.original is None:
            OddFiles.original = Original()

    @classmethod
    def tearDownClass(cls):
        if cls.original:
            shutil.rmtree(cls.original.home, ignore_errors=True)

    def copy(self, label):
        scratch = self.original.home / label.replace("/", "_")
        copy_sparse(self.original.scratch, scratch)
        store = harness.Store(scratch=scratch)
        self.stores.append(store)
        self.point_state_here(store)
        return store

    @staticmethod
    def point_state_here(store):
        """The state directory belongs to the copy: the path of the store is in it."""
        for owner in (store.scratch / "xdg-state").rglob("store-path"):
            owner.write_text(str(store.path))

    def run_all(self, store, place):
        """What was refused: command -> message. Reads must bring the right bytes.

        That verify tells of a damaged index is no refusal: whoever opens the store to write mends it.
        """
        refused = {}

        def run(*words):
            done = store.command(*words, expect=None, timeout=SECONDS)
            self.assertGreaterEqual(done.returncode, 0, f"{place}: {words} died of a signal")
            told = b"BROKEN  index" in done.stdout and "index" in place
            if done.returncode != 0 and not told:
                refused[" ".join(map(str, words))] = (done.stderr + done.stdout).decode()
            return done

        run("init")
        run("status")
        run("log", harness.AGENT)
        for name, content in FILES.items():
            done = run("cat", harness.AGENT, name)
            if done.returncode == 0:
                self.assertTrue(done.stdout == content, f"{place}: OTHER BYTES for {name}")
        run("verify")
        run("fsck")
        self.run_mount(store, run)
        return refused

    @staticmethod
    def run_mount(store, run):
        point = store.folder()
        if run("mount", point).returncode == 0:
            store.points.append(point)
            store.daemons.add(store.pid())
            store.umount(point)

    def check(self, name, place, place_odd):
        """Judges a copy in which `place_odd(path)` took the place of `name`; what was refused."""
        store = self.copy(f"{len(self.stores)}-{name}")
        odd = store.scratch / name
        kept = store.scratch / "kept"
        if odd.exists():
            os.rename(odd, kept)
        place_odd(odd)
        refused = self.run_all(store, place)
        for words, said in refused.items():
            self.assertIn(odd.name, said, f"{place}: {words} does not name it")
        if refused:
            self.remove_odd(odd)
            if kept.exists():
                os.rename(kept, odd)
            self.assertEqual({}, self.run_all(store, f"{place}, and is back"))
        return refused

    @staticmethod
    def remove_odd(odd):
        if odd.is_dir() and not odd.is_symlink():
            odd.rmdir()
        elif os.path.lexists(odd):
            odd.unlink()

    def check_all(self, kind, names):
        harness.together(WORKERS, lambda n: self.check_each(kind, names[n::WORKERS]))

    def check_each(self, kind, names):
        problems = []
        for name in names:
            place = f"{name} is a {kind}"
            try:
                refused = self.check(name, place, ODD[kind])
                if name.removeprefix("store/").startswith(DERIVED):
                    self.assertEqual({}, refused, place)
            except (AssertionError, OSError, subprocess.TimeoutExpired) as error:
                problems.append(f"{name}: {error}")
            self.drop_stores()
        if problems:
            raise AssertionError("\n".join(problems))

    def drop_stores(self):
        for store in self.stores:
            store.abort()
            store.close()
        self.stores = []

    def test_every_kind_of_file_is_there(self):
        names = self.original.names()
        for wanted in ("FORMAT", "LOCK", "SPARE", "CLEAN", ".log", ".pack", ".bulk", ".jsonl",
                       "CURRENT", "spare-0", "heads.json", "store-path", "daemon.log"):
            self.assertTrue(any(name.endswith(wanted) for name in names), f"{wanted}: {names}")

    def test_a_fifo(self):
        self.check_all("fifo", self.original.names() + [f"store/{name}" for name in ABSENT])

    def test_a_directory(self):
        self.check_all("directory", self.original.one_of_the_index())

    def test_a_link(self):
        self.check_all("link", self.original.one_of_the_index())

    def test_an_index_with_a_directory_in_it(self):
        """Whoever comes first rebuilds it; what somebody else put into that directory stays."""
        for first in ("verify", "mount"):
            store = self.copy(f"{first}-index")
            current = store.path / "index" / "CURRENT"
            current.unlink()
            current.mkdir()
            if first == "verify":
                said = store.command("verify", expect=1, timeout=SECONDS).stdout
                self.assertIn(b"BROKEN  index", said)
            store.mount()
            self.assertTrue(current.is_file())
            store.command("verify", timeout=SECONDS)
            store.umount()
        store = self.copy("full-directory")
        (store.path / "index" / "mine").mkdir()
        (store.path / "index" / "mine" / "text").write_bytes(b"mine")
        (store.path / "index" / "CURRENT").unlink()
        done = store.command("verify", expect=None, timeout=SECONDS)
        self.assertIn(b"index/mine is a directory with something in it", done.stderr)
        self.assertEqual(b"mine", (store.path / "index" / "mine" / "text").read_bytes())

    def test_directories_that_are_missing_or_odd(self):
        for name in ("journal", "packs", "chains", "index", "staging", "quarantine", "trash"):
            refused = self.check(f"store/{name}", f"{name} is missing", lambda path: None)
            if name in CONTENT:
                self.assertEqual(9, len(refused), f"{name} is missing: {refused}")
            else:
                self.assertEqual({}, refused, f"{name} is missing")
            for kind in ("fifo", "link"):
                refused = self.check(f"store/{name}", f"{name} is a {kind}", ODD[kind])
                self.assertEqual(9, len(refused), f"{name} is a {kind}: {refused}")
            self.drop_stores()

    @unittest.skipUnless("device" in ODD, "needs root")
    def test_a_device(self):
        self.check_all("device", ["store/FORMAT", "store/LOCK"])


if __name__ == "__main__":
    harness.main()
