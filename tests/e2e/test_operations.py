#!/usr/bin/env python3
"""Each operation on files and directories, one at a time, with its result read back."""

import errno
import os
import stat
import unittest

import harness
from syscalls import (RENAME_EXCHANGE, RENAME_NOREPLACE, UTIME_NOW, UTIME_OMIT, DirectoryStream,
                      fallocate, renameat2, utimensat)

MANY = harness.count("ENTRIES", 100_000)


class Files(harness.DirectoryCase):
    def test_a_new_file_reads_back(self):
        data = harness.noise(10_000)
        path = self.write("f", data)
        self.assertEqual(data, path.read_bytes())
        self.assertEqual(len(data), path.stat().st_size)
        self.assertEqual(1, path.stat().st_nlink)

    def test_sizes_around_every_limit_read_back(self):
        kib = 1024
        for size in (0, 1, 4095, 4096, 4097, 128 * kib, 256 * kib - 1, 256 * kib, 256 * kib + 1,
                     512 * kib, 4096 * kib, 4096 * kib + 1, 9000 * kib):
            with self.subTest(size=size):
                data = harness.noise(size)
                path = self.write(f"f{size}", data)
                self.assertEqual(size, path.stat().st_size)
                self.assertTrue(data == path.read_bytes(), "other bytes came back")

    def test_overwriting_in_the_middle_changes_only_that(self):
        data = bytearray(harness.noise(600_000))
        path = self.write("f", data)
        with open(path, "r+b") as file:
            for offset in (0, 4095, 262_143, 599_990):
                file.seek(offset)
                file.write(b"0123456789")
                data[offset:offset + 10] = b"0123456789"
        self.assertTrue(bytes(data) == path.read_bytes())

    def test_appending_adds_at_the_end(self):
        path = self.write("f", b"one\n")
        for line in (b"two\n", b"three\n"):
            with open(path, "ab") as file:
                file.write(line)
        self.assertEqual(b"one\ntwo\nthree\n", path.read_bytes())

    def test_a_reader_sees_what_was_written_before_close(self):
        path = self.dir / "f"
        with open(path, "wb", buffering=0) as writer, open(path, "rb", buffering=0) as reader:
            writer.write(b"first")
            self.assertEqual(b"first", reader.read())
            writer.write(b" second")
            self.assertEqual(b" second", reader.read())
            self.assertEqual(12, path.stat().st_size)

    def test_truncating_shortens_and_lengthens(self):
        path = self.write("f", b"0123456789")
        os.truncate(path, 4)
        self.assertEqual(b"0123", path.read_bytes())
        os.truncate(path, 8)
        self.assertEqual(b"0123\0\0\0\0", path.read_bytes())
        with open(path, "r+b") as file:
            file.truncate(0)
            file.write(b"new")
        self.assertEqual(b"new", path.read_bytes())

    def test_truncating_a_large_file_inside_a_chunk(self):
        data = harness.noise(1_000_000)
        path = self.write("f", data)
        os.truncate(path, 300_001)
        os.truncate(path, 700_000)
        self.assertTrue(data[:300_001] + bytes(399_999) == path.read_bytes())

    def test_opening_with_truncation_empties_the_file(self):
        path = self.write("f", b"old content")
        os.close(os.open(path, os.O_WRONLY | os.O_TRUNC))
        self.assertEqual(b"", path.read_bytes())

    def test_exclusive_creation_happens_once(self):
        path = self.dir / "f"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        self.assert_errno(errno.EEXIST, os.open, path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def test_unlinking_removes_the_name(self):
        path = self.write("f")
        path.unlink()
        self.assert_errno(errno.ENOENT, os.stat, path)
        self.assertEqual([], os.listdir(self.dir))

    def test_fsync_of_file_and_directory(self):
        path = self.dir / "f"
        fd = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.write(fd, b"durable")
        os.fsync(fd)
        os.fdatasync(fd)
        os.close(fd)
        folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)
        self.assertEqual(b"durable", path.read_bytes())

    def test_statfs_is_plausible(self):
        self.write("f", harness.noise(100_000))
        facts = os.statvfs(self.dir)
        self.assertEqual(255, facts.f_namemax)
        self.assertGreater(facts.f_blocks, 0)
        self.assertGreaterEqual(facts.f_blocks, facts.f_bfree)
        self.assertGreaterEqual(facts.f_bfree, facts.f_bavail)
        self.assertGreater(facts.f_files, 0)


