#!/usr/bin/env python3
"""Random changes of a few files, each checked against what memory says they must hold."""

import unittest

import harness

OPERATIONS = harness.count("FSX_OPERATIONS", 100_000)


class Fsx(harness.ProductCase):
    def fsx(self, *options):
        store = self.new_store("a")
        point = store.mount("--agent", "a")
        return store.run_program("fsx", "--directory", point / "memory", "--seed", harness.SEED,
                                 "--remount", store.remount_command(point, "--agent", "a"),
                                 *options)

    def test_files_hold_what_was_written(self):
        done = self.fsx("--operations", OPERATIONS)
        print((done.stdout.splitlines() or [""])[-1], flush=True)
        self.assertEqual(0, done.returncode, done.stdout[-4000:] + done.stderr)

    def test_a_wrong_byte_is_found(self):
        done = self.fsx("--operations", 2000, "--damage-each", 2000)
        self.assertEqual(1, done.returncode, done.stdout[-2000:] + done.stderr)


if __name__ == "__main__":
    harness.main()
