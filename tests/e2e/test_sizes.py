#!/usr/bin/env python3
"""Many files and big ones: what is asked of the daemon, read and kept grows with the work, not with
the store.

  MEMOIRFS_E2E_FILES=<n>  of the store of many files
  MEMOIRFS_E2E_MIB=<n>    of the dense file; scripts/nightly takes a million and 16 GiB
"""

import hashlib
import os
import shutil
import subprocess
import time

import harness

FILES = harness.count("FILES", 20_000)
DENSE = harness.count("MIB", 256) << 20
FOLDER = 1000  # files in one
SPARSE = 16 << 30
PIECE = 1 << 20

RESIDENT = 150 << 20  # of a daemon that does nothing but serve many files
# What opening may read: an index of up to 8 MiB once, and what each store has.
OPENING = 24 << 20


def report(text):
    print(f"sizes: {text}", flush=True)


class SizesCase(harness.ProductCase):
    @staticmethod
    def resident(pid):
        """The most that the process ever had, in bytes."""
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            (line,) = [line for line in file if line.startswith("VmHWM:")]
        return int(line.split()[1]) << 10

    @staticmethod
    def bytes_read(pid):
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            return int(file.readline().removeprefix("rchar:"))

    def requests(self, store):
        (mount,) = store.status()["mounts"]
        return sum(facts["count"] for facts in mount["requests"].values())

    def timed(self, what, work):
        started = time.monotonic()
        result = work()
        report(f"{what}: {time.monotonic() - started:.2f} s")
        return result


class Many(SizesCase):
    def make(self, memory):
        for number in range(FILES):
            folder = memory / f"{number // FOLDER:04}"
            if number % FOLDER == 0:
                folder.mkdir()
            (folder / f"{number}.md").write_bytes(b"%d\n" % number)

    def run_on(self, store, what, words):
        before = self.requests(store)
        done = self.timed(f"{what} of {FILES} files", lambda: subprocess.run(
            words, check=True, capture_output=True, timeout=harness.TIME_LIMIT))
        return done.stdout, self.requests(store) - before

    def test_many_files(self):
        store = self.new_store(harness.AGENT)
        memory = store.mount_agent()
        self.timed(f"making {FILES} files", lambda: self.make(memory))
        store.umount()

        memory = self.timed("mount", store.mount_agent)
        pid = store.pid()
        read = self.bytes_read(pid)
        report(f"opening read {read >> 10} KiB")
        self.assertLess(read, OPENING)
        found, asked = self.run_on(store, "find", ["find", memory, "-type", "f", "-size", "-9c"])
        self.assertEqual(FILES, found.count(b"\n"))
        report(f"find: {asked} requests")
        self.assertLess(asked, FILES // 2, "a listing brings the attributes of its names along")
        last = memory / f"{(FILES - 1) // FOLDER:04}" / f"{FILES - 1}.md"
        self.assertEqual(b"%d\n" % (FILES - 1), last.read_bytes())
        _, asked = self.run_on(store, "rm -rf", ["rm", "-rf", *map(str, memory.glob("0*"))])
        report(f"rm -rf: {asked} requests")
        self.assertLess(asked, 3 * FILES)
        self.assertEqual([], list(memory.glob("0*")))
        report(f"resident: {self.resident(pid) >> 20} MiB")
        self.assertLess(self.resident(pid), RESIDENT)
        store.umount()
        self.timed("verify", lambda: store.command("verify", timeout=harness.TIME_LIMIT))


class Big(SizesCase):
    def test_a_sparse_file(self):
        """16 GiB, three pieces of them written."""
        store = self.new_store(harness.AGENT)
        memory = store.mount_agent()
        places = (0, SPARSE // 2 + 12_345, SPARSE - 7)
        with open(memory / "sparse", "wb") as file:
            file.truncate(SPARSE)
            for place in places:
                file.seek(place)
                file.write(b"written")
        for _ in range(2):
            with open(memory / "sparse", "rb") as file:
                fd = file.fileno()
                self.assertEqual(SPARSE, os.fstat(fd).st_size)
                for place in places:
                    self.assertEqual(b"written", os.pread(fd, 7, place))
                self.assertEqual(bytes(100), os.pread(fd, 100, SPARSE // 4))
                data = os.lseek(fd, SPARSE // 4, os.SEEK_DATA)
                self.assertTrue(places[1] - PIECE < data <= places[1], data)
                hole = os.lseek(fd, places[1], os.SEEK_HOLE)
                self.assertTrue(places[1] < hole < places[1] + PIECE, hole)
            store.umount()
            memory = store.mount_agent()
        self.assertLess(sum(path.stat().st_blocks * 512 for path in store.path.rglob("*")), 256 << 20)
        report(f"16 GiB sparse, resident: {self.resident(store.pid()) >> 20} MiB")
        self.assertLess(self.resident(store.pid()), RESIDENT)

    def write_noise(self, path):
        digest = hashlib.sha256()
        with open(path, "wb") as file:
            for number in range(DENSE // PIECE):
                # Noise that differs from piece to piece, at the price of a copy.
                piece = number.to_bytes(8, "big") + self.noise
                digest.update(piece)
                file.write(piece)
        return digest.hexdigest()

    @staticmethod
    def read_back(path):
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while piece := file.read(PIECE):
                digest.update(piece)
        return digest.hexdigest()

    def test_a_dense_file(self):
        room = shutil.disk_usage(harness.tempfile.gettempdir()).free
        if room < 2 * DENSE + (1 << 30):
            self.skipTest(f"{DENSE >> 20} MiB twice do not fit on the disk")
        self.noise = os.urandom(PIECE - 8)
        store = self.new_store(harness.AGENT)
        memory = store.mount_agent()
        written = self.timed(f"writing {DENSE >> 20} MiB",
                             lambda: self.write_noise(memory / "dense"))
        report(f"writer's daemon, resident: {self.resident(store.pid()) >> 20} MiB")
        store.umount()
        memory = store.mount_agent()
        read = self.timed(f"reading {DENSE >> 20} MiB", lambda: self.read_back(memory / "dense"))
        self.assertEqual(written, read)
        report(f"reader's daemon, resident: {self.resident(store.pid()) >> 20} MiB")
        # The cache of verified objects comes on top of what serving takes.
        self.assertLess(self.resident(store.pid()), 2 * RESIDENT)


if __name__ == "__main__":
    harness.main()
