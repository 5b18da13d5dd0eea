#!/usr/bin/env python3
"""The product as an ordinary user, what others can see of a store, and planted links.

As root these tests act as the user "nobody". Where only root may open /dev/fuse, they run in a
mount namespace of their own, in which everybody may.
"""

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import harness

USER = harness.NOBODY if harness.is_root() else None
OTHER = harness.NOBODY - 1


def users_may_open_fuse():
    return os.stat("/dev/fuse").st_mode & 0o006 == 0o006


def open_fuse_to_users():
    """Root only: starts this program anew in a namespace where /dev/fuse is open to all."""
    if not harness.is_root() or not os.path.exists("/dev/fuse") or users_may_open_fuse():
        return
    if "MEMOIRFS_E2E_UNSHARED" not in os.environ:
        os.environ["MEMOIRFS_E2E_UNSHARED"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])
    node = Path(tempfile.mkdtemp(prefix="memoirfs-fuse-")) / "fuse"
    os.mknod(node, stat.S_IFCHR | 0o666, os.stat("/dev/fuse").st_rdev)
    os.chmod(node, 0o666)
    subprocess.run(["mount", "--bind", str(node), "/dev/fuse"], check=True)
    shutil.rmtree(node.parent)


class UserCase(harness.ProductCase):
    def setUp(self):
        super().setUp()
        self.as_user(lambda: None)

    def as_user(self, function):
        return harness.in_child(function, USER)

    def user_store(self, *agents):
        store = harness.Store(user=USER)
        self.stores.append(store)
        self.provide_binary(store)
        return store.init(*agents)

    def provide_binary(self, store):
        """Where the user cannot reach the build folder, a copy in the scratch folder serves."""
        program = harness.binary()
        if not self.as_user(lambda: os.access(program, os.X_OK)):
            copy = store.scratch / "memoirfs"
            shutil.copy(program, copy)
            os.chmod(copy, 0o755)
            self.addCleanup(os.environ.__setitem__, "MEMOIRFS", program)
            os.environ["MEMOIRFS"] = str(copy)

    def mount(self, store, *options):
        if USER is not None and not self.as_user(lambda: os.access("/dev/fuse", os.R_OK | os.W_OK)):
            self.skipTest("an ordinary user cannot open /dev/fuse here")
        return store.mount("--agent", harness.AGENT, *options)


