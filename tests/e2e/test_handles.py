#!/usr/bin/env python3
"""What lives as long as an open file: offsets, mappings, locks, unlinked files, holes, copies."""

import errno
import fcntl
import mmap
import os
import shutil
import stat
import struct
import subprocess

import harness
from syscalls import (FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE, Inotify, fallocate,
                      handle_of, statx_mask)

KIB = 1024
F_OFD_SETLK = 37  # of <fcntl.h>; the fcntl module has it only on some versions


class Mappings(harness.DirectoryCase):
    def test_a_shared_mapping_writes_the_file(self):
        path = self.write("f", bytes(64 * KIB))
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[5:10] = b"hello"
            mapped[40_000:40_003] = b"end"
            mapped.flush()
        data = path.read_bytes()
        self.assertEqual((b"hello", b"end"), (data[5:10], data[40_000:40_003]))

    def test_a_shared_mapping_outlives_its_descriptor(self):
        path = self.write("f", bytes(8 * KIB))
        with open(path, "r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        mapped[100:105] = b"later"
        mapped.close()
        self.assertEqual(b"later", path.read_bytes()[100:105])

    def test_a_mapping_and_write_see_each_other(self):
        path = self.write("f", bytes(4 * KIB))
        with open(path, "r+b", buffering=0) as file, mmap.mmap(file.fileno(), 0) as mapped:
            os.pwrite(file.fileno(), b"written", 10)
            self.assertEqual(b"written", mapped[10:17])
            mapped[20:26] = b"mapped"
            self.assertEqual(b"mapped", os.pread(file.fileno(), 6, 20))

    def test_a_private_mapping_leaves_the_file_alone(self):
        path = self.write("f", b"original" * 1000)
        with open(path, "rb") as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as mapped:
                mapped[0:4] = b"copy"
                self.assertEqual(b"copyinal", mapped[0:8])
        self.assertEqual(b"original" * 1000, path.read_bytes())

    def test_two_processes_share_a_mapping(self):
        path = self.write("f", bytes(4 * KIB))

        def child():
            with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
                mapped[0:5] = b"child"
                mapped.flush()
        with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            harness.in_child(child)
            self.assertEqual(b"child", mapped[0:5])


class Locks(harness.DirectoryCase):
    def test_flock_excludes_other_processes(self):
        path = self.write("f")

        def attempt():
            with open(path, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assert_errno(errno.EAGAIN, harness.in_child, attempt)
            fcntl.flock(file, fcntl.LOCK_UN)
            harness.in_child(attempt)
            fcntl.flock(file, fcntl.LOCK_SH)
            self.assert_errno(errno.EAGAIN, harness.in_child, attempt)

    def test_record_locks_exclude_by_range(self):
        path = self.write("f", bytes(100))

        def attempt(start):
            with open(path, "r+b") as file:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, start)
        with open(path, "r+b") as file:
            fcntl.lockf(file, fcntl.LOCK_EX, 10, 0)
            self.assert_errno(errno.EAGAIN, harness.in_child, lambda: attempt(5))
            harness.in_child(lambda: attempt(50))
            request = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
            answer = harness.in_child(lambda: self.ask_lock(path, request))
            self.assertEqual((fcntl.F_WRLCK, os.getpid()), answer)

    @staticmethod
    def ask_lock(path, request):
        with open(path, "r+b") as file:
            kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(file, fcntl.F_GETLK, request))
            return kind, pid

    def test_locks_of_open_files_exclude_each_other_within_a_process(self):
        path = self.write("f", bytes(100))
        first, second = (os.open(path, os.O_RDWR) for _ in range(2))
        whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        fcntl.fcntl(first, F_OFD_SETLK, whole)
        self.assert_errno(errno.EAGAIN, fcntl.fcntl, second, F_OFD_SETLK, whole)
        os.close(first)
        fcntl.fcntl(second, F_OFD_SETLK, whole)
        os.close(second)

    def test_many_waiters_for_a_lock_all_get_it(self):
        path = self.write("counter", b"0")

        def count(_):
            for _ in range(20):
                with open(path, "r+b", buffering=0) as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    value = int(file.read())
                    file.seek(0)
                    file.write(str(value + 1).encode())
        harness.together(8, count)
        self.assertEqual(b"160", path.read_bytes())


