#!/usr/bin/env python3
"""How many requests the kernel sends: what it has cached costs none, and changes are seen at once.

The daemon counts requests by type (`memoirfs status --json`); nothing here measures time. Where the
kernel had to read from the daemon (pages, a listing, a link's target) it asks once more for the
attributes, since that changes atime elsewhere; so what is to be warm is looked at with stat(2) too.
"""

import contextlib
import errno
import os
import stat
import unittest
from pathlib import Path

import harness


class RequestCase(harness.ProductCase):
    def setUp(self):
        super().setUp()
        if hasattr(self, "stores"):
            self.store = self.new_store(harness.AGENT)

    def mount(self, *options):
        """The point of a mount that has been looked at: the handshakes of the first use are over."""
        point = Path(os.path.realpath(self.store.mount(*options)))
        os.listdir(point)
        os.stat(point)
        return point

    def counts(self, point):
        """Requests since the mount, by type."""
        for mount in self.store.status()["mounts"]:
            if mount["mountpoint"] == str(point):
                return {op: facts["count"] for op, facts in mount["requests"].items()}
        raise AssertionError(f"status does not show the mount {point}")

    @staticmethod
    def read(path):
        """Without the ioctl by which Python's open() asks for a terminal."""
        fd = os.open(path, os.O_RDONLY)
        try:
            return os.read(fd, 1 << 20)
        finally:
            os.close(fd)

    def wait_for_releases(self, point, held):
        """Until of all files that were opened only `held` are."""
        def is_open():
            seen = self.counts(point)
            return seen.get("open", 0) + seen.get("create", 0) - seen.get("release", 0)
        harness.wait_until(lambda: is_open() == held, f"{held} open file(s)")

    @contextlib.contextmanager
    def expect(self, point, asynchronous=None, held=0, **requests):
        """Exactly these requests come while the block runs; those of `asynchronous` until soon."""
        self.wait_for_releases(point, held)
        before = self.counts(point)
        yield
        wanted = dict(asynchronous or {})
        harness.wait_until(
            lambda: all(self.counts(point).get(op, 0) - before.get(op, 0) >= count
                        for op, count in wanted.items()), f"{wanted} after the call")
        after = self.counts(point)
        seen = {op: after[op] - before.get(op, 0) for op in after}
        self.assertEqual({**requests, **wanted}, {op: n for op, n in seen.items() if n})


class WarmAccess(RequestCase):
    def setUp(self):
        super().setUp()
        self.point = self.mount()
        self.agent = self.point / harness.AGENT
        self.dir = self.agent / "memory" / "topics"
        self.dir.mkdir()
        self.file = self.dir / "note.md"
        self.file.write_bytes(b"a note\n")

    def test_stat_by_an_absolute_path(self):
        for path in (self.point, self.agent, self.agent / "memory", self.agent / ".memoir",
                     self.agent / "memory/shared", self.dir, self.file):
            with self.subTest(path=path.name):
                os.stat(path)
                with self.expect(self.point):
                    for _ in range(10):
                        os.stat(path)
                        os.access(path, os.R_OK)

    def test_names_that_do_not_exist(self):
        for folder in (self.point, self.agent, self.agent / "memory", self.agent / ".memoir",
                       self.agent / "memory/shared", self.dir):
            with self.subTest(folder=folder.name):
                self.assertFalse((folder / "missing").exists())
                with self.expect(self.point):
                    for _ in range(10):
                        self.assertFalse((folder / "missing").exists())

    def test_listings(self):
        """None at all: not even an OPENDIR, and the entries are pages of the directory."""
        for folder in (self.point, self.agent, self.agent / "memory", self.agent / ".memoir",
                       self.agent / "memory/shared", self.dir):
            with self.subTest(folder=folder.name):
                expected = sorted(os.listdir(folder))
                os.stat(folder)
                with self.expect(self.point):
                    for _ in range(5):
                        self.assertEqual(expected, sorted(os.listdir(folder)))
                        os.stat(folder)

    def test_a_listing_with_attributes(self):
        for number in range(300):
            (self.dir / f"n{number}").write_bytes(b"x")
        listed = sum(1 for entry in os.scandir(self.dir) if entry.stat())
        os.stat(self.dir)
        with self.expect(self.point):
            self.assertEqual(listed, sum(1 for entry in os.scandir(self.dir) if entry.stat()))

    def test_open_read_and_close_of_a_small_file(self):
        self.read(self.file)
        os.stat(self.file)
        with self.expect(self.point, open=3, asynchronous={"release": 3}):
            for _ in range(3):
                self.assertEqual(b"a note\n", self.read(self.file))

    def test_a_file_that_was_read_has_nothing_to_ask_again(self):
        big = self.dir / "big"
        big.write_bytes(harness.noise(3 << 20))
        big.read_bytes()
        os.stat(big)
        with open(big, "rb") as file, self.expect(self.point, held=1):
            os.fstat(file.fileno())
            self.assertEqual(3 << 20, len(file.read()))

    @unittest.skipUnless(harness.is_root(), "only root may widen the readahead of a mount")
    def test_a_big_file_is_read_in_big_requests(self):
        big = self.dir / "big"
        big.write_bytes(harness.noise(32 << 20))
        with self.forgotten(big) as fd:
            before = self.counts(self.point).get("read", 0)
            while os.read(fd, 128 * 1024):
                pass
            requests = self.counts(self.point).get("read", 0) - before
        # The readahead starts small; from then on a request is 1 MiB.
        self.assertLess(requests, 48)

    @contextlib.contextmanager
    def forgotten(self, path):
        """A descriptor of a file of which no page is cached."""
        fd = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            yield fd
        finally:
            os.close(fd)

    def test_a_symlink(self):
        os.symlink("note.md", self.dir / "link")
        os.readlink(self.dir / "link")
        os.lstat(self.dir / "link")
        os.stat(self.file)
        with self.expect(self.point):
            self.assertEqual("note.md", os.readlink(self.dir / "link"))
            self.assertEqual(7, os.stat(self.dir / "link").st_size)

    def write(self, flags, times):
        fd = os.open(self.dir / "written", flags | os.O_WRONLY, 0o644)
        for _ in range(times):
            os.write(fd, b"x")
        os.close(fd)

    def test_writes(self):
        """FUSE asks for a security.capability at the first write to an inode of which attributes
        came since it last asked, and at no other write."""
        released = {"release": 1}
        os.stat(self.dir)
        with self.expect(self.point, lookup=1, create=1, getxattr=1, write=50, flush=1,
                         asynchronous=released):
            self.write(os.O_CREAT, 50)
        os.stat(self.dir)
        with self.expect(self.point, open=1, write=3, flush=1, asynchronous=released):
            self.write(os.O_APPEND, 3)

    def test_the_mount_of_one_agent(self):
        point = self.mount("--agent", harness.AGENT)
        path = point / "memory/topics/note.md"
        for warm in (point, point / ".memoir", path):
            os.stat(warm)
        self.assertFalse((point / "memory/missing").exists())
        with self.expect(point):
            os.stat(point)
            os.stat(point / ".memoir")
            os.stat(path)
            os.listdir(point)
            self.assertFalse((point / "memory/missing").exists())


