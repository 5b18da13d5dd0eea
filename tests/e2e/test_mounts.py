#!/usr/bin/env python3
"""Mounting and unmounting: several mounts of a store, refusals, and what a dead daemon leaves."""

import errno
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import harness


class MountCase(harness.ProductCase):
    def refused(self, store, *args, mention=()):
        """The command fails, says why in one readable message, and leaves no mount behind."""
        done = store.command(*args, expect=None)
        text = (done.stderr + done.stdout).decode()
        self.assertNotEqual(0, done.returncode, text)
        self.assertGreater(done.returncode, 0, f"died of a signal: {text}")
        self.assertTrue(done.stderr.strip(), "nothing on stderr")
        for word in mention:
            self.assertIn(word, text)
        return text


class Sessions(MountCase):
    def test_a_mount_answers_when_the_command_returns(self):
        store = self.new_store("a")
        point = store.mount()
        self.assertTrue(harness.is_mounted(point))
        self.assertEqual(["a"], sorted(os.listdir(point)))
        self.assertEqual({".memoir", "memory"}, set(os.listdir(point / "a")))

    def test_everything_is_there_after_a_remount(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "폴더").mkdir()
        (memory / "폴더/메모.md").write_text("기억\n")
        (memory / "big").write_bytes(harness.noise(5_000_000))
        os.symlink("폴더/메모.md", memory / "link")
        os.link(memory / "big", memory / "hard")
        os.setxattr(memory / "big", "user.note", b"value")
        os.chmod(memory / "big", 0o604)
        os.utime(memory / "big", ns=(1, 1_234_567_891_234_567_891))
        before = self.facts(memory)
        store.umount()
        memory = store.mount_agent("a")
        self.assertEqual(before, self.facts(memory))
        self.assertEqual(b"value", os.getxattr(memory / "hard", "user.note"))
        self.assertTrue(harness.noise(5_000_000) == (memory / "hard").read_bytes())

    @staticmethod
    def facts(root):
        infos = {path.relative_to(root): os.lstat(path) for path in root.rglob("*")}
        return {path: (i.st_ino, i.st_mode, i.st_nlink, i.st_uid, i.st_gid, i.st_size, i.st_mtime_ns)
                for path, i in infos.items()}

    def test_a_second_mount_is_served_by_the_same_daemon(self):
        store = self.new_store("a", "b")
        first = store.mount_agent("a")
        pid = store.pid()
        second = store.mount_agent("b")
        self.assertEqual(pid, store.pid())
        self.assertEqual(2, len(store.status()["mounts"]))
        (first / "f").write_text("of a")
        self.assertEqual(["shared"], os.listdir(second))
        store.umount(first.parent)
        (second / "f").write_text("of b")
        self.assertTrue(harness.process_exists(pid))
        store.umount(second.parent)
        store.wait_for_end(pid)

    def test_two_mounts_of_one_agent_see_each_other_at_once(self):
        store = self.new_store("a")
        first, second = store.mount_agent("a"), store.mount_agent("a")
        for number in range(20):
            (first / "f").write_text(f"version {number}")
            self.assertEqual(f"version {number}",
                             harness.wait_until(lambda: self.text(second / "f", number),
                                                "the other mount shows the new version"))
        (second / "g").write_text("from the second")
        harness.wait_until(lambda: (first / "g").exists(), "the new name appears")
        os.unlink(first / "f")
        harness.wait_until(lambda: not (second / "f").exists(), "the name goes")
        harness.wait_until(lambda: sorted(os.listdir(second)) == ["g", "shared"], "the listing follows")

    @staticmethod
    def text(path, number):
        text = path.read_text() if path.exists() else ""
        return text if text == f"version {number}" else None

    def test_an_agent_mount_shows_only_that_agent(self):
        store = self.new_store("a", "b")
        everything = store.mount()
        (everything / "b/memory/secret").write_text("of b")
        only = store.mount("--agent", "a")
        self.assertEqual({".memoir", "memory"}, set(os.listdir(only)))
        found = [name for _, dirs, files in os.walk(only) for name in dirs + files]
        self.assertNotIn("secret", found)
        self.assertNotIn("b", found)
        status = (only / ".memoir/status.json").read_text()
        self.assertEqual(["a"], [agent["name"] for agent in json.loads(status)["agents"]])
        self.assertNotIn('"b"', (only / ".memoir/chain.jsonl").read_text())

    def test_an_agent_added_later_appears(self):
        store = self.new_store("a")
        point = store.mount()
        self.assertEqual(["a"], os.listdir(point))
        store.command("agent", "add", "b")
        harness.wait_until(lambda: sorted(os.listdir(point)) == ["a", "b"], "the new agent appears")
        (point / "b/memory/f").write_text("works")
        listed = store.command("agent", "list").stdout.decode()
        self.assertIn("b", listed)

    def test_a_read_only_mount_refuses_changes(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "f").write_text("content")
        store.umount()
        memory = store.mount_agent("a", "--read-only")
        self.assertEqual("content", (memory / "f").read_text())
        for change in (lambda: (memory / "f").write_text("x"), lambda: os.unlink(memory / "f"),
                       lambda: os.mkdir(memory / "d"), lambda: os.chmod(memory / "f", 0o600),
                       lambda: os.rename(memory / "f", memory / "g"),
                       lambda: os.setxattr(memory / "f", "user.a", b"1")):
            with self.assertRaises(OSError) as caught:
                change()
            self.assertEqual(errno.EROFS, caught.exception.errno)
        self.assertEqual("content", (memory / "f").read_text())

    def test_the_virtual_folder_cannot_be_changed(self):
        store = self.new_store("a")
        point = store.mount("--agent", "a")
        for change in (lambda: (point / ".memoir/new").write_text("x"),
                       lambda: (point / ".memoir/status.json").write_text("x"),
                       lambda: os.unlink(point / ".memoir/chain.jsonl"),
                       lambda: os.rmdir(point / "memory"), lambda: os.mkdir(point / "other"),
                       lambda: os.rename(point / "memory", point / "m")):
            with self.assertRaises(OSError) as caught:
                change()
            self.assertIn(caught.exception.errno, (errno.EROFS, errno.EPERM, errno.EACCES))

    def test_status_on_the_mount_is_what_the_command_says(self):
        store = self.new_store("a")
        point = store.mount("--agent", "a")
        for number in range(5):
            (point / "memory/f").write_text(str(number))
        shown = json.loads((point / ".memoir/status.json").read_text())
        told = {agent["name"]: agent for agent in store.status()["agents"]}
        self.assertEqual(told["a"]["hash"], shown["agents"][0]["hash"])
        self.assertEqual(told["a"]["seq"], shown["agents"][0]["seq"])