class Names(harness.DirectoryCase):
    def test_rename_moves_and_replaces(self):
        self.write("a", b"A")
        self.write("b", b"B")
        number = os.stat(self.dir / "a").st_ino
        os.rename(self.dir / "a", self.dir / "b")
        self.assertEqual(["b"], os.listdir(self.dir))
        self.assertEqual(b"A", (self.dir / "b").read_bytes())
        self.assertEqual(number, os.stat(self.dir / "b").st_ino)

    def test_rename_between_directories(self):
        (self.dir / "x").mkdir()
        (self.dir / "y").mkdir()
        self.write("x/f", b"moved")
        os.rename(self.dir / "x/f", self.dir / "y/g")
        self.assertEqual([], os.listdir(self.dir / "x"))
        self.assertEqual(b"moved", (self.dir / "y/g").read_bytes())

    def test_rename_of_a_directory_takes_its_tree_along(self):
        (self.dir / "x/deep/er").mkdir(parents=True)
        self.write("x/deep/er/f", b"inside")
        (self.dir / "y").mkdir()
        os.rename(self.dir / "x", self.dir / "y")
        self.assertEqual(b"inside", (self.dir / "y/deep/er/f").read_bytes())
        os.rename(self.dir / "y/deep", self.dir / "z")
        self.assertEqual(b"inside", (self.dir / "z/er/f").read_bytes())
        parent = os.stat(self.dir / "z/..").st_ino
        self.assertEqual(os.stat(self.dir).st_ino, parent)

    def test_noreplace_refuses_and_moves(self):
        self.write("a", b"A")
        self.write("b", b"B")
        self.assert_errno(errno.EEXIST, renameat2, self.dir / "a", self.dir / "b", RENAME_NOREPLACE)
        self.assertEqual(b"B", (self.dir / "b").read_bytes())
        renameat2(self.dir / "a", self.dir / "c", RENAME_NOREPLACE)
        self.assertEqual(b"A", (self.dir / "c").read_bytes())

    def test_exchange_swaps_files_and_directories(self):
        self.write("a", b"A")
        (self.dir / "d").mkdir()
        self.write("d/inside", b"I")
        renameat2(self.dir / "a", self.dir / "d", RENAME_EXCHANGE)
        self.assertEqual(b"A", (self.dir / "d").read_bytes())
        self.assertEqual(b"I", (self.dir / "a/inside").read_bytes())

    def test_hard_links_are_one_file(self):
        first = self.write("first", b"one")
        second = self.dir / "second"
        os.link(first, second)
        self.assertEqual(2, first.stat().st_nlink)
        self.assertEqual(first.stat().st_ino, second.stat().st_ino)
        second.write_bytes(b"two two")
        self.assertEqual(b"two two", first.read_bytes())
        os.chmod(first, 0o600)
        self.assertEqual(0o600, stat.S_IMODE(second.stat().st_mode))
        first.unlink()
        self.assertEqual(1, second.stat().st_nlink)
        self.assertEqual(b"two two", second.read_bytes())

    def test_symlinks_keep_any_target(self):
        for number, target in enumerate(("f", "../x/./y", "/nowhere/at/all", "기억/메모", "x" * 4095)):
            link = self.dir / f"link{number}"
            os.symlink(target, link)
            self.assertEqual(target, os.readlink(link))
            self.assertEqual(len(os.fsencode(target)), os.lstat(link).st_size)
        self.write("f", b"through")
        self.assertEqual(b"through", (self.dir / "link0").read_bytes())

    def test_directories_are_made_and_removed(self):
        os.mkdir(self.dir / "d", 0o750)
        facts = os.stat(self.dir / "d")
        self.assertTrue(stat.S_ISDIR(facts.st_mode))
        self.assertEqual(0o750, stat.S_IMODE(facts.st_mode))
        self.assertEqual(2, facts.st_nlink)
        os.rmdir(self.dir / "d")
        self.assertEqual([], os.listdir(self.dir))

    def test_a_deep_tree(self):
        path = self.dir
        for level in range(200):
            path = path / f"d{level}"
            path.mkdir()
        (path / "leaf").write_bytes(b"deep")
        self.assertEqual(b"deep", (path / "leaf").read_bytes())
        self.assertEqual(200, sum(len(dirs) for _, dirs, _ in os.walk(self.dir)))

    def test_a_directory_of_many_entries_lists_each_once(self):
        names = {f"entry-{number:06}" for number in range(MANY)}
        for name in sorted(names):
            os.close(os.open(self.dir / name, os.O_CREAT | os.O_WRONLY))
        listed = os.listdir(self.dir)
        self.assertEqual(MANY, len(listed))
        self.assertEqual(names, set(listed))

    def test_listing_while_entries_come_and_go(self):
        keep = {f"keep{number}" for number in range(3000)}
        for name in keep:
            self.write(name, b"")
        seen = []
        with os.scandir(self.dir) as entries:
            for count, entry in enumerate(entries):
                seen.append(entry.name)
                if count % 10 == 0:
                    self.write(f"new{count}", b"")
                    (self.dir / f"new{count}").unlink()
        kept = [name for name in seen if name in keep]
        self.assertEqual(len(keep), len(kept))
        self.assertEqual(keep, set(kept))

    def test_a_position_in_a_listing_stays_valid(self):
        names = {f"entry-{number}" for number in range(2000)}
        for name in names:
            self.write(name, b"")
        stream = DirectoryStream(self.dir)
        self.addCleanup(stream.close)
        order, places = [], [stream.tell()]
        while (name := stream.next()) is not None:
            order.append(name)
            places.append(stream.tell())
        self.assertEqual(names | {".", ".."}, set(order))
        for at in (1500, 3, 777, 0, len(order) - 1):
            stream.seek(places[at])
            self.assertEqual(order[at], stream.next())
        # Entries around a position come and go; what stays is found from there on.
        for name in order[:1000:2] + order[1000::2]:
            if name not in (".", ".."):
                (self.dir / name).unlink()
        for number in range(500):
            self.write(f"new-{number}", b"")
        stream.seek(places[1000])
        rest = []
        while (name := stream.next()) is not None:
            rest.append(name)
        self.assertEqual(len(rest), len(set(rest)), "an entry came twice")
        self.assertLessEqual(set(order[1001::2]), set(rest))
        self.assertFalse(set(order[:1000]) & set(rest), "an entry from before the position")
        stream.rewind()
        again = set(iter(stream.next, None))
        self.assertEqual(set(os.listdir(self.dir)) | {".", ".."}, again)

    def test_the_largest_number_of_links(self):
        path = self.write("f")
        with self.assertRaises(OSError) as caught:
            for number in range(70_000):
                os.link(path, self.dir / f"link-{number}")
        self.assertEqual(errno.EMLINK, caught.exception.errno)
        self.assertEqual(65_000, path.stat().st_nlink)
        os.unlink(self.dir / "link-7")
        os.link(path, self.dir / "link-again")
        self.assertEqual(65_000, path.stat().st_nlink)