class Changes(RequestCase):
    """What the kernel has cached of the folders around the memories is exact."""

    def test_an_agent_that_is_added_is_there_at_once(self):
        point = self.mount()
        for round_ in range(4):
            name = f"agent{round_}"
            self.assertFalse((point / name).exists())
            self.assertNotIn(name, os.listdir(point))
            self.store.command("agent", "add", name)
            self.assertTrue((point / name / "memory").is_dir())
            self.assertIn(name, os.listdir(point))

    def test_an_agent_that_is_removed_is_gone_at_once(self):
        point = self.mount()
        for round_ in range(4):
            name = f"agent{round_}"
            self.store.command("agent", "add", name)
            (point / name / "memory/f").write_bytes(b"x")
            self.assertIn(name, os.listdir(point))
            self.store.command("agent", "rm", name)
            with self.assertRaises(OSError) as caught:
                os.stat(point / name / "memory/f")
            self.assertEqual(errno.ENOENT, caught.exception.errno)
            self.assertNotIn(name, os.listdir(point))

    def test_a_new_agent_leaves_what_is_cached_of_the_others(self):
        point = self.mount()
        path = point / harness.AGENT / "memory/f"
        path.write_bytes(b"x")
        os.stat(path)
        self.store.command("agent", "add", "another")
        os.stat(point)
        with self.expect(point):
            os.stat(path)

    def test_who_may_read_the_memory_may_read_the_folders_around_it(self):
        all_agents = self.mount()
        one = self.mount("--agent", harness.AGENT)
        agent = all_agents / harness.AGENT
        around = (agent, agent / ".memoir", agent / "memory/shared", one, one / ".memoir")
        for changed in (agent / "memory", one / "memory"):
            for mode in (0o755, 0o750, 0o700):
                for path in around:
                    os.stat(path)
                os.chmod(changed, mode)
                # The mount that the change came through shows it at once, the other one soon.
                for path in around:
                    harness.wait_until(
                        lambda: stat.S_IMODE(os.stat(path).st_mode) == mode & 0o555, f"{path}")

    def test_the_mount_that_changes_the_mode_shows_it_at_once(self):
        point = self.mount()
        agent = point / harness.AGENT
        for round_ in range(50):
            mode = 0o755 if round_ % 2 else 0o700
            os.stat(agent)
            os.chmod(agent / "memory", mode)
            self.assertEqual(mode & 0o555, stat.S_IMODE(os.stat(agent).st_mode))

    def test_work_in_the_memory_leaves_the_folders_around_it_cached(self):
        point = self.mount()
        agent = point / harness.AGENT
        (agent / "memory/f").write_bytes(b"x")
        facts = os.stat(agent)
        os.unlink(agent / "memory/f")
        with self.expect(point):
            self.assertEqual(facts, os.stat(agent))

    def test_virtual_files_are_never_stale(self):
        point = self.mount()
        chain = point / harness.AGENT / ".memoir/chain.jsonl"
        sizes = []
        for round_ in range(5):
            (point / harness.AGENT / f"memory/f{round_}").write_bytes(b"x")
            self.store.command("sync")
            sizes.append(os.stat(chain).st_size)
            self.assertEqual(sizes[-1], len(chain.read_bytes()))
        self.assertEqual(sorted(set(sizes)), sizes)


if __name__ == "__main__":
    harness.main()
