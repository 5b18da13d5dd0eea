#!/usr/bin/env python3
"""The same small sequences on an ordinary file system and on the mount: results and errnos agree."""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

import harness
import parity_cases


def usable_reference(base):
    """Whether a directory can serve for comparison: it must take user attributes."""
    try:
        with tempfile.NamedTemporaryFile(dir=base) as file:
            os.setxattr(file.fileno(), "user.test", b"1")
        return True
    except OSError:
        return False


def reference_base():
    """A directory of an ordinary file system; --reference names another one."""
    for base in (harness.Options.reference, tempfile.gettempdir(), "/var/tmp", "/dev/shm"):
        if base and usable_reference(base):
            return base
    raise unittest.SkipTest("no ordinary file system with user attributes to compare with")


def outcome(function, directory):
    """What the case gave. It runs in a process of its own: it may change umask and directory."""
    try:
        return harness.in_child(lambda: function(directory))
    except OSError as error:
        return f"failed: {os.strerror(error.errno)} at {error.filename}"


def differences(name, expected, actual):
    """Says which parts of two outcomes differ, so that a report names the call."""
    if expected == actual:
        return []
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [line for key in {**expected, **actual} for line in differences(
            f"{name}[{key[:40]!r}]" if isinstance(key, str) else f"{name}[{key}]",
            expected.get(key), actual.get(key))]
    sequences = (list, tuple)
    if isinstance(expected, sequences) and isinstance(actual, sequences) \
            and len(expected) == len(actual):
        return [line for number, pair in enumerate(zip(expected, actual))
                for line in differences(f"{name}.{number}", *pair)]
    return [f"{name}: expected {expected!r}, got {actual!r}"]


class Parity(harness.DirectoryCase):
    def compare(self, function):
        reference = Path(tempfile.mkdtemp(prefix="memoirfs-parity-", dir=reference_base()))
        self.addCleanup(shutil.rmtree, reference, ignore_errors=True)
        os.chmod(reference, 0o755)
        # Both paths are equally long, so that limits of paths strike at the same place.
        lengths = [len(str(path)) for path in (reference, self.dir)]
        sides = [path / ("d" * (1 + max(lengths) - length))
                 for path, length in zip((reference, self.dir), lengths)]
        for side in sides:
            side.mkdir()
        found = differences(function.__name__, *[outcome(function, side) for side in sides])
        self.assertEqual([], found, "\n" + "\n".join(found))


def add_cases():
    for function in parity_cases.CASES:
        setattr(Parity, f"test_{function.__name__}",
                lambda self, function=function: self.compare(function))
    for function in parity_cases.ROOT_CASES:
        test = unittest.skipUnless(harness.is_root(), "needs root to become another user")(
            lambda self, function=function: self.compare(function))
        setattr(Parity, f"test_{function.__name__}", test)


add_cases()

if __name__ == "__main__":
    harness.main()
