#!/usr/bin/env python3
"""One flipped bit anywhere in a store: the written bytes come back, or an error. Never others.

A store with every kind of file in it is built once. For each flip a copy of it is damaged at one
place, and each file of the tree is read by `memoirfs cat`. Damage may cost at most the one file
whose bytes were hit (FORMAT: the store may be refused as a whole), and `verify` must then say so.
"""

import errno
import os
import random
import re
import shutil
import subprocess
import time
import unittest
from pathlib import Path

import harness

OFFSETS = harness.count("OFFSETS", 20)  # a kind; 0: every byte
SMALL = 256    # files up to this size are damaged at every byte
FOOTER = 4096  # the end of a pack that the footer's kind covers
WORKERS = 2


def copy_sparse(source, target):
    """A copy with holes where the source has zeros: journals are mostly that."""
    subprocess.run(["cp", "-a", "--sparse=always", str(source), str(target)], check=True)


def data_ranges(path):
    """The parts of a file that are not holes."""
    ranges, size, offset = [], path.stat().st_size, 0
    with open(path, "rb") as file:
        while offset < size:
            try:
                start = os.lseek(file.fileno(), offset, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:
                    break
                raise
            offset = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            ranges.append((start, min(offset, size)))
    return ranges


def flip(path, offset, bit):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ (1 << bit)]))


class Original:
    """The undamaged store and what its tree holds."""

    def __init__(self):
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.home = Path(harness.tempfile.mkdtemp(prefix="memoirfs-damage-", dir=base))
        self.files = {
            "sealed.md": b"in the first journal " * 10,
            "폴더/기억.md": "기억\n".encode() * 200,
            "medium.bin": harness.noise(20_000),
            "bulk.bin": harness.noise(5 << 20),
            "growing.log": b"".join(b"line %d\n" % number for number in range(30)),
        }
        store = harness.Store(scratch=self.home / "original-build")
        store.scratch.mkdir(exist_ok=True)
        self.build(store)
        self.scratch = self.home / "original"
        copy_sparse(store.scratch, self.scratch)
        store.close()

    def build(self, store):
        store.init(harness.AGENT)
        memory = store.mount_agent()
        (memory / "폴더").mkdir()
        self.write(memory, "sealed.md")
        for number in range(270):
            # Mostly zeros, so that copies of the sealed pack stay small.
            (memory / "filler").write_bytes(b"%d" % number + bytes(250_000))
        os.unlink(memory / "filler")
        harness.wait_until(lambda: list((store.path / "packs").glob("*.pack")),
                           "the full journal is sealed")
        for name in ("폴더/기억.md", "medium.bin", "bulk.bin"):
            self.write(memory, name)
        for number in range(30):
            with open(memory / "growing.log", "ab") as file:
                file.write(b"line %d\n" % number)
        store.umount()

    def write(self, memory, name):
        (memory / name).write_bytes(self.files[name])

    def kinds(self):
        """kind -> list of (path in the store, ranges that belong to it)."""
        kinds = {}
        store = self.scratch / "store"
        for path in sorted(store.rglob("*")):
            if not path.is_file():
                continue
            name = path.relative_to(store)
            for kind, ranges in self.kinds_of(path, name):
                kinds.setdefault(kind, []).append((name, ranges))
        return kinds

    @staticmethod
    def kinds_of(path, name):
        size, top = path.stat().st_size, name.parts[0]
        if top == "packs":
            kind = name.suffix[1:]
            body = [(start, min(end, size - FOOTER)) for start, end in data_ranges(path)
                    if start < size - FOOTER]
            return [(kind, body), (f"{kind} footer", [(max(0, size - FOOTER), size)])]
        if re.fullmatch(r"staging/spare-\d+", str(name)):
            assert size == 0, f"{name}: a spare inode that is not empty"
            top = "SPARE"
        known = {"journal": "journal", "chains": "segment", "index": "index", "FORMAT": "FORMAT",
                 "LOCK": "LOCK", "SPARE": "SPARE", "recall": "recall", "staging": "staging"}
        if top not in known:
            raise AssertionError(f"{name}: a kind of file that this test does not know")
        return [(known[top], data_ranges(path))]


