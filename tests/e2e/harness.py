"""What the end-to-end tests share: stores, mounts, commands, waiting, and the way a file is run.

A test file is a program. Without arguments it judges the product ($MEMOIRFS, else the release
build): it makes a store in a scratch folder, mounts it, and takes everything away again. With
`--dir DIR` the tests that ask for nothing but a directory run in DIR instead, which is how they are
proved on an ordinary file system; the others are skipped there.

Exit status 77 says that nothing was tested because this machine has no /dev/fuse.
"""

import argparse
import atexit
import hashlib
import json
import os
import pickle
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SKIPPED = 77
AGENT = "tester"
NOBODY = 65534
SEED = int(os.environ.get("MEMOIRFS_E2E_SEED", "1"))
TIME_LIMIT = int(os.environ.get("MEMOIRFS_E2E_TIMEOUT", "110"))


class Options:
    """What the command line said."""

    directory = None
    reference = None


def binary():
    return os.environ.get("MEMOIRFS") or str(PROJECT / "build" / "release" / "memoirfs")


def count(name, usual):
    """How much of something; nightly runs set more by MEMOIRFS_E2E_<name>."""
    return int(os.environ.get(f"MEMOIRFS_E2E_{name}", str(usual)))


def is_root():
    return os.geteuid() == 0


def seeded(name):
    """A random generator for one test; says its seed, so that a failure can be repeated."""
    print(f"{name}: MEMOIRFS_E2E_SEED={SEED}", flush=True)
    return random.Random(f"{SEED}/{name}")


def noise(size, label="noise"):
    """Bytes that do not compress, the same in each run of one seed."""
    return random.Random(f"{SEED}/{label}/{size}").randbytes(size)


def wait_until(condition, what, seconds=20.0):
    """Polls until `condition()` is true. The only place where the tests wait for time to pass."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still waiting after {seconds} s: {what}")
        time.sleep(0.005)


def picture(folder):
    """Every name below with all that a write would change."""
    seen = {}
    for path in sorted([folder, *folder.rglob("*")]):
        facts = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        seen[str(path.relative_to(folder))] = (
            facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, digest)
    return seen


def is_mounted(point):
    """Whether something is mounted exactly there; works for dead mounts too."""
    wanted = os.fsencode(point)
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            raw = line.split()[4]
            if raw.decode("unicode_escape").encode("latin-1") == wanted:
                return True
    return False


def process_exists(pid):
    """Whether the process runs; one that ended and was not reaped yet counts as gone, once the last
    of its threads, which hold its files and sockets, has ended too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state not in "ZX" or len(os.listdir(f"/proc/{pid}/task")) > 1
    except (FileNotFoundError, ProcessLookupError):
        return False