class Appending(harness.DirectoryCase):
    def test_eight_processes_append_whole_lines(self):
        path = self.dir / "log"

        def append(number):
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            for line in range(200):
                text = f"{number}:{line}:".encode() + b"x" * (line % 90) + b"\n"
                if os.write(fd, text) != len(text):
                    raise AssertionError("short write")
            os.close(fd)
        harness.together(8, append)
        lines = path.read_bytes().splitlines()
        self.assertEqual(1600, len(lines))
        self.assertEqual(1600, len(set(lines)))
        for number in range(8):
            mine = [int(l.split(b":")[1]) for l in lines if l.startswith(b"%d:" % number)]
            self.assertEqual(list(range(200)), mine)

    def test_an_append_goes_to_the_end_wherever_the_offset_is(self):
        path = self.write("f", b"start ")
        fd = os.open(path, os.O_RDWR | os.O_APPEND)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, b"one ")
        path.write_bytes(b"short ")
        os.write(fd, b"two")
        os.close(fd)
        self.assertEqual(b"short two", path.read_bytes())


class Unlinked(harness.DirectoryCase):
    def test_an_unlinked_file_works_until_it_is_closed(self):
        path = self.write("f", b"0123456789")
        fd = os.open(path, os.O_RDWR)
        path.unlink()
        os.pwrite(fd, b"abc", 8)
        os.fsync(fd)
        os.fchmod(fd, 0o600)
        os.utime(fd, ns=(1, 2))
        os.ftruncate(fd, 9)
        facts = os.fstat(fd)
        self.assertEqual((0, 9, 0o600), (facts.st_nlink, facts.st_size, stat.S_IMODE(facts.st_mode)))
        self.assertEqual(b"01234567a", os.pread(fd, 100, 0))
        os.close(fd)
        self.assertEqual([], os.listdir(self.dir))

    def test_an_unlinked_file_has_attributes_until_it_is_closed(self):
        path = self.write("f")
        os.setxattr(path, "user.old", b"1")
        fd = os.open(path, os.O_RDWR)
        new = os.open(self.dir / "new", os.O_RDWR | os.O_CREAT)
        path.unlink()
        (self.dir / "new").unlink()
        for handle in (fd, new):
            os.setxattr(handle, "user.a", b"2")
            self.assertEqual(b"2", os.getxattr(handle, "user.a"))
        os.removexattr(fd, "user.old")
        self.assertEqual(["user.a"], os.listxattr(fd))
        os.close(fd)
        os.close(new)

    def test_a_replaced_file_stays_readable_by_its_handle(self):
        old = self.write("f", b"old content")
        fd = os.open(old, os.O_RDONLY)
        os.rename(self.write("new", b"new content"), old)
        self.assertEqual(b"old content", os.read(fd, 100))
        self.assertEqual(0, os.fstat(fd).st_nlink)
        self.assertEqual(b"new content", old.read_bytes())
        os.close(fd)

    def test_a_name_that_comes_back_is_another_file(self):
        path = self.write("f", b"first")
        fd = os.open(path, os.O_RDWR)
        path.unlink()
        self.write("f", b"second")
        os.pwrite(fd, b"FIRST", 0)
        self.assertNotEqual(os.fstat(fd).st_ino, path.stat().st_ino)
        os.close(fd)
        self.assertEqual(b"second", path.read_bytes())

    def test_a_removed_directory_answers_by_its_handle(self):
        (self.dir / "d").mkdir()
        fd = os.open(self.dir / "d", os.O_RDONLY | os.O_DIRECTORY)
        os.rmdir(self.dir / "d")
        self.assertEqual([], os.listdir(fd))
        self.assert_errno(errno.ENOENT, os.open, "f", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
        os.close(fd)

    def test_opening_never_fails_while_the_name_is_replaced(self):
        path = self.write("f", b"version 0")
        stop_at = 400

        def replace(number):
            if number == 0:
                for version in range(stop_at):
                    os.rename(self.write("tmp", b"version %d" % version), path)
                self.write("done")
                return
            while not (self.dir / "done").exists():
                with open(path, "rb") as file:
                    if not file.read().startswith(b"version "):
                        raise AssertionError("a mixture was read")
        harness.together(3, replace)


class Holes(harness.DirectoryCase):
    def test_a_sparse_file_reads_zeros(self):
        path = self.dir / "f"
        with open(path, "wb") as file:
            file.seek(10 * KIB * KIB)
            file.write(b"end")
        self.assertEqual(10 * KIB * KIB + 3, path.stat().st_size)
        data = path.read_bytes()
        self.assertEqual(b"end", data[-3:])
        self.assertFalse(any(data[:-3]))

    def test_a_file_beyond_four_gigabytes(self):
        path = self.dir / "f"
        with open(path, "wb") as file:
            file.seek(5 << 30)
            file.write(b"far")
        self.assertEqual((5 << 30) + 3, path.stat().st_size)
        with open(path, "rb") as file:
            file.seek((5 << 30) - 2)
            self.assertEqual(b"\0\0far", file.read())

    def test_data_and_holes_are_found(self):
        path = self.dir / "f"
        with open(path, "w+b") as file:
            file.seek(1 << 20)
            file.write(b"data" * KIB)
            file.flush()
            os.fsync(file.fileno())
            fd = file.fileno()
            data = os.lseek(fd, 0, os.SEEK_DATA)
            self.assertLessEqual(data, 1 << 20)
            self.assertGreaterEqual(os.lseek(fd, 1 << 20, os.SEEK_HOLE), (1 << 20) + 4096)
            self.assertEqual((1 << 20) + 4096, os.lseek(fd, 1 << 20, os.SEEK_HOLE))
            self.assertLessEqual(os.lseek(fd, 0, os.SEEK_HOLE), (1 << 20) + 4096)
            with self.assertRaises(OSError) as caught:
                os.lseek(fd, 2 << 20, os.SEEK_DATA)
            self.assertEqual(errno.ENXIO, caught.exception.errno)

    def test_fallocate_extends_or_keeps_the_size(self):
        path = self.write("f", b"abc")
        fd = os.open(path, os.O_RDWR)
        fallocate(fd, FALLOC_KEEP_SIZE, 0, 10_000)
        self.assertEqual(3, os.fstat(fd).st_size)
        fallocate(fd, 0, 0, 10_000)
        self.assertEqual(10_000, os.fstat(fd).st_size)
        os.posix_fallocate(fd, 0, 20_000)
        os.close(fd)
        self.assertEqual(b"abc" + bytes(19_997), path.read_bytes())

    def test_punching_a_hole_zeroes_the_range(self):
        data = bytearray(harness.noise(700_000))
        path = self.write("f", data)
        fd = os.open(path, os.O_RDWR)
        fallocate(fd, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE, 100_000, 400_000)
        data[100_000:500_000] = bytes(400_000)
        os.close(fd)
        self.assertTrue(bytes(data) == path.read_bytes())

    def test_zeroing_a_range_where_it_is_supported(self):
        path = self.write("f", b"x" * 10_000)
        fd = os.open(path, os.O_RDWR)
        try:
            fallocate(fd, FALLOC_ZERO_RANGE, 1_000, 2_000)
        except OSError as error:
            self.assertEqual(errno.EOPNOTSUPP, error.errno)
            self.assertEqual(b"x" * 10_000, path.read_bytes())
        else:
            self.assertEqual(b"x" * 1_000 + bytes(2_000) + b"x" * 7_000, path.read_bytes())
        finally:
            os.close(fd)


class Limits(harness.DirectoryCase):
    def test_a_sparse_file_of_terabytes(self):
        path = self.dir / "f"
        far = 3 << 40
        fd = os.open(path, os.O_CREAT | os.O_RDWR)
        os.pwrite(fd, b"far", far)
        os.ftruncate(fd, far + 10)
        os.fsync(fd)
        self.assertEqual(far + 10, os.fstat(fd).st_size)
        self.assertEqual(far // KIB, os.lseek(fd, 0, os.SEEK_DATA) // KIB)
        os.close(fd)
        fd = os.open(path, os.O_RDONLY)
        self.assertEqual(b"\0\0far\0\0", os.pread(fd, 7, far - 2))
        os.close(fd)

    def test_beyond_the_largest_file(self):
        fd = os.open(self.write("f", b"x"), os.O_RDWR)
        for call in (lambda: os.pwrite(fd, b"y", 1 << 62), lambda: os.ftruncate(fd, 1 << 62),
                     lambda: fallocate(fd, 0, 1 << 62, 1)):
            self.assert_errno(errno.EFBIG, call)
        self.assertEqual(b"x", os.pread(fd, 10, 0))
        os.close(fd)

    def test_limits_of_extended_attributes(self):
        path = self.write("f")
        name = "user." + "n" * 250
        os.setxattr(path, name, b"v")
        self.assertEqual(b"v", os.getxattr(path, name))
        self.assert_errno(errno.ERANGE, os.setxattr, path, name + "n", b"v")
        self.assert_errno(errno.E2BIG, os.setxattr, path, "user.a", bytes(64 * KIB + 1))
        self.assert_errno(errno.EEXIST, os.setxattr, path, name, b"w", os.XATTR_CREATE)
        self.assert_errno(errno.ENODATA, os.setxattr, path, "user.a", b"w", os.XATTR_REPLACE)
        self.assert_errno(errno.ENODATA, os.removexattr, path, "user.a")
        self.assertEqual(b"v", os.getxattr(path, name))


class Refusals(harness.ProductCase):
    """What FUSE with libfuse 3.14 cannot do is refused cleanly, as fs/README.md says."""

    def setUp(self):
        super().setUp()
        if not harness.Options.directory:
            self.dir = self.new_store(harness.AGENT).mount_agent()

    def test_files_without_a_name_and_access_lists(self):
        path = self.dir / "f"
        path.write_bytes(b"x")
        acl = b"\x02\0\0\0" + b"".join(struct.pack("<HHI", tag, 7, 0xffffffff)
                                          for tag in (1, 4, 0x20))
        for call in (lambda: os.open(self.dir, os.O_TMPFILE | os.O_RDWR),
                     lambda: os.setxattr(path, "system.posix_acl_access", acl),
                     lambda: os.getxattr(path, "security.capability"),
                     lambda: os.setxattr(path, "trusted.a", b"x")):
            with self.assertRaises(OSError) as caught:
                call()
            self.assertEqual(errno.EOPNOTSUPP, caught.exception.errno)
        self.assertEqual(["f", "shared"], sorted(os.listdir(self.dir)))
        self.assertEqual([], os.listxattr(path))

    def test_facts_of_statx_and_handles_of_files(self):
        path = self.dir / "f"
        path.write_bytes(b"x")
        basic = 0x7ff
        self.assertEqual(basic, statx_mask(path) & basic)
        self.assertEqual(handle_of(path), handle_of(path))
        (self.dir / "g").write_bytes(b"x")
        self.assertNotEqual(handle_of(path), handle_of(self.dir / "g"))


class Running(harness.DirectoryCase):
    def test_a_program_that_runs_cannot_be_written(self):
        program = self.dir / "sleep"
        shutil.copy("/bin/sleep", program)
        running = subprocess.Popen([program, "60"])
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        harness.wait_until(lambda: os.path.samefile(f"/proc/{running.pid}/exe", program), "exec")
        self.assert_errno(errno.ETXTBSY, os.open, program, os.O_WRONLY)
        self.assert_errno(errno.ETXTBSY, os.truncate, program, 0)
        os.rename(program, self.dir / "moved")
        os.unlink(self.dir / "moved")
        self.assertIsNone(running.poll())


class Watching(harness.DirectoryCase):
    def test_inotify_tells_of_local_changes(self):
        """Changes through the same mount: the kernel tells of them itself."""
        path = self.write("f")
        watch = Inotify(self.dir, 0xfff)
        self.addCleanup(watch.close)
        expected = []
        with open(path, "ab", buffering=0) as file:
            file.write(b"more")
        expected += [(Inotify.MODIFY, "f"), (Inotify.CLOSE_WRITE, "f")]
        os.rename(path, self.dir / "g")
        expected += [(Inotify.MOVED_FROM, "f"), (Inotify.MOVED_TO, "g")]
        self.write("새 파일", b"")
        expected += [(Inotify.CREATE, "새 파일"), (Inotify.CLOSE_WRITE, "새 파일")]
        os.unlink(self.dir / "g")
        expected += [(Inotify.DELETE, "g")]
        wanted = {mask for mask, _ in expected}
        self.assertEqual(expected, [event for event in watch.events() if event[0] in wanted])


class Copies(harness.DirectoryCase):
    def copied(self, data, source_offset, target_offset, size, target=b""):
        source = os.open(self.write("source", data), os.O_RDONLY)
        path = self.write("target", target)
        goal = os.open(path, os.O_RDWR)
        done = 0
        while done < size:
            step = os.copy_file_range(source, goal, size - done, source_offset + done,
                                      target_offset + done)
            if step == 0:
                break
            done += step
        os.close(source)
        os.close(goal)
        return done, path.read_bytes()

    def test_copy_file_range_copies_whole_files(self):
        data = harness.noise(1_500_000)
        done, copy = self.copied(data, 0, 0, len(data))
        self.assertEqual(len(data), done)
        self.assertTrue(data == copy)

    def test_copy_file_range_at_odd_offsets(self):
        data = harness.noise(900_000)
        done, copy = self.copied(data, 12_345, 300_001, 555_555, b"t" * 400_000)
        self.assertEqual(555_555, done)
        self.assertTrue(b"t" * 300_001 + data[12_345:567_900] == copy)

    def test_copy_file_range_ends_with_the_source(self):
        self.assertEqual((3, b"lmn"), self.copied(b"abclmn", 3, 0, 100))

    def test_copy_file_range_of_what_was_not_closed(self):
        path = self.dir / "source"
        with open(path, "w+b", buffering=0) as source, open(self.dir / "goal", "w+b") as goal:
            source.write(b"dirty bytes")
            self.assertEqual(11, os.copy_file_range(source.fileno(), goal.fileno(), 100, 0, 0))
        self.assertEqual(b"dirty bytes", (self.dir / "goal").read_bytes())

    def test_sendfile(self):
        data = harness.noise(300_000)
        source = os.open(self.write("source", data), os.O_RDONLY)
        goal = os.open(self.dir / "goal", os.O_CREAT | os.O_WRONLY)
        sent = 0
        while sent < len(data):
            sent += os.sendfile(goal, source, sent, len(data) - sent)
        os.close(source)
        os.close(goal)
        self.assertTrue(data == (self.dir / "goal").read_bytes())

    def test_direct_io_is_accepted(self):
        path = self.write("f", harness.noise(64 * KIB))
        try:
            fd = os.open(path, os.O_RDWR | os.O_DIRECT)
        except OSError as error:
            if harness.Options.directory and error.errno == errno.EINVAL:
                self.skipTest("the file system of --dir has no O_DIRECT")
            raise
        page = mmap.mmap(-1, 4 * KIB)
        page[:] = b"d" * 4 * KIB
        os.pwritev(fd, [page], 8 * KIB)
        os.preadv(fd, [page], 0)
        os.close(fd)
        self.assertEqual(b"d" * 4 * KIB, path.read_bytes()[8 * KIB:12 * KIB])
        self.assertEqual(path.read_bytes()[:4 * KIB], page[:])


if __name__ == "__main__":
    harness.main()
