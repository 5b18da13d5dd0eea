"""System calls that Python's standard library does not offer."""

import ctypes
import os

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
