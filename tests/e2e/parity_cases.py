"""Small sequences whose outcome must be the same on every file system.

Each case is a function of an empty directory; what it returns, or the errno that it fails with, is
compared between an ordinary file system and the mount. A case returns nothing that may differ
between file systems (inode numbers, sizes of directories, clocks).
"""

import errno
import os
import socket
import stat

from harness import NOBODY, in_child
from syscalls import (FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, RENAME_EXCHANGE, RENAME_NOREPLACE,
                      fallocate, lgetxattr, renameat2, utimensat)

CASES = []
ROOT_CASES = []


def case(function):
    CASES.append(function)
    return function


def root_case(function):
    """A case about permissions: needs root to become somebody else."""
    ROOT_CASES.append(function)
    return function


def attempt(function, *args, **options):
    """The result of one call, or the name of the errno it failed with."""
    try:
        return function(*args, **options)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))


def put(path, data=b"data", mode=0o644):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)
    os.write(fd, data)
    os.close(fd)
    return path


def get(path):
    with open(path, "rb") as file:
        return file.read()


def opened(path, flags, mode=0o644):
    """Opens and closes: None when it worked."""
    return os.close(os.open(path, flags, mode))


def facts(path):
    info = os.lstat(path)
    size = None if stat.S_ISDIR(info.st_mode) else info.st_size
    return stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), info.st_nlink, size


def tree(d):
    return {name: facts(d / name) for name in sorted(os.listdir(d))}


def populate(d):
    """A file, a full and an empty directory, and links of every kind."""
    put(d / "file")
    os.mkdir(d / "full")
    put(d / "full/inside")
    os.mkdir(d / "empty")
    os.symlink("file", d / "link")
    os.symlink("full", d / "dirlink")
    os.symlink("missing", d / "dangling")
    os.symlink("loop", d / "loop")


PLACES = ("file", "full", "empty", "link", "dirlink", "dangling", "loop", "missing", "missing/x",
          "file/x", "full/inside", "file/", "full/", "missing/", "dirlink/", "link/", "dangling/",
          "full/.", "full/..", "n" * 255, "n" * 256, "dangling/x", "loop/x", "full/" + "n" * 256)


def at_each_place(d, function):
    populate(d)
    return {place: attempt(function, f"{d}/{place}") for place in PLACES}


@case
def open_for_reading(d):
    return at_each_place(d, lambda p: opened(p, os.O_RDONLY))


@case
def open_for_writing(d):
    return at_each_place(d, lambda p: opened(p, os.O_WRONLY))


@case
def open_creating(d):
    return at_each_place(d, lambda p: opened(p, os.O_WRONLY | os.O_CREAT))


