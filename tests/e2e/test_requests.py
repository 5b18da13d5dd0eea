#!/usr/bin/env python3
"""Which requests reach the daemon: what is warm in the kernel must not ask it again."""

import os

import harness

FILES = 50


class Requests(harness.ProductCase):
    def setUp(self):
        super().setUp()
        self.store = self.new_store(harness.AGENT)
        self.memory = self.store.mount_agent()
        self.folder = self.memory / "folder"
        self.folder.mkdir()
        self.paths = [self.folder / f"f{number}" for number in range(FILES)]
        for path in self.paths:
            path.write_bytes(b"x" * 4096)

    def counts(self):
        return {kind: facts["count"] for kind, facts in
                self.store.status()["mounts"][0]["requests"].items()
                if isinstance(facts, dict) and "count" in facts}

    def requests(self, action):
        """What `action` makes the kernel ask for when it is done for the second time."""
        action()
        before = self.counts()
        action()
        after = self.counts()
        return {kind: count - before.get(kind, 0) for kind, count in after.items()
                if count != before.get(kind, 0)}

    def read_each(self):
        for path in self.paths:
            fd = os.open(path, os.O_RDONLY)
            os.read(fd, 4096)
            os.close(fd)

    def test_warm_stat_asks_nothing(self):
        self.assertEqual({}, self.requests(lambda: [os.stat(path) for path in self.paths]))

    def test_warm_listing_asks_nothing(self):
        self.assertEqual({}, self.requests(lambda: os.listdir(self.folder)))

    def test_a_warm_walk_of_the_tree_asks_nothing(self):
        self.assertEqual({}, self.requests(lambda: [
            os.lstat(os.path.join(base, name)) for base, _, names in os.walk(self.folder)
            for name in names]))

    def test_a_warm_read_of_an_open_file_asks_nothing(self):
        fd = os.open(self.paths[0], os.O_RDONLY)
        self.assertEqual({}, self.requests(lambda: [os.pread(fd, 4096, 0) for _ in range(FILES)]))
        os.close(fd)

    def test_warm_opening_and_reading_asks_once(self):
        asked = self.requests(self.read_each)
        asked.pop("release", None)  # sent when the file is closed already: nobody waits for it
        self.assertEqual({"open": FILES}, asked)

    def test_a_missing_name_is_asked_for_once(self):
        missing = self.folder / "missing"
        self.assertEqual({}, self.requests(missing.exists))


if __name__ == "__main__":
    harness.main()