class Attributes(harness.DirectoryCase):
    def test_modes(self):
        path = self.write("f")
        for mode in (0o000, 0o400, 0o644, 0o777, 0o1777, 0o2755, 0o4755):
            os.chmod(path, mode)
            self.assertEqual(mode, stat.S_IMODE(path.stat().st_mode))

    @unittest.skipUnless(harness.is_root(), "needs root")
    def test_owners(self):
        path = self.write("f")
        os.chown(path, 1234, 5678)
        self.assertEqual((1234, 5678), (path.stat().st_uid, path.stat().st_gid))
        os.chown(path, -1, 99)
        self.assertEqual((1234, 99), (path.stat().st_uid, path.stat().st_gid))
        os.symlink("f", self.dir / "link")
        os.lchown(self.dir / "link", 7, 8)
        self.assertEqual((7, 8), (os.lstat(self.dir / "link").st_uid, os.lstat(self.dir / "link").st_gid))
        self.assertEqual((1234, 99), (path.stat().st_uid, path.stat().st_gid))

    def test_times_keep_their_nanoseconds(self):
        path = self.write("f")
        for atime, mtime in ((1, 999_999_999), (1_700_000_000_123_456_789, 1_600_000_000_987_654_321),
                             (-1_000_000_001, -1)):
            os.utime(path, ns=(atime, mtime))
            self.assertEqual((atime, mtime), (path.stat().st_atime_ns, path.stat().st_mtime_ns))

    def test_times_of_a_directory_and_a_symlink(self):
        (self.dir / "d").mkdir()
        os.symlink("d", self.dir / "link")
        os.utime(self.dir / "d", ns=(5, 6))
        os.utime(self.dir / "link", ns=(7, 8), follow_symlinks=False)
        self.assertEqual(6, os.stat(self.dir / "d").st_mtime_ns)
        self.assertEqual(8, os.lstat(self.dir / "link").st_mtime_ns)

    def test_omit_and_now_are_exact(self):
        path = self.write("f")
        os.utime(path, ns=(1_000, 2_000))
        utimensat(path, (0, UTIME_OMIT), (3, 4))
        self.assertEqual((1_000, 3_000_000_004), (path.stat().st_atime_ns, path.stat().st_mtime_ns))
        before = self.now()
        utimensat(path, (0, UTIME_NOW), (0, UTIME_OMIT))
        self.assertEqual(3_000_000_004, path.stat().st_mtime_ns)
        self.assertGreaterEqual(path.stat().st_atime_ns, before)

    def now(self):
        """The file system's own clock, a little coarser than the system's."""
        return self.write("clock").stat().st_mtime_ns

    def test_writing_updates_mtime_and_the_parent_by_creation(self):
        path = self.write("f")
        os.utime(path, ns=(1, 1))
        with open(path, "ab") as file:
            file.write(b"more")
        self.assertGreater(path.stat().st_mtime_ns, 10**18)
        for change in (lambda: self.write("g"), lambda: os.mkdir(self.dir / "d"),
                       lambda: os.rename(self.dir / "g", self.dir / "h"),
                       lambda: os.unlink(self.dir / "h"), lambda: os.rmdir(self.dir / "d")):
            os.utime(self.dir, ns=(1, 1))
            change()
            self.assertGreater(os.stat(self.dir).st_mtime_ns, 10**18)

    def test_times_set_through_a_handle_survive_close(self):
        path = self.dir / "f"
        with open(path, "wb") as file:
            file.write(b"data")
            file.flush()
            os.utime(file.fileno(), ns=(11, 12))
        self.assertEqual((11, 12), (path.stat().st_atime_ns, path.stat().st_mtime_ns))
        self.assertEqual(b"data", path.read_bytes())

    def test_extended_attributes(self):
        path = self.write("f")
        values = {"user.text": "값".encode(), "user.empty": b"", "user.bytes": bytes(range(256))}
        for name, value in values.items():
            os.setxattr(path, name, value)
        self.assertEqual(set(values), {n for n in os.listxattr(path) if n in values})
        for name, value in values.items():
            self.assertEqual(value, os.getxattr(path, name))
        os.setxattr(path, "user.text", b"other", os.XATTR_REPLACE)
        self.assertEqual(b"other", os.getxattr(path, "user.text"))
        os.removexattr(path, "user.text")
        self.assert_errno(errno.ENODATA, os.getxattr, path, "user.text")

    def test_extended_attributes_of_directories_and_renamed_files(self):
        path = self.write("f")
        os.setxattr(path, "user.a", b"1")
        os.setxattr(self.dir, "user.b", b"2")
        os.rename(path, self.dir / "g")
        self.assertEqual(b"1", os.getxattr(self.dir / "g", "user.a"))
        self.assertEqual(b"2", os.getxattr(self.dir, "user.b"))