@case
def open_creating_exclusively(d):
    return at_each_place(d, lambda p: opened(p, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


@case
def open_as_directory(d):
    return at_each_place(d, lambda p: opened(p, os.O_RDONLY | os.O_DIRECTORY))


@case
def open_without_following(d):
    return at_each_place(d, lambda p: opened(p, os.O_RDONLY | os.O_NOFOLLOW))


@case
def open_truncating(d):
    return at_each_place(d, lambda p: opened(p, os.O_RDWR | os.O_TRUNC)), tree(d)


@case
def open_as_path_only(d):
    return at_each_place(d, lambda p: opened(p, os.O_PATH))


@case
def stat_each(d):
    return at_each_place(d, lambda p: stat.S_IFMT(os.stat(p).st_mode))


@case
def lstat_each(d):
    return at_each_place(d, lambda p: stat.S_IFMT(os.lstat(p).st_mode))


@case
def list_each(d):
    return at_each_place(d, lambda p: sorted(os.listdir(p)))


@case
def mkdir_each(d):
    return at_each_place(d, os.mkdir), tree(d)


@case
def rmdir_each(d):
    return at_each_place(d, os.rmdir), tree(d)


@case
def unlink_each(d):
    return at_each_place(d, os.unlink), tree(d)


@case
def readlink_each(d):
    return at_each_place(d, os.readlink)


@case
def symlink_each(d):
    return at_each_place(d, lambda p: os.symlink("target", p)), tree(d)


@case
def mkfifo_each(d):
    return at_each_place(d, os.mkfifo), tree(d)


@case
def truncate_each(d):
    return at_each_place(d, lambda p: os.truncate(p, 2)), tree(d)


@case
def chmod_each(d):
    return at_each_place(d, lambda p: os.chmod(p, 0o711)), tree(d)


@case
def chown_each(d):
    return at_each_place(d, lambda p: os.chown(p, -1, -1))


@case
def utime_each(d):
    return at_each_place(d, lambda p: os.utime(p, ns=(1, 2)))


@case
def access_each(d):
    return at_each_place(d, lambda p: os.access(p, os.R_OK | os.W_OK))


@case
def statfs_each(d):
    return at_each_place(d, lambda p: os.statvfs(p).f_namemax)


@case
def getxattr_each(d):
    return at_each_place(d, lambda p: os.getxattr(p, "user.none"))


@case
def setxattr_each(d):
    return at_each_place(d, lambda p: os.setxattr(p, "user.a", b"1"))


@case
def link_from_each(d):
    made = iter(range(100))
    return at_each_place(d, lambda p: os.link(p, d / f"new{next(made)}", follow_symlinks=False))


@case
def link_to_each(d):
    return at_each_place(d, lambda p: os.link(d / "full/inside", p)), tree(d)


@case
def rename_file_to_each(d):
    def move(path):
        put(d / "moving", b"moving")
        os.rename(d / "moving", path)
    return at_each_place(d, move), tree(d)


@case
def rename_directory_to_each(d):
    def move(path):
        if not os.path.isdir(d / "moving"):
            os.mkdir(d / "moving")
        os.rename(d / "moving", path)
    return at_each_place(d, move), tree(d)


@case
def rename_from_each(d):
    made = iter(range(100))
    return at_each_place(d, lambda p: os.rename(p, d / f"to{next(made)}"))


@case
def noreplace_to_each(d):
    def move(path):
        put(d / "moving", b"moving")
        renameat2(d / "moving", path, RENAME_NOREPLACE)
    return at_each_place(d, move), tree(d)


@case
def exchange_with_each(d):
    put(d / "other", b"other")
    return at_each_place(d, lambda p: renameat2(d / "other", p, RENAME_EXCHANGE)), tree(d)


@case
def rename_with_wrong_flags(d):
    put(d / "a")
    put(d / "b")
    return [attempt(renameat2, d / "a", d / "b", flags)
            for flags in (RENAME_NOREPLACE | RENAME_EXCHANGE, 64)]


@case
def rename_into_itself(d):
    os.makedirs(d / "a/b/c")
    return [attempt(os.rename, d / "a", d / "a/b/x"), attempt(os.rename, d / "a", d / "a/b"),
            attempt(os.rename, d / "a/b", d / "a"), attempt(os.rename, d / "a", d / "a"),
            attempt(renameat2, d / "a", d / "a/b", RENAME_EXCHANGE), tree(d)]


@case
def rename_onto_a_link_of_itself(d):
    put(d / "a")
    os.link(d / "a", d / "b")
    return attempt(os.rename, d / "a", d / "b"), tree(d)


@case
def rename_over_directories(d):
    populate(d)
    os.mkdir(d / "source")
    return [attempt(os.rename, d / "source", d / "full"), attempt(os.rename, d / "file", d / "empty"),
            attempt(os.rename, d / "source", d / "file"), attempt(os.rename, d / "source", d / "empty"),
            attempt(os.rename, d / "full", d / "empty"), tree(d)]


@case
def link_counts_of_directories(d):
    counts = []
    for change in (lambda: os.mkdir(d / "a"), lambda: os.mkdir(d / "a/b"), lambda: os.mkdir(d / "a/c"),
                   lambda: os.rename(d / "a/c", d / "c"), lambda: os.rmdir(d / "a/b"),
                   lambda: os.rename(d / "c", d / "a")):
        attempt(change)
        counts.append((os.stat(d).st_nlink, os.stat(d / "a").st_nlink))
    return counts


@case
def links_share_everything(d):
    put(d / "a")
    os.link(d / "a", d / "b")
    os.chmod(d / "b", 0o640)
    os.setxattr(d / "b", "user.x", b"y")
    os.truncate(d / "b", 1)
    return tree(d), os.getxattr(d / "a", "user.x")


@case
def link_of_a_symlink_and_a_directory(d):
    populate(d)
    return [attempt(os.link, d / "link", d / "l1", follow_symlinks=False),
            attempt(os.link, d / "link", d / "l2", follow_symlinks=True),
            attempt(os.link, d / "full", d / "l3"), tree(d)]


@case
def symlink_targets(d):
    return {len(target): attempt(os.symlink, target, d / f"l{len(target)}")
            for target in ("", "x", "y" * 255, "z" * 4095, "w" * 4096)}, sorted(os.listdir(d))


@case
def wrong_use_of_descriptors(d):
    put(d / "f", b"0123456789")
    reader, writer = os.open(d / "f", os.O_RDONLY), os.open(d / "f", os.O_WRONLY)
    folder, path = os.open(d, os.O_RDONLY), os.open(d / "f", os.O_PATH)
    calls = [(os.write, reader, b"x"), (os.read, writer, 1), (os.read, folder, 1),
             (os.write, folder, b"x"), (os.ftruncate, reader, 0), (os.ftruncate, writer, -1),
             (os.pread, reader, 1, -1), (os.pwrite, writer, b"x", -1), (os.pread, reader, 5, 100),
             (os.write, writer, b""), (os.read, path, 1), (os.fchmod, path, 0o600),
             (os.lseek, reader, -1, os.SEEK_SET), (os.lseek, reader, 5, os.SEEK_END),
             (os.fsync, reader), (os.fsync, folder), (os.ftruncate, folder, 0)]
    results = [attempt(*call) for call in calls]
    for fd in (reader, writer, folder, path):
        os.close(fd)
    return results, get(d / "f")


@case
def wrong_use_of_fallocate(d):
    put(d / "f", b"0123456789")
    reader, writer = os.open(d / "f", os.O_RDONLY), os.open(d / "f", os.O_RDWR)
    punch = FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE
    calls = [(reader, 0, 0, 100), (writer, 0, -1, 10), (writer, 0, 0, 0), (writer, 0, 0, -5),
             (writer, FALLOC_PUNCH_HOLE, 0, 5), (writer, punch, 2, 3), (writer, punch, 50, 10),
             (writer, FALLOC_KEEP_SIZE, 0, 4096), (writer, 0x4000, 0, 10)]
    results = [attempt(fallocate, *call) for call in calls]
    os.close(reader)
    os.close(writer)
    return results, get(d / "f")


@case
def seeking_data_and_holes(d):
    put(d / "empty", b"")
    put(d / "f", b"x" * 10)
    results = []
    for name in ("empty", "f"):
        fd = os.open(d / name, os.O_RDONLY)
        results += [attempt(os.lseek, fd, offset, whence) for offset in (0, 5, 10, 11, -1)
                    for whence in (os.SEEK_DATA, os.SEEK_HOLE)]
        os.close(fd)
    return results


@case
def wrong_use_of_copy_file_range(d):
    put(d / "f", b"0123456789")
    put(d / "g", b"")
    reader, both = os.open(d / "f", os.O_RDONLY), os.open(d / "f", os.O_RDWR)
    other, append = os.open(d / "g", os.O_RDWR), os.open(d / "g", os.O_WRONLY | os.O_APPEND)
    folder = os.open(d, os.O_RDONLY)
    calls = [(both, reader, 5, 0, 0), (both, both, 5, 0, 2), (both, both, 3, 0, 5), (other, append, 5),
             (folder, other, 5), (both, folder, 5), (both, other, 5, 100, 0), (both, other, 0, 0, 0)]
    results = [attempt(os.copy_file_range, *call) for call in calls]
    for fd in (reader, both, other, append, folder):
        os.close(fd)
    return results, get(d / "f"), get(d / "g")


@case
def extended_attributes(d):
    path = put(d / "f")
    results = [attempt(os.setxattr, path, name, b"v", flags) for name, flags in (
        ("user.a", os.XATTR_REPLACE), ("user.a", os.XATTR_CREATE), ("user.a", os.XATTR_CREATE),
        ("user.a", os.XATTR_REPLACE), ("user.", 0), ("nothing", 0), ("", 0), ("system.nothing", 0),
        ("user." + "n" * 250, 0), ("user." + "n" * 251, 0))]
    results += [attempt(os.removexattr, path, name) for name in ("user.a", "user.a", "nothing")]
    os.setxattr(path, "user.b", b"12345")
    results += [attempt(lgetxattr, path, "user.b", size) for size in (0, 4, 5, 100)]
    os.setxattr(path, "user.b", b"")
    results += [attempt(os.getxattr, path, "user.b")]
    return results, sorted(n for n in os.listxattr(path) if n.startswith("user."))


@case
def extended_attributes_of_special_files(d):
    os.symlink("f", d / "link")
    os.mkfifo(d / "fifo")
    os.mkdir(d / "dir")
    return [attempt(os.setxattr, d / name, "user.a", b"v", follow_symlinks=False)
            for name in ("link", "fifo", "dir")]


@case
def wrong_times(d):
    put(d / "f")
    return [attempt(utimensat, d / "f", *times) for times in (
        ((0, 1_000_000_000), (0, 0)), ((0, 0), (0, -1)), ((5, 6), (7, 8)))], os.stat(d / "f").st_mtime_ns


@case
def fifos_and_sockets(d):
    os.mkfifo(d / "fifo", 0o640)
    results = [attempt(opened, d / "fifo", os.O_WRONLY | os.O_NONBLOCK),
               attempt(opened, d / "fifo", os.O_RDONLY | os.O_NONBLOCK)]
    os.chdir(d)
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("socket")
        results.append(attempt(client.connect, "socket"))
        server.listen()
        results.append(attempt(client.connect, "socket"))
        results.append(attempt(opened, "socket", os.O_RDONLY))
    os.chdir("/")
    return results, tree(d)


@case
def creation_obeys_the_umask(d):
    os.umask(0o027)
    opened(d / "f", os.O_CREAT | os.O_WRONLY, 0o666)
    opened(d / "s", os.O_CREAT | os.O_WRONLY, 0o4777)
    os.mkdir(d / "d", 0o1777)
    os.mkfifo(d / "p", 0o666)
    return tree(d)


@case
def a_file_without_permissions_can_be_written_by_its_creator(d):
    fd = os.open(d / "f", os.O_CREAT | os.O_RDWR, 0)
    results = os.write(fd, b"abc"), os.pread(fd, 3, 0)
    os.close(fd)
    return results, tree(d)


@case
def long_paths(d):
    room = 4095 - len(os.fsencode(d)) - 1
    part = "/".join(["p" * 200] * (room // 201))
    os.makedirs(d / part)
    exact = part + "/" + "q" * (room - len(part) - 1)
    return [attempt(opened, f"{d}/{exact}", os.O_CREAT | os.O_WRONLY),
            attempt(opened, f"{d}/{exact}q", os.O_CREAT | os.O_WRONLY)]


@case
def handles_of_what_was_removed(d):
    put(d / "f", b"content")
    fd = os.open(d / "f", os.O_RDWR)
    os.unlink(d / "f")
    results = [os.fstat(fd).st_nlink, attempt(os.link, f"/proc/self/fd/{fd}", d / "g"),
               attempt(os.fchmod, fd, 0o600), attempt(os.setxattr, fd, "user.a", b"1"),
               attempt(os.getxattr, fd, "user.a"), attempt(os.ftruncate, fd, 3), os.pread(fd, 10, 0)]
    os.close(fd)
    os.mkdir(d / "dir")
    folder = os.open(d / "dir", os.O_RDONLY)
    os.rmdir(d / "dir")
    results += [attempt(os.mkdir, "x", dir_fd=folder), attempt(os.listdir, folder),
                attempt(os.symlink, "t", "x", dir_fd=folder), os.fstat(folder).st_nlink]
    os.close(folder)
    return results


@case
def appending_ignores_positions(d):
    put(d / "f", b"abc")
    fd = os.open(d / "f", os.O_WRONLY | os.O_APPEND)
    os.pwrite(fd, b"X", 0)
    os.write(fd, b"Y")
    position = os.lseek(fd, 0, os.SEEK_CUR)
    os.close(fd)
    return position, get(d / "f")


@root_case
def permissions_of_another_user(d):
    os.chmod(d, 0o755)
    put(d / "private", mode=0o600)
    put(d / "public", mode=0o644)
    os.mkdir(d / "closed", 0o700)
    put(d / "closed/f")
    os.mkdir(d / "open", 0o777)
    os.chmod(d / "open", 0o777)

    def use():
        calls = [(opened, d / "private", os.O_RDONLY), (opened, d / "public", os.O_RDONLY),
                 (opened, d / "public", os.O_WRONLY), (opened, d / "closed/f", os.O_RDONLY),
                 (os.listdir, d / "closed"), (os.mkdir, d / "new"), (os.mkdir, d / "open/new"),
                 (os.chmod, d / "public", 0o777), (os.chown, d / "public", NOBODY, NOBODY),
                 (os.utime, d / "public"), (os.truncate, d / "public", 0),
                 (os.unlink, d / "public"), (os.rename, d / "public", d / "open/p"),
                 (os.link, d / "private", d / "open/l"), (os.setxattr, d / "public", "user.a", b"1"),
                 (os.access, d / "private", os.R_OK), (os.rmdir, d / "open/new")]
        return [attempt(*call) for call in calls]
    return in_child(use, NOBODY), tree(d)


@root_case
def new_files_belong_to_the_caller(d):
    os.chmod(d, 0o777)
    os.mkdir(d / "group")
    os.chown(d / "group", 0, 4321)
    os.chmod(d / "group", 0o2777)

    def make():
        for base in (d, d / "group"):
            put(base / "f")
            os.mkdir(base / "d")
            os.symlink("t", base / "l")
            os.mkfifo(base / "p")
    in_child(make, NOBODY)
    return {f"{base}{name}": (os.lstat(d / base / name).st_uid, os.lstat(d / base / name).st_gid,
                              stat.S_IMODE(os.lstat(d / base / name).st_mode))
            for base in ("", "group/") for name in "fdlp"}


@root_case
def the_sticky_bit_protects_files_of_others(d):
    os.chmod(d, 0o1777)
    put(d / "roots")
    os.mkdir(d / "rootsdir")
    in_child(lambda: put(d / "mine"), NOBODY)
    return in_child(lambda: [
        attempt(os.unlink, d / "roots"), attempt(os.rename, d / "roots", d / "x"),
        attempt(os.rename, d / "mine", d / "roots"), attempt(os.rmdir, d / "rootsdir"),
        attempt(os.unlink, d / "mine")], NOBODY), sorted(os.listdir(d))


@root_case
def writing_clears_suid_and_sgid(d):
    os.chmod(d, 0o777)
    modes = []

    def use(action):
        in_child(lambda: put(d / "f", b"x" * 100), NOBODY)
        os.chmod(d / "f", 0o6777)
        attempt(in_child, action, NOBODY)
        modes.append(stat.S_IMODE(os.stat(d / "f").st_mode))
        os.unlink(d / "f")

    def with_fd(function):
        fd = os.open(d / "f", os.O_RDWR)
        function(fd)
        os.close(fd)
    use(lambda: with_fd(lambda fd: os.pwrite(fd, b"y", 0)))
    use(lambda: os.truncate(d / "f", 5))
    use(lambda: with_fd(lambda fd: fallocate(fd, 0, 0, 200)))
    use(lambda: os.chown(d / "f", -1, NOBODY))
    use(lambda: opened(d / "f", os.O_WRONLY | os.O_TRUNC))
    use(lambda: os.utime(d / "f"))
    return modes


@root_case
def owners_may_change_what_is_theirs(d):
    os.chmod(d, 0o777)

    def use():
        put(d / "f")
        return [attempt(os.chmod, d / "f", 0o6755), attempt(os.chown, d / "f", 0, -1),
                attempt(os.chown, d / "f", -1, 0), attempt(os.chown, d / "f", NOBODY, NOBODY),
                attempt(os.utime, d / "f", ns=(1, 2)), facts(d / "f")]
    return in_child(use, NOBODY)
