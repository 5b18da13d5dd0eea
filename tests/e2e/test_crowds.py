#!/usr/bin/env python3
"""Crowds and limits: 10,000 open files, 100 agents at once, few descriptors, small files only."""

import errno
import os
import resource
import unittest

import harness

OPEN_FILES = 10_000
AGENTS = 100


def allow_descriptors(number):
    """Raises this process's limit of descriptors; false where that is not allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= number:
        return True
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, max(hard, number)))
    except (ValueError, OSError):
        return False
    return True


class OpenFiles(harness.ProductCase):
    def test_ten_thousand_open_files(self):
        if not allow_descriptors(OPEN_FILES + 100):
            self.skipTest(f"this user may not have {OPEN_FILES} descriptors")
        store = self.new_store("a")
        memory = store.mount_agent("a")
        daemon = store.pid()
        before = len(os.listdir(f"/proc/{daemon}/fd"))
        files = []
        try:
            for number in range(OPEN_FILES):
                files.append(os.open(memory / f"f{number}", os.O_CREAT | os.O_RDWR))
            for number, fd in enumerate(files):
                os.write(fd, b"content of %d" % number)
            # Open files of the mount are no descriptors of the daemon.
            self.assertLess(len(os.listdir(f"/proc/{daemon}/fd")), before + 100)
            for number in range(0, OPEN_FILES, 2):
                os.unlink(memory / f"f{number}")
            for number, fd in enumerate(files):
                self.assertEqual(b"content of %d" % number, os.pread(fd, 100, 0))
        finally:
            for fd in files:
                os.close(fd)
        store.umount()
        memory = store.mount_agent("a")
        self.assertEqual({f"f{number}" for number in range(1, OPEN_FILES, 2)} | {"shared"},
                         set(os.listdir(memory)))
        for number in range(1, OPEN_FILES, 2):
            self.assertEqual(b"content of %d" % number, (memory / f"f{number}").read_bytes())


class ManyAgents(harness.ProductCase):
    def test_a_hundred_agents_at_once(self):
        names = [f"agent-{number}" for number in range(AGENTS)]
        store = self.new_store()
        point = store.mount()
        for name in names:
            store.command("agent", "add", name)
        self.assertEqual(sorted(names), sorted(os.listdir(point)))

        def work(number):
            memory = point / names[number] / "memory"
            for turn in range(20):
                (memory / f"note-{turn}.md").write_text(f"{names[number]} {turn}\n")
                with open(memory / "MEMORY.md", "a", encoding="utf-8") as file:
                    file.write(f"- {turn}\n")
                os.rename(memory / f"note-{turn}.md", memory / f"kept-{turn}.md")

        harness.together(AGENTS, work)
        everything = "".join(f"- {turn}\n" for turn in range(20))
        for mounted in ("at once", "after a remount"):
            for name in names:
                memory = point / name / "memory"
                with self.subTest(mounted, agent=name):
                    self.assertEqual(everything, (memory / "MEMORY.md").read_text())
                    self.assertEqual({"MEMORY.md", "shared"} | {f"kept-{t}.md" for t in range(20)},
                                     set(os.listdir(memory)))
                    self.assertEqual(f"{name} 7\n", (memory / "kept-7.md").read_text())
            store.umount(point)
            store.mount(point=point)
        store.command("verify")


class Descriptors(harness.ProductCase):
    """The daemon's own descriptors run out: what needs one fails as EMFILE, and it recovers."""

    @staticmethod
    def limit(daemon, number):
        resource.prlimit(daemon, resource.RLIMIT_NOFILE,
                         (number, resource.prlimit(daemon, resource.RLIMIT_NOFILE)[1]))

    def test_a_daemon_without_descriptors_recovers(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        daemon = store.pid()
        usual = resource.prlimit(daemon, resource.RLIMIT_NOFILE)[0]
        (memory / "before").write_bytes(b"saved before")
        kept = {}
        self.limit(daemon, 3)  # fewer than are open: nothing more can be opened
        refused = 0
        try:
            for number in range(200):
                data = harness.noise(700_000, f"starved-{number}")
                try:
                    with open(memory / f"f{number}", "xb", buffering=0) as file:
                        file.write(data)
                        os.fsync(file.fileno())
                except OSError as error:
                    self.assertIn(error.errno, (errno.EMFILE, errno.ENFILE), os.strerror(error.errno))
                    refused += 1
                else:
                    kept[f"f{number}"] = data
            self.assertEqual(b"saved before", (memory / "before").read_bytes())
        finally:
            self.limit(daemon, usual)
        print(f"{len(kept)} saved and {refused} refused without descriptors")
        self.assertGreater(refused, 0, "the limit was never felt")
        (memory / "after").write_bytes(b"saved after")
        kept.update(before=b"saved before", after=b"saved after")
        for again in range(2):
            for name, data in kept.items():
                self.assertTrue(data == (memory / name).read_bytes(), f"{name}, remounted {again}")
            store.umount()
            memory = store.mount_agent("a")
        store.command("verify")


class FileSize(harness.ProductCase):
    """`ulimit -f`: what would make a file of the store too large fails as EFBIG, and kills nobody."""

    LIMIT = (2 << 20, resource.RLIM_INFINITY)

    def limited_mount(self, store):
        memory = store.mount_agent("a")
        resource.prlimit(store.pid(), resource.RLIMIT_FSIZE, self.LIMIT)
        return memory

    def save_too_much(self, memory, data):
        with self.assertRaises(OSError) as caught:
            (memory / "big").write_bytes(data)
        self.assertEqual(errno.EFBIG, caught.exception.errno)

    def test_a_daemon_recovers(self):
        store = self.new_store("a")
        memory = self.limited_mount(store)
        daemon = store.pid()
        data = harness.noise(6 << 20)
        self.save_too_much(memory, data)
        (memory / "small").write_bytes(b"saved")
        resource.prlimit(daemon, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        (memory / "big").write_bytes(data)
        self.assertEqual(daemon, store.pid())
        store.umount()
        memory = store.mount_agent("a")
        self.assertTrue(data == (memory / "big").read_bytes())
        self.assertEqual(b"saved", (memory / "small").read_bytes())
        store.command("verify")

    def test_a_daemon_can_be_unmounted(self):
        store = self.new_store("a")
        memory = self.limited_mount(store)
        self.save_too_much(memory, harness.noise(6 << 20))
        (memory / "small").write_bytes(b"saved")
        store.umount()
        self.assertIn("daemon.unsaved", store.logs())
        self.assertEqual(b"saved", (store.mount_agent("a") / "small").read_bytes())

    def test_a_command_fails(self):
        store = self.new_store("a")
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, usual[1]))
        try:
            done = store.command("agent", "add", "b", expect=1)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
        self.assertIn(b"File too large", done.stderr)
        store.command("agent", "add", "c")
        store.command("verify", expect=None)


if __name__ == "__main__":
    harness.main()
