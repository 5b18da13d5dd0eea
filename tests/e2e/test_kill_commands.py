#!/usr/bin/env python3
"""kill -9 of any command at any moment: the store opens, and what it held is still there.

Each command that changes a store is killed, with the daemon that it may have started, after a
random part of the time that it takes when it is let alone. The other agent's files must read as
before, and the store must verify; `init` must succeed when it is done again.
"""

import os
import shutil
import signal
import subprocess
import time
import unittest

import harness

KILLS = harness.count("COMMAND_KILLS", 5)  # of each command
FILES = {"small": b"a few words\n", "empty": b"", "large": harness.noise(3 << 20)}


def processes_of(store):
    """Every process that has the store's path among its words: commands and daemons."""
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry.name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if os.fsencode(store.path) in words:
            found.append(int(entry.name))
    return found


class KillCommands(harness.ProductCase):
    def filled_store(self):
        store = self.new_store("kept", "other")
        for agent in ("kept", "other"):
            memory = store.mount_agent(agent)
            for name, data in FILES.items():
                (memory / name).write_bytes(data)
            store.umount()
        return store

    def start(self, store, words):
        line = [harness.binary(), words[0], "--store", str(store.path), *map(str, words[1:])]
        return subprocess.Popen(line, env=store.environment(), stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def duration(self, store, words):
        started = time.monotonic()
        self.assertEqual(0, self.start(store, words).wait())
        return time.monotonic() - started

    def kill_within(self, store, words, seconds):
        process = self.start(store, words)
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            pass
        for pid in processes_of(store):
            os.kill(pid, signal.SIGKILL)
        process.wait()
        harness.wait_until(lambda: not processes_of(store), "all processes are gone")

    def check(self, store):
        for name, data in FILES.items():
            self.assertEqual(data, store.command("cat", "kept", name).stdout)
        store.command("verify")

    def try_command(self, name, words_of, before=None):
        """`words_of(store)`: the command; `before(store)`: what makes it possible."""
        rng = harness.seeded(name)
        original = self.filled_store()
        takes = None
        for _ in range(KILLS):
            copy = f"{original.scratch}-copy"
            # With holes where there are zeros: journals are mostly that.
            subprocess.run(["cp", "-a", "--sparse=always", original.scratch, copy], check=True)
            store = harness.Store(scratch=copy)
            try:
                if before:
                    before(store)
                words = words_of(store)
                if takes is None:
                    takes = self.duration(store, words)
                else:
                    self.kill_within(store, words, rng.uniform(0, takes))
                for point in list(store.points):
                    if harness.is_mounted(point):
                        store.command("umount", point)
                    store.forget(point)
                self.check(store)
            finally:
                store.close()

    def mount_words(self, store):
        point = store.folder()
        store.points.append(point)
        return ("mount", point)

    def test_mount(self):
        self.try_command("mount", self.mount_words)

    def test_umount(self):
        def mount(store):
            memory = store.mount_agent("kept")
            for name, data in FILES.items():
                (memory / name).write_bytes(data)

        self.try_command("umount", lambda store: ("umount", store.points[-1]), mount)

    def test_agent_add(self):
        self.try_command("agent add", lambda store: ("agent", "add", "new"))

    def test_agent_rm(self):
        self.try_command("agent rm", lambda store: ("agent", "rm", "other"))

    def test_purge(self):
        self.try_command("purge", lambda store: ("agent", "rm", "other", "--purge", "--yes"))

    def test_repair(self):
        self.try_command("repair", lambda store: ("fsck", "--repair"))

    def test_sync(self):
        self.try_command("sync", lambda store: ("sync",))

    def test_init(self):
        rng = harness.seeded("init")
        store = harness.Store()
        self.stores.append(store)
        takes = self.duration(store, ("init",))
        for _ in range(KILLS):
            shutil.rmtree(store.path)
            self.kill_within(store, ("init",), rng.uniform(0, takes))
            store.init("a")
            store.command("verify")


if __name__ == "__main__":
    harness.main()
