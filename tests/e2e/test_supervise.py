#!/usr/bin/env python3
"""`memoirfs supervise`: the mount comes back when its daemon dies, at the same place."""

import errno
import json
import os
import signal
import subprocess
import unittest

import harness


def read_or_none(path):
    try:
        return path.read_text()
    except OSError:
        return None


class Supervise(harness.ProductCase):
    def start(self, store, *options):
        point = store.folder()
        words = [harness.binary(), "supervise", "--store", str(store.path), str(point), *options]
        process = subprocess.Popen(words, env=store.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        store.points.append(point)
        self.assertIn("Mounted", process.stdout.readline())
        return process, point

    def test_it_mounts_again_after_each_death(self):
        store = self.new_store("a")
        process, point = self.start(store, "--agent", "a")
        note = point / "memory/note"
        for round_number in range(5):
            note.write_text(f"round {round_number}")
            held = os.open(note, os.O_RDONLY)
            store.kill()
            # Who opens the file again finds what was closed; an old descriptor is of no use.
            harness.wait_until(lambda: read_or_none(note) == f"round {round_number}",
                               "the mount is back")
            with self.assertRaises(OSError) as gone:
                os.pread(held, 10, 0)
            os.close(held)
            self.assertIn(gone.exception.errno, (errno.ENOTCONN, errno.EIO, errno.ECONNABORTED))
            self.assertIn("Mounted again", process.stdout.readline())
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            self.assertEqual(1, sum(f" {point} " in line for line in mounts))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(0, process.wait(timeout=60))
        self.assertFalse(harness.is_mounted(point))
        store.forget(point)
        self.assertEqual("round 4", store.command("cat", "a", "note").stdout.decode())
        store.command("verify")

    def test_umount_ends_it(self):
        store = self.new_store("a")
        process, point = self.start(store)
        store.umount(point)
        self.assertEqual(0, process.wait(timeout=60))

    def test_a_daemon_does_not_outlive_it(self):
        store = self.new_store("a")
        process, point = self.start(store, "--agent", "a")
        (point / "memory/f").write_text("kept")
        pid = store.pid()
        process.kill()
        process.wait()
        harness.wait_until(lambda: not harness.process_exists(pid), "the daemon ends")
        self.assertFalse(harness.is_mounted(point))
        store.forget(point)
        self.assertEqual(b"kept", store.command("cat", "a", "f").stdout)

    def test_what_cannot_work_is_told_at_once(self):
        store = self.new_store("a")
        self.assertIn(b"nobody", store.command("supervise", store.folder(), "--agent", "nobody",
                                               expect=1).stderr)
        store.mount()
        self.assertIn(b"memoirfs mount", store.command("supervise", store.folder(),
                                                       expect=1).stderr)

    def test_a_daemon_that_is_about_to_end_is_waited_for(self):
        store = self.new_store("a")
        store.command("mount", store.folder(), "--agent", "nobody", expect=1)
        process, point = self.start(store)
        store.umount(point)
        self.assertEqual(0, process.wait(timeout=60))

    def test_other_mounts_are_served_by_its_daemon(self):
        store = self.new_store("a")
        process, point = self.start(store)
        other = store.mount()
        self.assertEqual(2, len(json.loads(store.command("status", "--json").stdout)["mounts"]))
        store.umount(other)
        store.umount(point)
        self.assertEqual(0, process.wait(timeout=60))


if __name__ == "__main__":
    harness.main()
