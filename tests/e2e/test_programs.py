#!/usr/bin/env python3
"""Everyday programs work on the mount, and leave what they leave elsewhere."""

import hashlib
import os
import pty
import select
import shutil
import sqlite3
import stat
import subprocess
import sys
import unittest

import harness


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


def facts(path):
    """What a faithful copy must have in common with its original."""
    info = os.lstat(path)
    common = (stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), info.st_uid, info.st_gid)
    if stat.S_ISLNK(info.st_mode):
        return common + (os.readlink(path),)
    if stat.S_ISREG(info.st_mode):
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        return common + (info.st_size, info.st_mtime_ns, info.st_nlink, digest)
    return common + (info.st_mtime_ns,)


def tree(root):
    return {str(path.relative_to(root)): facts(path) for path in sorted(root.rglob("*"))}


def files(root):
    """The tree without its directories: rsync keeps their times to the second only."""
    return {name: there for name, there in tree(root).items() if not stat.S_ISDIR(there[0])}


class ProgramCase(harness.DirectoryCase):
    def run_in(self, *words, expect=0, **options):
        env = dict(os.environ, HOME=str(self.dir), LC_ALL="C.UTF-8", TERM="xterm",
                   GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL="/dev/null")
        done = subprocess.run([str(word) for word in words], cwd=options.pop("cwd", self.dir), env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, **options)
        self.assertEqual(expect, done.returncode, f"{words}: {done.stdout!r} {done.stderr!r}")
        return done.stdout.decode()

    def sample_tree(self, name="sample"):
        """Files of several sizes, links of both kinds, odd names, modes and times."""
        root = self.dir / name
        for folder in ("", "a", "a/b", "빈 폴더", "a/b/c"):
            (root / folder).mkdir()
        for number in range(40):
            path = root / ("a", "a/b", "a/b/c", ".")[number % 4] / f"file {number}"
            path.write_bytes(harness.noise(number * number * 50, f"tree{number}"))
            os.chmod(path, (0o644, 0o600, 0o755)[number % 3])
            os.utime(path, ns=(10**18 + number, 10**18 + 7 * number))
        (root / "a/메모 🧠.md").write_text("기억\n")
        os.symlink("../메모 🧠.md", root / "a/b/link")
        os.symlink("nowhere", root / "dangling")
        os.link(root / "a/메모 🧠.md", root / "hard")
        (root / "big").write_bytes(harness.noise(3_000_000))
        os.utime(root / "a/b", ns=(10**18, 10**18 + 1))
        return root