class Endings(MountCase):
    def test_umount_ends_the_daemon(self):
        store = self.new_store("a")
        store.mount()
        pid = store.pid()
        store.umount()
        store.wait_for_end(pid)
        self.assertIsNone(store.status()["pid"])

    @unittest.skipUnless(harness.is_root(), "needs root")
    def test_plain_umount_ends_the_daemon(self):
        store = self.new_store("a")
        point = store.mount()
        (point / "a/memory/f").write_text("kept")
        pid = store.pid()
        subprocess.run(["umount", str(point)], check=True)
        store.forget(point)
        store.wait_for_end(pid)
        self.assertEqual("kept", (store.mount() / "a/memory/f").read_text())

    def test_fusermount_ends_the_daemon(self):
        store = self.new_store("a")
        point = store.mount()
        pid = store.pid()
        subprocess.run(["fusermount3", "-u", str(point)], check=True)
        store.forget(point)
        store.wait_for_end(pid)

    def test_a_terminated_daemon_keeps_what_was_open(self):
        store = self.new_store("a")
        point = store.mount()
        pid = store.pid()
        file = os.open(point / "a/memory/f", os.O_CREAT | os.O_WRONLY)
        os.write(file, b"not closed")
        os.kill(pid, 15)
        store.wait_for_end(pid)
        with self.assertRaises(OSError):
            os.close(file)
        store.forget(point)
        self.assertEqual(b"not closed", (store.mount(point=point) / "a/memory/f").read_bytes())

    def test_a_mount_of_a_store_that_was_moved_away(self):
        store = self.new_store("a")
        point = store.mount()
        pid = store.pid()
        moved = store.scratch / "moved"
        with open(point / "a/memory/f", "w") as file:
            file.write("kept")
            os.rename(store.path, moved)
            umount = [harness.binary(), "umount", point]
            done = subprocess.run(umount, env=store.environment(), capture_output=True, timeout=60)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(b"in use", done.stderr)
        done = subprocess.run(umount, env=store.environment(), capture_output=True, timeout=60)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn(os.fsencode(store.path), done.stderr)
        self.assertFalse(harness.is_mounted(point))
        store.forget(point)
        store.wait_for_end(pid)
        store.path = moved
        self.assertEqual(b"kept", store.command("cat", "a", "f").stdout)
        store.command("umount", point, expect=1)

    def test_a_mount_in_use_is_not_taken_away(self):
        store = self.new_store("a")
        point = store.mount()
        with open(point / "a/memory/f", "w") as file:
            self.refused(store, "umount", point)
            file.write("still works")
        self.assertEqual("still works", (point / "a/memory/f").read_text())

    def test_a_lazy_end_leaves_a_busy_sibling_alone(self):
        store = self.new_store("a")
        ended, other = store.mount(), store.mount()
        pid = store.pid()
        cut = open(ended / "a/memory/cut", "w")
        kept = open(other / "a/memory/kept", "w")
        cut.write("written before")
        cut.flush()
        store.command("umount", "--lazy", ended)
        self.assertFalse(harness.is_mounted(ended))
        store.forget(ended)
        with self.assertRaises(OSError) as gone:
            os.write(cut.fileno(), b"too late")
        self.assertEqual(errno.ENOTCONN, gone.exception.errno)
        with self.assertRaises(OSError):
            cut.close()
        kept.write("written after")
        kept.close()
        self.assertEqual("written after", (other / "a/memory/kept").read_text())
        self.assertEqual("written before", (other / "a/memory/cut").read_text())
        self.assertEqual(pid, store.pid())
        self.assertEqual([str(other)], [mount["mountpoint"] for mount in store.status()["mounts"]])
        store.umount(other)
        store.wait_for_end(pid)

    def test_a_dead_mount_is_cleaned_up(self):
        store = self.new_store("a")
        point = store.mount()
        (point / "a/memory/f").write_text("closed")
        store.kill()
        harness.wait_until(lambda: self.errno_of_listing(point) == errno.ENOTCONN,
                           "the mount point answers that nobody serves it")
        store.mount(point=point)
        self.assertEqual("closed", (point / "a/memory/f").read_text())

    @staticmethod
    def errno_of_listing(point):
        try:
            os.listdir(point)
        except OSError as error:
            return error.errno
        return 0

    def test_a_dead_mount_can_be_unmounted(self):
        store = self.new_store("a")
        point = store.mount()
        self.assertEqual([], store.status()["dead_mounts"])
        store.kill()
        self.assertIn(f"dead       {point}".encode(), store.command("status").stdout)
        self.assertEqual([str(point)], store.status()["dead_mounts"])
        self.assertEqual([], store.status()["mounts"])
        self.assertNotIn(os.fsencode(point), store.command("status", "--agent", "a").stdout)
        store.umount(point)
        self.assertEqual([], store.status()["dead_mounts"])
        self.assertEqual([], os.listdir(point))

    @unittest.skipUnless(harness.is_root(), "mounting a store read-only below needs root")
    def test_a_store_that_cannot_be_written(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "f").write_text("kept")
        store.umount()
        subprocess.run(["mount", "--bind", store.path, store.path], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", store.path], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", store.path], check=True)
        self.refused(store, "mount", store.folder(), mention=["--read-only"])
        points = [store.folder(), store.folder()]
        for point in points:
            store.command("mount", point, "--read-only")
            self.assertEqual("kept", (point / "a/memory/f").read_text())
            with self.assertRaises(OSError) as refused:
                (point / "a/memory/g").write_text("new")
            self.assertEqual(errno.EROFS, refused.exception.errno)
        store.command("verify")
        for point in points:
            store.command("umount", point)
            self.assertFalse(harness.is_mounted(point))

    def test_a_mount_in_the_foreground(self):
        store = self.new_store("a")
        point = store.folder()
        words = [harness.binary(), "mount", "--store", str(store.path), "--foreground", str(point)]
        process = subprocess.Popen(words, env=store.environment(), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        harness.wait_until(lambda: harness.is_mounted(point), "the mount appears")
        self.assertEqual(["a"], os.listdir(point))
        self.assertEqual(process.pid, store.pid())
        store.command("umount", point)
        self.assertEqual(0, process.wait(timeout=20))


class HostileNames(MountCase):
    """A name from outside reaches neither a terminal nor the log as it is."""

    def tell_tale(self, *texts):
        for text in texts:
            for raw in (b"\033", b"\nforged", "\u202e".encode(), "\u009b".encode()):
                self.assertNotIn(raw, text)

    def test_in_a_mount_point(self):
        store = self.new_store("a")
        point = store.scratch / "mnt\nforged\033[2J\u202e\u009b"
        point.mkdir()
        mounted = store.command("mount", point)
        store.daemons.add(store.pid())
        refused = store.command("mount", point, expect=1)
        status = store.command("status")
        unmounted = store.command("umount", point)
        for done in (mounted, refused, status, unmounted):
            self.tell_tale(done.stdout, done.stderr)
            self.assertIn(rb"mnt\x0aforged\x1b[2J\u202e\u009b", done.stdout + done.stderr)
        self.tell_tale(store.logs().encode())
        self.assertIn(r"mnt\x0aforged", store.logs())

    def test_of_a_store(self):
        scratch = Path(tempfile.mkdtemp(prefix="memoirfs-e2e-"))
        store = self.new_store("a", path=scratch / "store\nforged\033[2J", scratch=scratch)
        for words in (("init",), ("status",), ("mount", store.path), ("cat", "a", "x\033[2J"),
                      ("agent", "rm", "x\033[2J"), ("log", "a", "x\033[2J"), ("log", "\033[2J")):
            done = store.command(*words, expect=None)
            self.assertTrue(done.stdout + done.stderr)
            self.tell_tale(done.stdout, done.stderr)

    def test_that_is_not_utf_8(self):
        scratch = tempfile.mkdtemp(prefix="memoirfs-e2e-")
        store = self.new_store("a", path=os.fsdecode(os.fsencode(scratch) + b"/store\xff"),
                               scratch=scratch)
        self.assertIn(rb"store\xff", store.command("init").stdout)
        self.assertIn("store\ufffd", json.loads(store.command("init", "--json").stdout)["store"])
        point = os.fsdecode(os.fsencode(scratch) + b"/mnt\xff")
        os.mkdir(point)
        self.assertIn(rb"mnt\xff", store.command("mount", point, expect=1).stderr)
        self.assertIsNone(store.status()["pid"])

    def test_on_the_command_line(self):
        store = self.new_store()
        for words in (("status", "--x\033[2J"), ("log", "a", "--limit", "\033[2J"), ("\033[2J",),
                      ("verify", "--level", "\033[2J"), ("bench", "--against", "\033[2J")):
            done = store.command(*words, expect=2)
            self.assertTrue(done.stderr)
            self.tell_tale(done.stdout, done.stderr)


class Refusals(MountCase):
    def test_mount_points_that_cannot_be_used(self):
        store = self.new_store("a")
        full = store.folder("full")
        (full / "something").write_text("mine")
        self.refused(store, "mount", full, mention=[str(full), "empty"])
        self.assertEqual(["something"], os.listdir(full))
        file = store.scratch / "file"
        file.write_text("mine")
        self.refused(store, "mount", file, mention=[str(file), "directory"])
        self.refused(store, "mount", store.scratch / "missing", mention=["missing"])
        self.refused(store, "mount", store.path)
        self.refused(store, "mount", store.path / "journal")
        self.assertEqual("mine", file.read_text())

    def test_a_place_that_is_taken_is_refused(self):
        store = self.new_store("a")
        point = store.mount()
        (point / "a/memory/f").write_text("x")
        self.refused(store, "mount", point)
        other = self.new_store("b")
        self.refused(other, "mount", point)
        self.assertEqual("x", (point / "a/memory/f").read_text())

    def test_an_agent_that_does_not_exist(self):
        store = self.new_store("a")
        point = store.folder()
        self.refused(store, "mount", point, "--agent", "nobody", mention=["nobody"])
        self.assertFalse(harness.is_mounted(point))
        harness.wait_until(lambda: store.status()["pid"] is None, "a daemon without a mount ends")

    def test_no_store(self):
        store = harness.Store()
        self.stores.append(store)
        for command in (("mount", store.folder()), ("status",), ("verify",), ("log",),
                        ("agent", "list"), ("agent", "add", "x"), ("cat", "a", "f"), ("fsck",)):
            with self.subTest(command=command[0]):
                self.refused(store, *command, mention=[str(store.path), "init"])
        self.assertFalse(store.path.exists())

    def test_a_locked_store(self):
        store = self.new_store("a")
        holder = subprocess.Popen(["flock", str(store.path / "LOCK"), "sh", "-c", "echo held; read x"],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.readline()
        self.refused(store, "mount", store.folder(), mention=[str(store.path)])
        holder.communicate(b"\n")
        store.mount()

    def test_a_store_of_an_unknown_format(self):
        store = self.new_store("a")
        before = (store.path / "FORMAT").read_bytes()
        for other in (b"", b"something else\n", bytes(64), b"{}", b"\xff" * 100):
            with self.subTest(format=other[:10]):
                (store.path / "FORMAT").write_bytes(other)
                listing = sorted(os.listdir(store.path))
                for command in (("mount", store.folder()), ("verify",), ("init",),
                                ("agent", "list")):
                    self.refused(store, *command)
                self.assertEqual(other, (store.path / "FORMAT").read_bytes())
                self.assertEqual(listing, sorted(os.listdir(store.path)))
        (store.path / "FORMAT").write_bytes(before)
        store.mount()

    def test_init_of_what_exists(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "f").write_text("kept")
        store.umount()
        store.command("init", expect=None)
        self.assertEqual("kept", (store.mount_agent("a") / "f").read_text())
        other = harness.Store()
        self.stores.append(other)
        other.path.mkdir()
        (other.path / "thesis.txt").write_text("mine")
        self.refused(other, "init", mention=[str(other.path)])
        self.assertEqual(["thesis.txt"], os.listdir(other.path))

    def test_agent_names(self):
        store = self.new_store()
        for name in ("", ".", "..", "a/b", "a b", "x" * 256, "나", "a\nb", "-x", "\x07", "..."):
            with self.subTest(name=name):
                self.refused(store, "agent", "add", "--", name)
        for name in ("a", "A-1_b.c", "0"):
            store.command("agent", "add", name)
        self.refused(store, "agent", "add", "a", mention=["a"])
        agents = store.command("agent", "list").stdout.decode()
        for name in ("a", "A-1_b.c", "0"):
            self.assertIn(name, agents)

    def test_agent_removal_keeps_the_chain(self):
        store = self.new_store("a", "b")
        memory = store.mount_agent("a")
        (memory / "f").write_text("history")
        store.umount()
        chains = sorted((store.path / "chains").rglob("*.jsonl*"))
        store.command("agent", "rm", "a")
        self.assertEqual(["b"], os.listdir(store.mount()))
        self.assertEqual(chains, sorted((store.path / "chains").rglob("*.jsonl*")))
        store.umount()
        store.command("agent", "add", "a")
        self.assertEqual("history", (store.mount_agent("a") / "f").read_text())
        self.refused(store, "agent", "rm", "nobody", mention=["nobody"])

    def test_commands_that_do_not_exist(self):
        store = self.new_store()
        for words in (("frobnicate",), ("mount",), ("status", "--nonsense"), ("cat", "a")):
            self.refused(store, *words)

    def test_each_command_has_help(self):
        for words in ([], ["init"], ["agent"], ["agent", "add"], ["mount"], ["umount"], ["status"],
                      ["verify"], ["log"], ["cat"], ["fsck"], ["supervise"], ["bench"]):
            done = subprocess.run([harness.binary(), *words, "--help"], capture_output=True, timeout=20)
            self.assertEqual(0, done.returncode, words)
            self.assertGreater(len(done.stdout), 50, words)

    def test_a_lost_index_is_rebuilt(self):
        store = self.new_store("a")
        memory = store.mount_agent("a")
        (memory / "d").mkdir()
        (memory / "d/f").write_text("kept")
        store.umount()
        shutil.rmtree(store.path / "index")
        self.assertEqual("kept", (store.mount_agent("a") / "d/f").read_text())


if __name__ == "__main__":
    harness.main()