def in_child(function, uid=None):
    """Runs `function` in a process of its own, as `uid` where given; returns or raises what it did."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            if uid is not None:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            outcome = (True, function())
        except BaseException as error:  # noqa: BLE001: it is raised again in the parent
            if not isinstance(error, OSError):
                traceback.print_exc()
            outcome = (False, error)
        with os.fdopen(writer, "wb") as pipe:
            pickle.dump(outcome, pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    if not data:
        raise AssertionError("the child process died")
    fine, value = pickle.loads(data)
    if not fine:
        raise value
    return value


def together(count, function):
    """Runs `function(number)` in `count` processes at once; fails when one of them fails."""
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                function(number)
                status = 0
            except BaseException:  # noqa: BLE001: a failure is told by the exit status
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        children.append(child)
    failed = [child for child in children if os.waitpid(child, 0)[1] != 0]
    if failed:
        raise AssertionError(f"{len(failed)} of {count} processes failed")


class Store:
    """A store in a scratch folder, its mounts, and the commands on it."""

    living = []

    def __init__(self, path=None, scratch=None, user=None):
        self.scratch = Path(scratch or tempfile.mkdtemp(prefix="memoirfs-e2e-"))
        self.path = Path(path) if path else self.scratch / "store"
        self.user = user
        self.points = []
        self.daemons = set()
        Store.living.append(self)
        if user is not None:
            os.chown(self.scratch, user, user)

    def environment(self):
        env = dict(os.environ, HOME=str(self.scratch), LC_ALL="C.UTF-8")
        for kind in ("STATE", "DATA", "CONFIG", "CACHE"):
            env[f"XDG_{kind}_HOME"] = str(self.scratch / f"xdg-{kind.lower()}")
        env.pop("XDG_RUNTIME_DIR", None)
        env.pop("MEMOIRFS_STORE", None)
        return env

    def command(self, *args, expect=0, timeout=60):
        """Runs one command of the product. `expect`: the exit status, or None for any."""
        words = [binary(), args[0], "--store", str(self.path), *[str(word) for word in args[1:]]]
        identity = {}
        if self.user is not None:
            identity = {"user": self.user, "group": self.user, "extra_groups": []}
        done = subprocess.run(words, env=self.environment(), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=timeout, **identity)
        if expect is not None and done.returncode != expect:
            raise AssertionError(
                f"{' '.join(words)}: exit {done.returncode}, expected {expect}\n"
                f"stdout: {done.stdout[-2000:]!r}\nstderr: {done.stderr[-4000:]!r}")
        return done

    def init(self, *agents):
        self.command("init")
        for name in agents:
            self.command("agent", "add", name)
        return self

    def folder(self, name="mnt"):
        """An empty folder to mount on."""
        point = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.scratch))
        if self.user is not None:
            os.chown(point, self.user, self.user)
        return point

    def mount(self, *options, point=None):
        """Mounts and returns the mount point; the mount answers when this returns."""
        point = Path(point) if point else self.folder()
        self.command("mount", point, *options)
        self.forget(point)
        self.points.append(point)
        self.daemons.add(self.pid())
        return point

    def mount_agent(self, name=AGENT, *options, point=None):
        """The private folder of one agent, in a mount that shows nothing else."""
        return self.mount("--agent", name, *options, point=point) / "memory"

    def umount(self, point=None):
        point = Path(point) if point else self.points[-1]
        self.command("umount", point)
        self.forget(point)
        if is_mounted(point):
            raise AssertionError(f"`umount {point}` returned, and the mount is still there")

    def run_program(self, name, *args):
        """Runs one of the native programs beside this file on a mount of this store."""
        built = os.environ.get("MEMOIRFS_E2E_PROGRAMS") or PROJECT / "build/release/tests/e2e"
        done = subprocess.run([Path(built) / name / name, *map(str, args)], env=self.environment(),
                              capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        self.daemons.add(self.pid())  # it may have mounted anew
        return done

    def remount_command(self, point, *options):
        """A shell command that unmounts and mounts the same again, in a daemon of its own."""
        words = [binary(), "umount", "--store", self.path, point]
        again = [binary(), "mount", "--store", self.path, point, *options]
        quoted = (shlex.join(map(str, line)) for line in (words, again))
        return " && ".join(f"{line} >/dev/null" for line in quoted)

    def forget(self, point):
        self.points = [other for other in self.points if other != point]

    def umount_all(self):
        for point in list(self.points):
            self.umount(point)

    def status(self):
        return json.loads(self.command("status", "--json").stdout)

    def pid(self):
        return int(self.status()["pid"])

    def kill(self):
        """SIGKILL to the daemon; returns when the process is gone."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not process_exists(pid), f"process {pid} ends after SIGKILL")
        self.daemons.discard(pid)

    def wait_for_end(self, pid):
        wait_until(lambda: not process_exists(pid), f"the daemon {pid} ends with its last mount")
        self.daemons.discard(pid)

    def logs(self):
        """The text of what the daemon logged."""
        texts = []
        for path in sorted(self.scratch.rglob("*.log")) + sorted(self.path.glob("*.log")):
            if path.parent.name in ("journal", "index") or not path.is_file():
                continue
            texts.append(f"--- {path}\n{path.read_text(errors='replace')[-8000:]}")
        return "\n".join(dict.fromkeys(texts))

    def abort(self):
        """Ends the daemon and detaches the mounts, whatever state they are in."""
        for pid in list(self.daemons):
            if process_exists(pid):
                os.kill(pid, signal.SIGKILL)
        for point in self.points:
            if is_mounted(point):
                subprocess.run(["fusermount3", "-uz", str(point)], check=False)
        self.points = []
        for pid in list(self.daemons):
            self.wait_for_end(pid)  # it must not write into a folder that is being removed

    def close(self):
        """Takes everything away. What does not end by itself is a fault of the product."""
        problem = None
        try:
            for point in list(self.points):
                self.umount(point)
            for pid in list(self.daemons):
                self.wait_for_end(pid)
        except Exception as error:  # noqa: BLE001: the scratch folder must go in any case
            problem = error
            self.abort()
        Store.living = [store for store in Store.living if store is not self]
        shutil.rmtree(self.scratch, ignore_errors=True)
        if problem:
            raise problem


