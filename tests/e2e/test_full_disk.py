#!/usr/bin/env python3
"""A full disk below the store: it is reported, loses nothing that was acknowledged, can be cleaned."""

import errno
import os
import signal
import subprocess
import unittest

import harness

DISK = 240 << 20


@unittest.skipUnless(harness.is_root(), "needs root to mount a small tmpfs")
class SmallDisk(harness.ProductCase):
    """A store that is alone on a disk of its own, and mounted."""

    limits = f"size={DISK}"

    def setUp(self):
        super().setUp()
        self.store = harness.Store()
        self.disk = self.store.scratch / "disk"
        self.disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{self.limits},mode=700", "memoirfs-test",
                        self.disk], check=True)
        # Run last first: the store is closed before its disk goes.
        self.addCleanup(self.take_away)
        self.store.path = self.disk / "store"
        self.store.init(harness.AGENT)
        self.memory = self.store.mount_agent()

    def take_away(self):
        try:
            self.store.umount_all()
        finally:
            self.store.abort()
            subprocess.run(["umount", "-l", self.disk], check=True)
            self.store.close()

    def save(self, name, data):
        """Acknowledged when this returns; a write, fsync or close that fails raises."""
        fd = os.open(self.memory / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view):]
            os.fsync(fd)
        finally:
            os.close(fd)

    def check(self, saved):
        for name, data in saved.items():
            self.assertTrue(data == (self.memory / name).read_bytes(), f"{name} has other bytes")

    def remount(self):
        self.store.umount()
        self.memory = self.store.mount_agent()


