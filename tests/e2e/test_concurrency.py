#!/usr/bin/env python3
"""Many processes and threads on the same names: the invariants of `stress` hold, and it ends."""

import unittest

import harness

ROUNDS = harness.count("STRESS_ROUNDS", 0)


class Concurrency(harness.ProductCase):
    def stress(self, *options):
        store = self.new_store("a")
        folder = store.mount_agent("a")
        pid = store.pid()
        # At a deadlock: where the daemon's threads are.
        stacks = (f"gdb -batch -p {pid} -ex 'thread apply all bt' || for t in /proc/{pid}/task/*;"
                  " do echo $t; cat $t/comm $t/wchan $t/syscall; echo; done")
        done = store.run_program("stress", folder, "--seed", harness.SEED, "--stall-command", stacks,
                                 *options)
        return store, done

    def test_the_invariants_hold(self):
        store, done = self.stress(*(("--rounds", ROUNDS) if ROUNDS else ()))
        print(done.stdout, flush=True)
        self.assertEqual(0, done.returncode, done.stdout[-4000:] + done.stderr)
        store.umount_all()
        store.command("verify")


if __name__ == "__main__":
    harness.main()