class ProductCase(unittest.TestCase):
    """Tests that need the product; skipped with --dir."""

    def setUp(self):
        if Options.directory:
            self.skipTest("needs the product, and runs in --dir")
        self.stores = []
        self.addCleanup(self.close_stores)

    def new_store(self, *agents, **options):
        store = Store(**options)
        self.stores.append(store)
        return store.init(*agents)

    def close_stores(self):
        failed = self._outcome is not None and not self._outcome.success
        for store in self.stores:
            if failed:
                print(f"logs of {store.path}:\n{store.logs()}", file=sys.stderr)
            store.close()


class DirectoryCase(unittest.TestCase):
    """Tests that need a directory: one of a mount that the whole file shares, or of --dir."""

    shared = None

    def setUp(self):
        base = Options.directory or self.shared_mount()
        self.dir = Path(tempfile.mkdtemp(prefix=f"{self._testMethodName}-", dir=base))
        os.chmod(self.dir, 0o755)
        if Options.directory:
            self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    @classmethod
    def shared_mount(cls):
        if DirectoryCase.shared is None:
            store = Store().init(AGENT)
            os.chmod(store.scratch, 0o755)
            others = ["--allow-other"] if is_root() else []
            DirectoryCase.shared = store
            store.root = store.mount(*others) / AGENT / "memory"
            os.chmod(store.root, 0o755)
        return DirectoryCase.shared.root

    def write(self, name, data=b"text\n"):
        path = self.dir / name
        path.write_bytes(data)
        return path

    def assert_errno(self, number, function, *args, **options):
        with self.assertRaises(OSError) as caught:
            function(*args, **options)
        self.assertEqual(os.strerror(number), os.strerror(caught.exception.errno))


def parse_arguments():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--dir")
    parser.add_argument("--reference")
    known, rest = parser.parse_known_args()
    Options.directory = os.path.realpath(known.dir) if known.dir else None
    Options.reference = known.reference
    return rest


def start_watchdog():
    """A request that is never answered must not hang the run: ends the daemons, so that it fails."""
    def stop():
        print(f"not finished after {TIME_LIMIT} s: ending the daemons", file=sys.stderr, flush=True)
        for store in list(Store.living):
            print(store.logs(), file=sys.stderr, flush=True)
            store.abort()
    timer = threading.Timer(TIME_LIMIT, stop)
    timer.daemon = True
    timer.start()


def finish_stores():
    """Closes what is left; false when a mount or a daemon did not go away as it should."""
    fine = True
    for store in list(Store.living):
        try:
            store.close()
        except Exception as error:  # noqa: BLE001: each store gets its turn
            print(f"taking away {store.path}: {error}", file=sys.stderr)
            fine = False
    return fine


def main():
    """Runs the test file. The last line of each file."""
    rest = parse_arguments()
    if not Options.directory:
        if not os.path.exists("/dev/fuse"):
            print("skipped: this machine has no /dev/fuse")
            sys.exit(SKIPPED)
        if not os.access(binary(), os.X_OK):
            print(f"{binary()} is not there: build it, or set MEMOIRFS", file=sys.stderr)
            sys.exit(1)
    os.umask(0o022)
    start_watchdog()
    owner = os.getpid()
    atexit.register(lambda: os.getpid() == owner and finish_stores())
    run = unittest.main(module="__main__", argv=[sys.argv[0], "-v", *rest], exit=False)
    failed = not run.result.wasSuccessful()
    if failed:
        for store in Store.living:
            print(f"logs of {store.path}:\n{store.logs()}", file=sys.stderr)
    fine = finish_stores()
    sys.exit(1 if failed or not fine else 0)