class Damage(harness.ProductCase):
    original = None

    def setUp(self):
        super().setUp()
        if Damage.original is None:
            Damage.original = Original()
            Damage.all_kinds = Damage.original.kinds()

    @classmethod
    def tearDownClass(cls):
        if cls.original:
            shutil.rmtree(cls.original.home, ignore_errors=True)
            Damage.original = None

    def copy(self, name):
        """A copy of the original that may be damaged."""
        scratch = self.original.home / name
        copy_sparse(self.original.scratch, scratch)
        return harness.Store(scratch=scratch)

    # --- sampling -------------------------------------------------------------------------------
    def flips_of(self, kind):
        """(path, offset, bit): a sample of small files and one of the others; all with OFFSETS 0."""
        rng = harness.seeded(f"damage/{kind}")
        flips, large = [], []
        for name, ranges in self.all_kinds[kind]:
            size = sum(end - start for start, end in ranges)
            if size <= SMALL or OFFSETS == 0:
                flips += [(name, offset) for start, end in ranges for offset in range(start, end)]
            else:
                large.append((name, ranges, size))
        if OFFSETS and len(flips) > OFFSETS:
            flips = rng.sample(flips, OFFSETS)
        if large:
            weights = [size for _, _, size in large]
            for _ in range(max(OFFSETS, 1)):
                name, ranges, _ = rng.choices(large, weights)[0]
                start, end = rng.choices(ranges, [end - start for start, end in ranges])[0]
                flips.append((name, rng.randrange(start, end)))
        return [(name, offset, rng.randrange(8)) for name, offset in flips]

    # --- judging --------------------------------------------------------------------------------
    def read_all(self, store, place):
        """The files that were refused; fails when other bytes came back."""
        refused = {}
        for name, expected in self.original.files.items():
            done = store.command("cat", harness.AGENT, name, expect=None)
            if done.returncode == 0:
                self.assertTrue(done.stdout == expected, f"{place}: OTHER BYTES for {name}")
                continue
            self.assertGreater(done.returncode, 0, f"{place}: cat {name} died of a signal")
            self.assertTrue(expected.startswith(done.stdout), f"{place}: OTHER BYTES for {name}")
            self.assertTrue(done.stderr.strip(), f"{place}: cat {name} failed without a word")
            refused[name] = done.stderr.decode(errors="replace").strip()
        return refused

    def judge(self, store, kind, place):
        refused = self.read_all(store, place)
        if not refused:
            return
        if kind == "FORMAT":
            self.assertEqual(len(self.original.files), len(refused), f"{place}: {refused}")
            return
        self.assertLessEqual(len(refused), 1, f"{place}: one flip cost several files: {refused}")
        done = store.command("verify", expect=None)
        said = (done.stdout + done.stderr).decode(errors="replace")
        self.assertEqual(1, done.returncode, f"{place}: {refused}, but verify says: {said}")
        name = place.split(" ")[0]
        self.assertTrue(any(word in said for word in [*refused, name, Path(name).name]),
                        f"{place}: verify names neither the file nor the place: {said}")

    def try_flips(self, kind, flips, worker):
        problems, refusals = [], 0
        for name, offset, bit in flips:
            place = f"{name} offset {offset} bit {bit}"
            store = self.copy(f"{kind.replace(' ', '-')}-{worker}")
            try:
                flip(store.path / name, offset, bit)
                self.judge(store, kind, place)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                problems.append(str(error))
            finally:
                store.close()
        if problems:
            raise AssertionError(f"{len(problems)} of {len(flips)} flips:\n" + "\n".join(problems[:20]))

    def damage(self, kind):
        self.assertIn(kind, self.all_kinds, "the store has no such file")
        flips = self.flips_of(kind)
        started = time.monotonic()
        harness.together(WORKERS, lambda n: self.try_flips(kind, flips[n::WORKERS], n))
        print(f"{kind}: {len(flips)} flips, {time.monotonic() - started:.1f} s", flush=True)

    # --- tests ----------------------------------------------------------------------------------
    def test_the_undamaged_store_reads(self):
        store = self.copy("undamaged")
        self.stores.append(store)
        self.assertEqual({}, self.read_all(store, "undamaged"))
        store.command("verify")

    def test_every_kind_of_file_is_covered(self):
        tested = {"journal", "pack", "pack footer", "bulk", "bulk footer", "segment", "index",
                  "FORMAT", "LOCK"}
        # SPARE and the spare inodes hold nothing: they are room on the disk.
        self.assertEqual(tested, set(self.all_kinds) - {"SPARE"})

    def test_flips_in_journals(self):
        self.damage("journal")

    def test_flips_in_packs(self):
        self.damage("pack")

    def test_flips_in_footers_of_packs(self):
        self.damage("pack footer")

    def test_flips_in_bulk_packs(self):
        self.damage("bulk")

    def test_flips_in_footers_of_bulk_packs(self):
        self.damage("bulk footer")

    def test_flips_in_chain_segments(self):
        self.damage("segment")

    def test_flips_in_the_index(self):
        self.damage("index")

    def test_flips_in_the_format_file(self):
        self.damage("FORMAT")

    def test_flips_in_the_lock_file(self):
        if "LOCK" not in self.all_kinds:
            self.skipTest("the lock file is empty")
        self.damage("LOCK")


