#!/usr/bin/env python3
"""stress-ng's file-system stressors on a mount, with verification on."""

import shutil
import subprocess
import unittest

import harness

SECONDS = harness.count("STRESS_NG_SECONDS", 1)  # of each stressor
# Of the class "filesystem"; left out are those that need a device or a kernel's own file systems,
# and those that load the machine and not the files.
STRESSORS = ("access", "chattr", "chdir", "chmod", "chown", "copy-file", "dentry", "dir",
             "dirdeep", "dirmany", "dup", "eventfd", "fallocate", "fcntl", "fiemap", "file-ioctl",
             "filename", "flock", "fpunch", "fstat", "getdent", "hdd", "inode-flags", "inotify",
             "io", "iomix", "ioprio", "lease", "link", "locka", "lockf", "lockofd", "mknod", "open",
             "rename", "symlink", "sync-file", "touch", "utime", "verity", "xattr")


class StressNg(harness.ProductCase):
    def test_every_stressor_passes(self):
        if shutil.which("stress-ng") is None:
            self.skipTest("stress-ng is not installed")
        store = self.new_store("a")
        memory = store.mount_agent("a")
        known = subprocess.run(["stress-ng", "--class", "filesystem?"], capture_output=True,
                               text=True, check=False).stdout
        failed = {}
        passed = 0
        for stressor in STRESSORS:
            if stressor not in known.replace("'", " ").split():
                print(f"{stressor}: this stress-ng has none", flush=True)
                continue
            done = subprocess.run(
                ["stress-ng", f"--{stressor}", "2", "--timeout", f"{SECONDS}s", "--verify",
                 "--temp-path", memory, "--seed", str(harness.SEED), "--hdd-bytes", "16M",
                 "--fallocate-bytes", "16M", "--iomix-bytes", "16M"],
                capture_output=True, text=True, timeout=harness.TIME_LIMIT, check=False)
            if done.returncode in (0, 3, 4):  # 3, 4: it cannot run here, or nowhere
                passed += done.returncode == 0
            else:
                failed[stressor] = done.stdout[-1500:] + done.stderr[-1500:]
        print(f"stress-ng: {passed} stressors passed, {len(failed)} failed", flush=True)
        self.assertEqual({}, failed)
        self.assertGreater(passed, 20)
        store.umount_all()
        store.command("verify")


if __name__ == "__main__":
    harness.main()