class FullDisk(SmallDisk):
    def fill(self, size):
        """Writes files until the disk is full; returns what was acknowledged."""
        saved = {}
        for number in range(DISK // size + 10):
            data = harness.noise(size, f"fill{number}")
            try:
                self.save(f"fill{number}", data)
            except OSError as error:
                self.assertIn(error.errno, (errno.ENOSPC, errno.EDQUOT), os.strerror(error.errno))
                return saved
            saved[f"fill{number}"] = data
        self.fail("the disk never got full")

    def run_full(self, size):
        (self.memory / "before").write_bytes(b"saved before")
        saved = {**self.fill(size), "before": b"saved before"}
        self.assertGreater(len(saved), 3)
        self.check(saved)
        victims = list(saved)[:3]
        for name in victims:
            os.unlink(self.memory / name)
            del saved[name]
        os.listdir(self.memory)
        self.remount()
        self.check(saved)
        for name in victims:
            self.assertFalse((self.memory / name).exists())
        self.store.command("verify")

    def test_full_of_files_of_200_kilobytes(self):
        self.run_full(200_000)

    def test_full_of_files_of_6_megabytes(self):
        self.run_full(6 << 20)

    def test_one_file_larger_than_the_disk(self):
        (self.memory / "before").write_bytes(b"saved before")
        with self.assertRaises(OSError) as caught:
            self.save("huge", bytes(1000) + harness.noise(DISK + (10 << 20)))
        self.assertIn(caught.exception.errno, (errno.ENOSPC, errno.EDQUOT))
        self.check({"before": b"saved before"})
        os.unlink(self.memory / "huge")
        self.remount()
        self.check({"before": b"saved before"})
        (self.memory / "after").write_bytes(b"room again")
        self.check({"after": b"room again"})

    def use_up(self, name):
        """A file beside the store that takes what room there is; returns its path."""
        path = self.disk / name
        with open(path, "wb", buffering=0) as file:
            try:
                while file.write(bytes(1 << 20)):
                    pass
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
        return path

    def checkpoint(self):
        """What an unmounting does: everything is written out, as far as there is room."""
        self.store.umount(self.store.mount("--agent", harness.AGENT))

    def test_room_that_comes_back_is_used_without_a_remount(self):
        ballast = self.disk / "ballast"
        ballast.write_bytes(bytes(60 << 20))
        (self.memory / "before").write_bytes(b"saved before")
        saved = {**self.fill(200_000), "before": b"saved before"}
        hogs = []
        for number in range(3):
            hogs.append(self.use_up(f"hog{number}"))
            for name in list(saved)[:5]:
                if name != "before":
                    os.unlink(self.memory / name)
                    del saved[name]
            self.checkpoint()  # gives the spare space back, the first time
        self.check(saved)
        for hog in hogs:
            hog.unlink()
        big = harness.noise(9 << 20, "big")
        with self.assertRaises(OSError) as caught:
            self.save("big", big)
        self.assertIn(caught.exception.errno, (errno.ENOSPC, errno.EDQUOT))
        ballast.unlink()
        pid = self.store.pid()
        self.save("big", big)
        for number in range(100):
            saved[f"after{number}"] = harness.noise(50_000, f"after{number}")
            self.save(f"after{number}", saved[f"after{number}"])
        saved["big"] = big
        os.rename(self.memory / "after0", self.memory / "moved")
        saved["moved"] = saved.pop("after0")
        os.unlink(self.memory / "before")
        del saved["before"]
        self.check(saved)
        self.store.command("verify")
        self.assertEqual(self.store.pid(), pid)
        self.assertFalse(self.store.status()["read_only"])
        self.remount()
        self.check(saved)
        self.store.command("verify")

    def test_statfs_tells_of_the_disk(self):
        facts = os.statvfs(self.memory)
        self.assertLessEqual(facts.f_bavail * facts.f_frsize, DISK)
        self.assertLessEqual(facts.f_blocks * facts.f_frsize, DISK)


class Supervised(SmallDisk):
    """An orderly end that cannot save: the mount goes, nothing is mounted again, and status 1 says so."""

    def setUp(self):
        super().setUp()
        self.store.umount()
        self.point = self.store.folder()
        words = [harness.binary(), "supervise", "--store", self.store.path, self.point]
        self.process = subprocess.Popen(words, env=self.store.environment(), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.process.kill)
        self.store.points.append(self.point)
        self.assertIn(b"Mounted", self.process.stdout.readline())
        self.memory = self.point / harness.AGENT / "memory"
        self.save("before", b"saved before")

    def leave_something_unsaved(self):
        with self.assertRaises(OSError) as caught:
            self.save("huge", harness.noise(DISK + (10 << 20)))
        self.assertEqual(errno.ENOSPC, caught.exception.errno)

    def check_end(self):
        said, log = self.process.communicate(timeout=60)
        self.assertEqual(1, self.process.returncode, log)
        self.assertEqual(b"", said, "it mounted again")
        self.assertIn(b"error daemon.stop", log)
        self.assertFalse(harness.is_mounted(self.point))
        self.store.forget(self.point)
        self.memory = self.store.mount_agent()
        self.check({"before": b"saved before"})
        self.store.command("verify")

    def test_umount_ends_it(self):
        self.leave_something_unsaved()
        self.store.command("umount", self.point)
        self.check_end()

    def test_a_signal_ends_it(self):
        self.leave_something_unsaved()
        self.process.send_signal(signal.SIGTERM)
        self.check_end()


class NoInodes(SmallDisk):
    """Room, but no new file can be made on the disk below."""

    limits = f"size={4 * DISK},nr_inodes=400"

    def use_up(self):
        """Empty files beside the store, until no more can be made; returns their paths."""
        hogs = []
        while True:
            path = self.disk / f"hog-{len(hogs)}"
            try:
                path.touch()
            except OSError as error:
                self.assertEqual(error.errno, errno.ENOSPC)
                return hogs
            hogs.append(path)

    def try_to_save(self, saved, name, data):
        """Saves, or is refused for want of room; returns whether it was saved."""
        try:
            self.save(name, data)
        except OSError as error:
            self.assertEqual(error.errno, errno.ENOSPC, os.strerror(error.errno))
            return False
        saved[name] = data
        return True

    def test_nothing_is_lost_and_it_recovers(self):
        saved = {}
        for number in range(40):
            self.assertTrue(self.try_to_save(saved, f"before-{number}", harness.noise(20_000, number)))
        hogs = self.use_up()
        fine = [self.try_to_save(saved, f"large-{number}", harness.noise(6 << 20, f"l{number}"))
                for number in range(30)]
        self.assertIn(False, fine, "the shortage was never felt")
        for number in range(20):
            self.try_to_save(saved, f"small-{number}", harness.noise(3_000, f"s{number}"))
        for number in range(0, 40, 2):
            os.unlink(self.memory / f"before-{number}")
            del saved[f"before-{number}"]
        self.check(saved)
        for _ in range(4):  # the store closes and opens where no file can be made
            self.remount()
            self.check(saved)
        os.unlink(self.memory / "before-1")
        del saved["before-1"]
        for path in hogs:
            path.unlink()
        for number in range(3):
            self.save(f"after-{number}", harness.noise(6 << 20, f"a{number}"))
            saved[f"after-{number}"] = harness.noise(6 << 20, f"a{number}")
        self.check(saved)
        self.store.command("verify")
        self.remount()
        self.check(saved)
        self.assertFalse((self.memory / "before-1").exists())
        self.store.command("verify")


class NoDiskAtAll(harness.ProductCase):
    @unittest.skipUnless(harness.is_root(), "needs root to mount a small tmpfs")
    def test_init_without_room_says_so(self):
        store = harness.Store()
        disk = store.scratch / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "memoirfs-test", disk], check=True)
        self.addCleanup(store.close)
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=True)
        store.path = disk / "store"
        done = store.command("init", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertIn(b"space", done.stderr.lower())


if __name__ == "__main__":
    harness.main()