class DamageSeenOnAMount(Damage):
    """What a user sees of it: EIO for just the file, the rest works, the log says which."""

    def find(self, store, content):
        for path in sorted(store.path.rglob("*")):
            if path.is_file() and path.parent.name in ("journal", "packs"):
                offset = path.read_bytes().find(content)
                if offset >= 0:
                    yield path, offset

    def damaged_mount(self, name):
        content = self.original.files[name][1000:1064]
        store = self.copy(f"mounted-{len(name)}")
        self.stores.append(store)
        places = list(self.find(store, content))
        self.assertTrue(places, "the content is not in the store as it was written")
        for path, offset in places:
            flip(path, offset, 3)
        return store, store.mount_agent()

    def check_mount(self, name):
        store, memory = self.damaged_mount(name)
        with self.assertRaises(OSError) as caught:
            (memory / name).read_bytes()
        self.assertEqual(errno.EIO, caught.exception.errno)
        for other, expected in self.original.files.items():
            if other != name:
                self.assertTrue((memory / other).read_bytes() == expected, other)
        self.assertIn(name, os.listdir(memory))
        self.assertEqual(len(self.original.files[name]), (memory / name).stat().st_size)
        self.assertGreaterEqual(len(store.status()["corrupt"]), 1)
        self.assertTrue(store.logs().strip(), "the log says nothing")
        done = store.command("verify", expect=1)
        self.assertIn(name, (done.stdout + done.stderr).decode())
        os.unlink(memory / name)
        (memory / name).write_bytes(b"written anew")
        self.assertEqual(b"written anew", (memory / name).read_bytes())

    def test_a_damaged_small_file(self):
        self.check_mount("medium.bin")

    def test_a_damaged_large_file(self):
        self.check_mount("bulk.bin")

    def test_an_intact_part_of_a_damaged_large_file_reads(self):
        store, memory = self.damaged_mount("bulk.bin")
        with open(memory / "bulk.bin", "rb") as file:
            file.seek(3 << 20)
            self.assertTrue(self.original.files["bulk.bin"][3 << 20:4 << 20] == file.read(1 << 20))


# The tests of the base class run once, under its own name.
for _name in [name for name in vars(Damage) if name.startswith("test_")]:
    setattr(DamageSeenOnAMount, _name, None)

if __name__ == "__main__":
    harness.main()
