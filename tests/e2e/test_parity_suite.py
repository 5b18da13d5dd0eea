#!/usr/bin/env python3
"""Random sequences of system calls on the mount and on another file system give the same.

`parity` makes the sequences from a seed, compares results, error numbers, content, attributes and
times, and prints each failing sequence as short as it can be. It must also find each mistake that
it is told to make on the mount's side.
"""

import tempfile
import unittest

import harness

SEQUENCES = harness.count("SEQUENCES", 2000)
SECONDS = harness.count("PARITY_SECONDS", 0)
SABOTAGES = ("chmod-drops-sticky", "setxattr-does-nothing", "omit-is-now", "pwrite-other-bytes",
             "rename-replaces")


class ParitySuite(harness.ProductCase):
    def parity(self, *options, remount_each=None):
        store = self.new_store("a")
        point = store.mount("--agent", "a")
        with tempfile.TemporaryDirectory(prefix="memoirfs-parity-", dir="/dev/shm") as reference:
            if remount_each:
                options += ("--remount", store.remount_command(point, "--agent", "a"),
                            "--remount-each", remount_each)
            return store.run_program("parity", "--reference", reference, "--mount",
                                     point / "memory", "--seed", harness.SEED, *options)

    def test_random_sequences(self):
        amount = ("--seconds", SECONDS) if SECONDS else ("--sequences", SEQUENCES)
        done = self.parity(*amount, remount_each=500)
        print(done.stdout.splitlines()[-1], flush=True)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)

    def test_every_mistake_is_found(self):
        for mistake in SABOTAGES:
            with self.subTest(mistake=mistake):
                done = self.parity("--sabotage", mistake, "--sequences", 300, "--most-failures", 1)
                self.assertEqual(1, done.returncode, done.stdout[-2000:] + done.stderr)
                self.assertIn("failed", done.stdout)


if __name__ == "__main__":
    harness.main()
