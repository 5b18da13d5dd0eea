"""System calls that Python's standard library does not offer."""

import ctypes
import os
import struct

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
AT_FDCWD = -100
AT_SYMLINK_NOFOLLOW = 0x100
UTIME_NOW = (1 << 30) - 1
UTIME_OMIT = (1 << 30) - 2
FALLOC_KEEP_SIZE = 1
FALLOC_PUNCH_HOLE = 2
FALLOC_COLLAPSE_RANGE = 8
FALLOC_ZERO_RANGE = 16

_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


def _checked(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def renameat2(old, new, flags):
    _checked(_libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags))


def utimensat(path, atime, mtime, flags=0):
    """Times as (seconds, nanoseconds); UTIME_NOW and UTIME_OMIT as nanoseconds."""
    times = (_Timespec * 2)(_Timespec(*atime), _Timespec(*mtime))
    _checked(_libc.utimensat(AT_FDCWD, os.fsencode(path), times, flags))


def fallocate(fd, mode, offset, length):
    _checked(_libc.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def handle_of(path):
    """What name_to_handle_at(2) says: the bytes of the handle."""
    handle = ctypes.create_string_buffer(8 + 128)
    ctypes.c_uint.from_buffer(handle).value = 128
    mount = ctypes.c_int()
    _checked(_libc.name_to_handle_at(AT_FDCWD, os.fsencode(path), handle, ctypes.byref(mount), 0))
    return handle.raw[8:8 + ctypes.c_uint.from_buffer(handle).value]


def statx_mask(path):
    """Which facts statx(2) gives of all that there are."""
    buffer = ctypes.create_string_buffer(256)
    _checked(_libc.statx(AT_FDCWD, os.fsencode(path), 0, 0xfff, buffer))
    return ctypes.c_uint.from_buffer(buffer).value


def lgetxattr(path, name, size):
    """The raw call: the value's length when it fits `size` bytes (0 asks for the length)."""
    buffer = ctypes.create_string_buffer(max(size, 1))
    return _checked(_libc.lgetxattr(os.fsencode(path), os.fsencode(name), buffer, size))


class Inotify:
    """Watches one path; `events` reads what happened since, as (mask, name)."""

    MODIFY, CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x8, 0x40, 0x80, 0x100, 0x200

    def __init__(self, path, mask):
        self.fd = _checked(_libc.inotify_init1(os.O_NONBLOCK))
        _checked(_libc.inotify_add_watch(self.fd, os.fsencode(path), mask))

    def events(self):
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return []
        found, at = [], 0
        while at < len(data):
            _, mask, _, length = struct.unpack_from("=iIII", data, at)
            name = data[at + 16:at + 16 + length].rstrip(b"\0").decode()
            found.append((mask, name))
            at += 16 + length
        return found

    def close(self):
        os.close(self.fd)


_libc.opendir.restype = ctypes.c_void_p
_libc.readdir.restype = ctypes.c_void_p
_libc.telldir.restype = ctypes.c_long


class DirectoryStream:
    """A DIR of <dirent.h>."""

    def __init__(self, path):
        self.dir = ctypes.c_void_p(_libc.opendir(os.fsencode(path)))
        if not self.dir.value:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def next(self):
        """The next name, or None at the end."""
        entry = _libc.readdir(self.dir)
        return os.fsdecode(ctypes.string_at(entry + 19)) if entry else None

    def tell(self):
        return _libc.telldir(self.dir)

    def seek(self, position):
        _libc.seekdir(self.dir, ctypes.c_long(position))

    def rewind(self):
        _libc.rewinddir(self.dir)

    def close(self):
        _libc.closedir(self.dir)
