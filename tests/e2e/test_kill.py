#!/usr/bin/env python3
"""kill -9 of the daemon at random moments loses nothing that was acknowledged.

A writer works on the mount and reports each step through a pipe: "begin" with the state that a path
is about to get, and "done" when the call that acknowledges it has returned. After each kill the
store is mounted again and every path must be in a state that was acknowledged, or, for the one step
that the kill interrupted, in the state before or after it.
"""

import hashlib
import json
import os
import random
import time
import unittest

import harness

KILLS = harness.count("KILLS", 30)
NAMES = [f"{folder}{name}" for folder in ("", "폴더/", "d/") for name in ("a", "b", "메모", "log", "c")]


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Writer:
    """Runs in a process of its own until the mount goes away."""

    def __init__(self, root, pipe, rng, contents):
        self.root = root
        self.pipe = pipe
        self.rng = rng
        self.contents = contents  # path -> bytes, as this writer last left it
        self.count = 0

    def tell(self, word, changes, fresh):
        """`changes`: path -> digest, or None for a path that does not exist."""
        line = json.dumps([word, changes, fresh]) + "\n"
        os.write(self.pipe, line.encode())

    def step(self, changes, action, fresh=False):
        """`fresh`: the file is made by the step, and is empty until its content is committed."""
        told = {path: None if data is None else digest(data) for path, data in changes.items()}
        self.tell("begin", told, fresh)
        action()
        self.tell("done", told, fresh)
        for path, data in changes.items():
            if data is None:
                self.contents.pop(path, None)
            else:
                self.contents[path] = data

    def new_content(self):
        self.count += 1
        size = self.rng.choice((0, 1, 100, 4096, 4096, 20_000, 300_000, 1_500_000))
        return f"{self.count} ".encode() + self.rng.randbytes(size) if size else b""

    def save(self, path):
        """Create and write through another name, then rename over: how editors save."""
        data = self.new_content()
        other = self.root / f"{path}.tmp"
        with open(other, "wb") as file:
            file.write(data)
            if self.rng.random() < 0.3:
                file.flush()
                os.fsync(file.fileno())
        self.step({path: data}, lambda: os.rename(other, self.root / path))

    def write(self, path):
        """Writes a fresh name, so that no half-written state has an older one."""
        data = self.new_content()
        fresh = f"{path}-{self.count}-{os.getpid()}"

        def action():
            with open(self.root / fresh, "wb", buffering=0) as file:
                file.write(data)
        self.step({fresh: data}, action, fresh=True)
        if len(self.contents) > 60:
            self.remove(self.rng.choice(sorted(self.contents)))

    def append(self, path):
        if path not in self.contents:
            return self.save(path)
        line = f"line {self.count}\n".encode()

        def action():
            with open(self.root / path, "ab", buffering=0) as file:
                file.write(line)
        return self.step({path: self.contents[path] + line}, action)

    def fsynced(self, path):
        """Acknowledged by fsync, with the file still open."""
        data = self.new_content()
        fresh = f"{path}-sync-{self.count}-{os.getpid()}"
        opened = []

        def action():
            opened.append(open(self.root / fresh, "wb", buffering=0))
            opened[0].write(data)
            os.fsync(opened[0].fileno())
        self.step({fresh: data}, action, fresh=True)
        opened[0].close()

    def truncate(self, path):
        if path not in self.contents:
            return self.save(path)
        return self.step({path: b""}, lambda: open(self.root / path, "wb").close())

    def rename(self, path):
        target = self.rng.choice(NAMES)
        if path not in self.contents or target == path:
            return self.save(path)
        return self.step({target: self.contents[path], path: None},
                         lambda: os.rename(self.root / path, self.root / target))

    def remove(self, path):
        if path not in self.contents:
            return self.save(path)
        return self.step({path: None}, lambda: os.unlink(self.root / path))

    def run(self):
        actions = [self.save, self.save, self.write, self.append, self.append, self.fsynced,
                   self.truncate, self.rename, self.remove]
        try:
            while True:
                self.rng.choice(actions)(self.rng.choice(NAMES))
        except OSError:
            os._exit(0)  # the daemon is gone


class Account:
    """What the writer acknowledged, read from its pipe."""

    def __init__(self):
        self.states = {}   # path -> digest; absent: does not exist
        self.pending = {}  # path -> digest or None, of the step that has begun
        self.fresh = False  # the file of that step may be there and empty
        self.acknowledged = 0

    def take(self, line):
        word, changes, fresh = json.loads(line)
        if word == "begin":
            self.pending, self.fresh = changes, fresh
            return
        self.pending = {}
        self.acknowledged += 1
        for path, value in changes.items():
            self.apply(path, value)

    def apply(self, path, value):
        if value is None:
            self.states.pop(path, None)
        else:
            self.states[path] = value