@unittest.skipUnless(harness.is_root(), "needs root to act as two users")
class Privileges(harness.DirectoryCase):
    """What takes suid and sgid away from a file and what does not, and sgid of directories."""

    def left(self, action, mode=0o6777, uid=harness.NOBODY):
        path = self.write("f", b"x" * 100)
        os.chown(path, 0, 0)
        os.chmod(path, mode)
        os.stat(path)
        harness.in_child(lambda: action(path), uid)
        left = stat.S_IMODE(path.stat().st_mode)
        path.unlink()
        return left

    @staticmethod
    def through(flags, action):
        def call(path):
            fd = os.open(path, flags)
            try:
                action(fd)
            finally:
                os.close(fd)
        return call

    def test_what_changes_the_bytes_of_a_file_takes_them_away(self):
        changes = {
            "write": self.through(os.O_WRONLY, lambda fd: os.write(fd, b"y")),
            "append": self.through(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"y")),
            "truncate": lambda path: os.truncate(path, 5),
            "ftruncate": self.through(os.O_RDWR, lambda fd: os.ftruncate(fd, 5)),
            "O_TRUNC": self.through(os.O_WRONLY | os.O_TRUNC, lambda fd: None),
            "O_CREAT": self.through(os.O_CREAT | os.O_WRONLY | os.O_TRUNC, lambda fd: None),
            "fallocate": self.through(os.O_RDWR, lambda fd: fallocate(fd, 0, 0, 200)),
            "copy": self.through(os.O_RDWR, lambda fd: os.copy_file_range(fd, fd, 10, 0, 50)),
        }
        for name, change in changes.items():
            with self.subTest(change=name):
                self.assertEqual(0o777, self.left(change))

    def test_what_does_not_change_bytes_leaves_them(self):
        uses = {
            "open": self.through(os.O_RDWR, lambda fd: None),
            "read": self.through(os.O_RDONLY, lambda fd: os.read(fd, 10)),
            "utimes": lambda path: os.utime(path),
        }
        for name, use in uses.items():
            with self.subTest(use=name):
                self.assertEqual(0o6777, self.left(use))

    def test_root_keeps_them_when_it_writes_but_not_when_it_changes_the_owner(self):
        write = self.through(os.O_WRONLY, lambda fd: os.write(fd, b"y"))
        self.assertEqual(0o6777, self.left(write, uid=0))
        self.assertEqual(0o6777, self.left(lambda path: os.truncate(path, 5), uid=0))
        self.assertEqual(0o777, self.left(lambda path: os.chown(path, 5, -1), uid=0))
        self.assertEqual(0o2767, self.left(lambda path: os.chown(path, 5, -1), 0o6767, uid=0))

    def test_directories_hand_down_their_group(self):
        os.chown(self.dir, 0, 4242)
        os.chmod(self.dir, 0o2755)
        self.write("f")
        os.mkdir(self.dir / "d")
        os.mkfifo(self.dir / "p")
        os.symlink("f", self.dir / "s")
        facts = {name: os.lstat(self.dir / name) for name in "fdps"}
        self.assertEqual([4242] * 4, [facts[name].st_gid for name in "fdps"])
        self.assertEqual(0o2755, stat.S_IMODE(facts["d"].st_mode))
        self.assertEqual(0, facts["f"].st_mode & stat.S_ISGID)

    def test_they_are_gone_for_good(self):
        """Also where the kernel saw the file without them first, and after they are set again."""
        write = self.through(os.O_WRONLY, lambda fd: os.write(fd, b"y"))
        path = self.write("f", b"x")
        os.chmod(path, 0o777)
        for _ in range(3):
            harness.in_child(lambda: write(path), harness.NOBODY)
            os.chmod(path, 0o4777)
            harness.in_child(lambda: write(path), harness.NOBODY)
            self.assertEqual(0o777, stat.S_IMODE(path.stat().st_mode))


if __name__ == "__main__":
    harness.main()