class Editors(ProgramCase):
    @needs("vim")
    def test_vim_with_each_backupcopy(self):
        for how in ("yes", "no", "auto", "auto,breaksymlink", "auto,breakhardlink"):
            with self.subTest(backupcopy=how):
                path = self.write("note.md", "하나\ntwo\n".encode())
                os.chmod(path, 0o640)
                self.run_in("vim", "-u", "NONE", "-i", "NONE", "-es", "-N", "-c", f"set backup backupcopy={how}",
                            "-c", "set directory=. backupdir=. backupskip=", "-c", "%s/two/둘/", "-c", "wq", path)
                self.assertEqual("하나\n둘\n", path.read_text())
                self.assertEqual(0o640, stat.S_IMODE(path.stat().st_mode))
                self.assertEqual("하나\ntwo\n", (self.dir / "note.md~").read_text())
                self.assertEqual({"note.md", "note.md~"}, set(os.listdir(self.dir)))
                os.unlink(self.dir / "note.md~")

    @needs("vim")
    def test_vim_with_undo_and_swap_files(self):
        path = self.write("note.md", b"one\n")
        self.run_in("vim", "-u", "NONE", "-i", "NONE", "-es", "-N", "-c", "set undofile undodir=. directory=.",
                    "-c", "normal Gotwo", "-c", "w", "-c", "normal Gothree", "-c", "wq", path)
        self.assertEqual("one\ntwo\nthree\n", path.read_text())
        self.assertIn(".note.md.un~", os.listdir(self.dir))

    @needs("nano")
    def test_nano(self):
        path = self.write("note.md", b"old line\n")
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="xterm", HOME=str(self.dir))
            os.chdir(self.dir)
            os.execvp("nano", ["nano", "--ignorercfiles", "--backup", str(path)])
        screen = b""

        def shows(text):
            nonlocal screen
            if select.select([terminal], [], [], 0)[0]:
                try:
                    screen += os.read(terminal, 65536)
                except OSError:
                    return True
            return text in screen
        harness.wait_until(lambda: shows(b"old line"), "nano shows the file")
        os.write(terminal, b"new ")
        harness.wait_until(lambda: shows(b"new"), "nano shows what was typed")
        os.write(terminal, b"\x0f\r")
        harness.wait_until(lambda: path.read_bytes() == b"new old line\n" or shows(b"\0never"),
                           "nano saves")
        os.write(terminal, b"\x18")
        harness.wait_until(lambda: shows(b"\0never") or os.waitpid(child, os.WNOHANG)[0] == child,
                           "nano ends")
        os.close(terminal)
        self.assertEqual(b"new old line\n", path.read_bytes())
        self.assertEqual(b"old line\n", (self.dir / "note.md~").read_bytes())

    def test_sed_in_place(self):
        path = self.write("f", b"a\nb\na\n" * 1000)
        self.run_in("sed", "-i.bak", "s/a/가/", path)
        self.assertEqual("가\nb\n가\n" * 1000, path.read_text())
        self.assertEqual(b"a\nb\na\n" * 1000, (self.dir / "f.bak").read_bytes())
        self.assertEqual(["f", "f.bak"], sorted(os.listdir(self.dir)))

    def test_shell_redirections(self):
        self.run_in("sh", "-c", "echo one > f; echo two >> f; cat f > g; : > f; tee h < g; "
                    "(echo x; echo y) > both; { cat; } <> both > copy")
        read = {name: (self.dir / name).read_text() for name in os.listdir(self.dir)}
        self.assertEqual({"f": "", "g": "one\ntwo\n", "h": "one\ntwo\n", "both": "x\ny\n", "copy": ""},
                         {**read, "copy": ""})

    @needs("tail")
    def test_tail_follows_a_growing_and_a_replaced_file(self):
        path = self.write("log", b"first\n")
        tail = subprocess.Popen(["tail", "-F", "-n", "+1", str(path)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        self.addCleanup(tail.stdout.close)
        self.addCleanup(tail.wait)
        self.addCleanup(tail.kill)
        seen = b""

        def saw(text):
            nonlocal seen
            if select.select([tail.stdout], [], [], 0)[0]:
                seen += os.read(tail.stdout.fileno(), 65536)
            return text in seen
        harness.wait_until(lambda: saw(b"first"), "tail shows what was there")
        with open(path, "ab") as file:
            file.write(b"second\n")
        harness.wait_until(lambda: saw(b"second"), "tail shows the new line")
        os.rename(self.write("log.new", b"third\n"), path)
        harness.wait_until(lambda: saw(b"third"), "tail shows the new file")


class Repositories(ProgramCase):
    @needs("git")
    def test_git_commits_collects_and_checks(self):
        git = ["git", "-c", "user.name=Tester", "-c", "user.email=tester@example.invalid",
               "-c", "init.defaultBranch=main", "-c", "gc.auto=0"]
        root = self.sample_tree("repository")
        self.run_in(*git, "init", "-q", cwd=root)
        for number in range(5):
            (root / f"new{number}").write_text(f"{number}\n" * 100)
            self.run_in(*git, "add", "-A", cwd=root)
            self.run_in(*git, "commit", "-q", "-m", f"change {number}", cwd=root)
        self.assertEqual("", self.run_in(*git, "status", "--porcelain", cwd=root))
        before = self.run_in(*git, "ls-files", "-s", cwd=root)
        self.run_in(*git, "gc", "-q", "--aggressive", "--prune=now", cwd=root)
        self.run_in(*git, "fsck", "--full", "--strict", cwd=root)
        self.assertEqual(before, self.run_in(*git, "ls-files", "-s", cwd=root))
        self.run_in(*git, "clone", "-q", "--no-hardlinks", root, self.dir / "clone")
        self.assertEqual("", self.run_in(*git, "status", "--porcelain", cwd=self.dir / "clone"))
        self.run_in(*git, "checkout", "-q", "HEAD~3", cwd=root)
        self.assertFalse((root / "new4").exists())
        self.run_in(*git, "checkout", "-q", "main", cwd=root)
        self.assertTrue((root / "new4").exists())


class Databases(ProgramCase):
    def fill(self, mode):
        base = sqlite3.connect(self.dir / "db", isolation_level=None, timeout=30)
        self.assertEqual(mode, base.execute(f"pragma journal_mode={mode}").fetchone()[0])
        base.execute("create table notes (id integer primary key, text)")
        for number in range(100):
            base.execute("begin")
            base.execute("insert into notes (text) values (?)", (f"메모 {number} " * 50,))
            base.execute("commit" if number % 10 else "rollback")
        base.execute("delete from notes where id % 7 = 0")
        base.execute("vacuum")
        self.assertEqual("ok", base.execute("pragma integrity_check").fetchone()[0])
        count = base.execute("select count(*) from notes").fetchone()[0]
        base.close()
        again = sqlite3.connect(self.dir / "db")
        self.assertEqual(count, again.execute("select count(*) from notes").fetchone()[0])
        again.close()

    def test_sqlite_with_a_rollback_journal(self):
        for mode in ("delete", "truncate", "persist"):
            with self.subTest(mode=mode):
                self.fill(mode)
                for name in os.listdir(self.dir):
                    os.unlink(self.dir / name)

    def test_sqlite_with_a_write_ahead_log(self):
        self.fill("wal")

    def write_together(self, mode):
        base = sqlite3.connect(self.dir / "db", isolation_level=None)
        base.execute(f"pragma journal_mode={mode}")
        base.execute("create table notes (writer, number, unique (writer, number))")
        base.close()

        def insert(writer):
            mine = sqlite3.connect(self.dir / "db", isolation_level=None, timeout=60)
            for number in range(50):
                mine.execute("begin immediate")
                mine.execute("insert into notes values (?, ?)", (writer, number))
                mine.execute("commit")
            mine.close()
        harness.together(4, insert)
        base = sqlite3.connect(self.dir / "db")
        self.assertEqual("ok", base.execute("pragma integrity_check").fetchone()[0])
        self.assertEqual(200, base.execute("select count(*) from notes").fetchone()[0])
        base.close()

    def test_sqlite_with_four_writers_of_a_write_ahead_log(self):
        self.write_together("wal")

    def test_sqlite_with_four_writers_of_a_rollback_journal(self):
        self.write_together("delete")


class Copying(ProgramCase):
    def test_cp_keeps_everything(self):
        source = self.sample_tree()
        os.setxattr(source / "big", "user.note", "값".encode())
        self.run_in("cp", "-a", source, self.dir / "copy")
        self.assertEqual(tree(source), tree(self.dir / "copy"))
        self.assertEqual("값".encode(), os.getxattr(self.dir / "copy/big", "user.note"))

    def test_tar_packs_and_unpacks(self):
        source = self.sample_tree()
        self.run_in("tar", "-cf", "archive.tar", "-C", source, ".")
        (self.dir / "copy").mkdir()
        self.run_in("tar", "-xpf", "archive.tar", "-C", self.dir / "copy")
        copy, original = tree(self.dir / "copy"), tree(source)
        self.assertEqual(set(original), set(copy))
        for name, there in original.items():
            # The archive format keeps whole seconds only.
            self.assertEqual([f for f in there if not isinstance(f, int) or f < 10**15],
                             [f for f in copy[name] if not isinstance(f, int) or f < 10**15])
        self.run_in("tar", "-df", "archive.tar", "-C", source)

    @needs("rsync")
    def test_rsync_copies_updates_and_deletes(self):
        source, copy = self.sample_tree(), self.dir / "copy"
        self.run_in("rsync", "-aH", f"{source}/", copy)
        self.assertEqual(files(source), files(copy))
        self.assertEqual("", self.run_in("rsync", "-aHni", f"{source}/", copy))
        (source / "big").write_bytes(harness.noise(3_000_000)[:1_500_000] + b"changed")
        (source / "dangling").unlink()
        shutil.rmtree(source / "a/b/c")
        for options in (["--inplace", "--no-whole-file"], []):
            self.run_in("rsync", "-aH", "--delete", "--checksum", *options, f"{source}/", copy)
            self.assertEqual(files(source), files(copy))

    def test_shutil_copies_moves_and_removes(self):
        source = self.sample_tree()
        shutil.copytree(source, self.dir / "copy", symlinks=True)
        self.assertEqual(set(tree(source)), set(tree(self.dir / "copy")))
        shutil.move(self.dir / "copy", self.dir / "moved")
        shutil.rmtree(self.dir / "moved")
        self.assertEqual(["sample"], os.listdir(self.dir))

    def test_rm_removes_a_tree(self):
        source = self.sample_tree()
        for number in range(1000):
            (source / "a" / f"n{number}").touch()
        self.run_in("rm", "-r", source)
        self.assertEqual([], os.listdir(self.dir))

    def test_dd_of_blocks(self):
        data = harness.noise(1_000_000)
        self.write("source", data)
        self.run_in("dd", "if=source", "of=goal", "bs=7001", "conv=fsync", "status=none")
        self.assertTrue(data == (self.dir / "goal").read_bytes())


class Searching(ProgramCase):
    def test_find_and_grep_see_the_tree_and_nothing_else(self):
        source = self.sample_tree()
        found = self.run_in("find", source, "-mindepth", "1").splitlines()
        self.assertEqual({f"{source}/{name}" for name in tree(source)}, set(found))
        self.assertEqual(len(set(found)), len(found))
        self.assertEqual(3, len(self.run_in("find", source, "-type", "l", "-o", "-samefile",
                                            source / "hard", "-name", "hard").splitlines()))
        hits = self.run_in("grep", "-rl", "기억", source).splitlines()
        self.assertEqual({f"{source}/a/메모 🧠.md", f"{source}/hard"}, set(hits))

    def test_ls_and_du(self):
        source = self.sample_tree()
        self.assertIn("메모 🧠.md", self.run_in("ls", "-lR", source))
        apparent = int(self.run_in("du", "-s", "--apparent-size", "--block-size=1", source).split()[0])
        self.assertGreaterEqual(apparent, 3_000_000)

    def test_running_a_program_from_the_mount(self):
        script = self.write("tool", b"#!/bin/sh\necho ran \"$1\"\n")
        os.chmod(script, 0o755)
        self.assertEqual("ran here\n", self.run_in(script, "here"))
        shutil.copy("/bin/true", self.dir / "true")
        self.run_in(self.dir / "true")

    def test_python_imports_from_the_mount(self):
        self.write("module_of_mine.py", b"VALUE = 42\n")
        for _ in range(2):
            self.assertEqual("42\n", self.run_in(sys.executable, "-c",
                                                 "import module_of_mine; print(module_of_mine.VALUE)",
                                                 cwd=self.dir))


if __name__ == "__main__":
    harness.main()