class Kills(harness.ProductCase):
    def start_writer(self, root, rng, contents):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            try:
                Writer(root, writer, rng, contents).run()
            finally:
                os._exit(1)
        os.close(writer)
        return child, os.fdopen(reader, "rb")

    def interrupt(self, store, root, account, rng):
        """Lets the writer work, kills the daemon in the middle, and reads the rest of its account."""
        contents = {path: self.read(root, path) for path in account.states}
        child, pipe = self.start_writer(root, random.Random(rng.random()), contents)
        pid = store.pid()
        wanted = account.acknowledged + rng.randrange(1, 40)
        while account.acknowledged < wanted:
            line = pipe.readline()
            self.assertTrue(line, "the writer ended before the daemon was killed")
            account.take(line)
        moment = time.perf_counter() + rng.random() * 0.01
        while time.perf_counter() < moment:
            pass
        os.kill(pid, 9)
        for line in pipe:
            account.take(line)
        self.assertEqual(0, os.waitpid(child, 0)[1], "the writer failed")
        harness.wait_until(lambda: not harness.process_exists(pid), "the daemon is gone")
        store.daemons.discard(pid)
        pipe.close()

    @staticmethod
    def read(root, path):
        return (root / path).read_bytes()

    def state(self, root, path):
        try:
            return digest(self.read(root, path))
        except FileNotFoundError:
            return None

    def check(self, root, account):
        """Each path is as acknowledged; what was interrupted is as before or after, as a whole."""
        pending, account.pending = account.pending, {}
        found = {path: self.state(root, path) for path in pending}
        allowed = [{path: account.states.get(path) for path in pending}, pending]
        if account.fresh:
            allowed.append({path: digest(b"") for path in pending})
        self.assertIn(found, allowed, "the interrupted step was done by halves")
        for path, value in found.items():
            account.apply(path, value)
        there = {path: self.state(root, path) for path in account.states}
        self.assertEqual(account.states, there, "acknowledged content is not there")

    def check_tree(self, root, account):
        """Names that nobody acknowledged are only those of saves that were interrupted."""
        there = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
        strange = {path for path in there - set(account.states) if not path.endswith(".tmp")}
        self.assertEqual(set(), strange, "removed or never acknowledged files are there")

    def test_nothing_acknowledged_is_lost(self):
        rng = harness.seeded("kills")
        started = time.monotonic()
        store = self.new_store(harness.AGENT)
        root = store.mount_agent()
        for folder in ("폴더", "d"):
            (root / folder).mkdir()
        account = Account()
        for number in range(KILLS):
            self.interrupt(store, root, account, rng)
            store.mount_agent(harness.AGENT, point=root.parent)
            try:
                self.check(root, account)
                self.check_tree(root, account)
            except AssertionError as error:
                raise AssertionError(f"after kill {number}, seed {harness.SEED}: {error}") from error
        store.umount()
        store.command("verify")
        print(f"{KILLS} kills, {account.acknowledged} acknowledged steps, "
              f"{time.monotonic() - started:.1f} s")
        self.assertGreater(account.acknowledged, KILLS)

    def test_a_kill_without_any_write_changes_nothing(self):
        store = self.new_store(harness.AGENT)
        root = store.mount_agent()
        (root / "f").write_bytes(b"content")
        for _ in range(3):
            store.kill()
            store.mount_agent(harness.AGENT, point=root.parent)
            self.assertEqual(b"content", (root / "f").read_bytes())

    def test_an_empty_and_a_truncated_file_survive(self):
        store = self.new_store(harness.AGENT)
        root = store.mount_agent()
        (root / "truncated").write_bytes(b"long gone")
        os.close(os.open(root / "empty", os.O_CREAT | os.O_WRONLY))
        os.close(os.open(root / "truncated", os.O_WRONLY | os.O_TRUNC))
        left_open = os.open(root / "open", os.O_CREAT | os.O_WRONLY)
        store.kill()
        with self.assertRaises(OSError):
            os.close(left_open)
        store.mount_agent(harness.AGENT, point=root.parent)
        names = ["empty", "open", "truncated"]
        self.assertEqual(names + ["shared"], sorted(os.listdir(root), key=lambda n: (n == "shared", n)))
        self.assertEqual([b"", b"", b""], [self.read(root, name) for name in names])


if __name__ == "__main__":
    harness.main()