class OrdinaryUser(UserCase):
    def test_an_ordinary_user_mounts_and_works(self):
        store = self.user_store(harness.AGENT)
        point = self.mount(store)
        self.as_user(lambda: (point / "memory/메모.md").write_text("기억"))
        store.umount()
        point = self.mount(store)
        self.assertEqual("기억", self.as_user(lambda: (point / "memory/메모.md").read_text()))
        owner = self.as_user(lambda: os.stat(point / "memory/메모.md").st_uid)
        self.assertEqual(USER if USER is not None else os.getuid(), owner)
        store.umount()
        store.command("verify")

    def test_the_daemon_runs_as_that_user(self):
        store = self.user_store(harness.AGENT)
        self.mount(store)
        self.assertEqual(USER if USER is not None else os.getuid(),
                         os.stat(f"/proc/{store.pid()}").st_uid)

    def test_a_killed_daemon_of_a_user_is_cleaned_up(self):
        store = self.user_store(harness.AGENT)
        point = self.mount(store)
        self.as_user(lambda: (point / "memory/f").write_text("closed"))
        store.kill()
        store.mount("--agent", harness.AGENT, point=point)
        self.assertEqual("closed", self.as_user(lambda: (point / "memory/f").read_text()))

    @unittest.skipUnless(harness.is_root(), "needs root to act as two users")
    def test_other_users_see_nothing(self):
        store = self.user_store(harness.AGENT)
        point = self.mount(store)
        self.as_user(lambda: (point / "memory/f").write_text("private"))
        os.chmod(store.scratch, 0o755)
        os.chmod(point.parent, 0o755)
        for path in (point, point / "memory/f", store.path / "FORMAT", store.path / "control.sock"):
            with self.subTest(path=path.name), self.assertRaises(OSError) as caught:
                harness.in_child(lambda: os.listdir(path) if path == point
                                 else open(path, "rb").read(), OTHER)
            self.assertEqual(errno.EACCES, caught.exception.errno)

    @unittest.skipUnless(harness.is_root(), "needs root to act as two users")
    def test_another_user_cannot_command_the_daemon(self):
        store = self.user_store(harness.AGENT)
        self.mount(store)
        os.chmod(store.scratch, 0o755)
        stranger = harness.Store(path=store.path, user=OTHER)
        for command in (("status",), ("umount", store.points[0]), ("verify",)):
            done = stranger.command(*command, expect=None)
            self.assertNotEqual(0, done.returncode, command)
        stranger.daemons.clear()
        stranger.close()
        self.assertTrue(harness.is_mounted(store.points[0]))

    def test_allow_other_is_refused_where_the_system_does_not_allow_it(self):
        config = Path("/etc/fuse.conf")
        lines = config.read_text().splitlines() if config.exists() else []
        if "user_allow_other" in [line.strip() for line in lines]:
            self.skipTest("this system allows it to users")
        store = self.user_store(harness.AGENT)
        if not users_may_open_fuse():
            self.skipTest("an ordinary user cannot open /dev/fuse here")
        done = store.command("mount", store.folder(), "--allow-other", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertIn(b"user_allow_other", done.stderr)

    def test_a_mount_point_of_somebody_else_is_refused(self):
        store = self.user_store(harness.AGENT)
        if USER is None:
            self.skipTest("needs root to make a folder of somebody else")
        point = store.scratch / "roots"
        point.mkdir(mode=0o755)
        done = store.command("mount", point, expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertTrue(done.stderr.strip())
        self.assertFalse(harness.is_mounted(point))


class Privacy(UserCase):
    def modes(self, store):
        return {path: stat.S_IMODE(os.lstat(path).st_mode)
                for path in [store.path, *store.path.rglob("*")]}

    def test_nobody_else_can_read_a_store(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        store = self.user_store(harness.AGENT)
        point = self.mount(store)
        self.as_user(lambda: (point / "memory/f").write_bytes(bytes(100_000)))
        self.as_user(lambda: (point / "memory/big").write_bytes(harness.noise(6 << 20)))
        while_mounted = self.modes(store)
        store.umount()
        for path, mode in {**while_mounted, **self.modes(store)}.items():
            self.assertEqual(0, mode & 0o077, f"{path} has mode {mode:o}")
        self.assertEqual(0o700, stat.S_IMODE(os.stat(store.path).st_mode))

    def test_the_log_and_the_anchors_are_private(self):
        store = self.user_store(harness.AGENT)
        self.mount(store)
        store.umount()
        state = store.scratch / "xdg-state"
        for path in state.rglob("*"):
            if path.is_file():
                self.assertEqual(0, path.stat().st_mode & 0o077, path)


class PlantedLinks(UserCase):
    """A link that somebody put into a store must not lead writes elsewhere."""

    def use(self, store):
        """Uses the store in every way; whether that works is not asked here."""
        point = store.folder()
        if store.command("mount", point, expect=None).returncode == 0:
            store.points.append(point)
            try:
                (point / harness.AGENT / "memory/f").write_bytes(bytes(100_000))
                (point / harness.AGENT / "memory/big").write_bytes(harness.noise(6 << 20))
            except OSError:
                pass
            store.daemons.add(store.pid())
            store.umount(point)
        store.command("agent", "add", "another", expect=None)
        store.command("fsck", "--repair", expect=None)

    def plant(self, relative):
        store = self.new_store(harness.AGENT)
        victims = store.scratch / "victims"
        victims.mkdir()
        (victims / "file").write_bytes(b"precious")
        place = store.path / relative
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
            place.symlink_to(victims)
        else:
            place.unlink(missing_ok=True)
            place.symlink_to(victims / "file")
        self.use(store)
        self.assertEqual(["file"], os.listdir(victims), f"{relative}: something was made there")
        self.assertEqual(b"precious", (victims / "file").read_bytes(), relative)

    def test_links_in_place_of_files(self):
        for relative in ("FORMAT", "LOCK", "control.sock", "journal/2.log", "journal/1.log",
                         "packs/1.pack", "packs/2.bulk"):
            with self.subTest(place=relative):
                self.plant(relative)

    def test_links_in_place_of_folders(self):
        for relative in ("journal", "packs", "chains", "index", "staging", "quarantine", "trash"):
            with self.subTest(place=relative):
                self.plant(relative)

    def test_a_link_in_place_of_the_store(self):
        store = harness.Store()
        self.stores.append(store)
        victims = store.scratch / "victims"
        victims.mkdir()
        store.path.symlink_to(victims)
        done = store.command("init", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertEqual([], os.listdir(victims))
        store.path.unlink()
        store.path.symlink_to(store.scratch / "nothing")
        self.assertGreater(store.command("init", expect=None).returncode, 0)
        self.assertFalse((store.scratch / "nothing").exists())


class NoFuse(harness.ProductCase):
    @unittest.skipUnless(harness.is_root(), "needs root to hide /dev/fuse")
    def test_a_machine_without_fuse_is_told_what_to_do(self):
        store = self.new_store(harness.AGENT)
        words = [harness.binary(), "mount", "--store", str(store.path), str(store.folder())]
        script = "mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3 && exec \"$@\""
        done = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", script,
                               "sh", *words], env=store.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=30)
        self.assertGreater(done.returncode, 0)
        self.assertIn(b"/dev/fuse", done.stderr)
        self.assertIn(b"container", done.stderr)

    def test_an_unwritable_place_for_the_store(self):
        store = harness.Store(path="/proc/memoirfs-cannot-be-here")
        self.stores.append(store)
        done = store.command("init", expect=None)
        self.assertGreater(done.returncode, 0)
        self.assertTrue(done.stderr.strip())


if __name__ == "__main__":
    open_fuse_to_users()
    harness.main()
