#!/usr/bin/env python3
"""Names in any script are kept byte for byte; digests are what sha256sum prints."""

import errno
import hashlib
import os
import subprocess
import unicodedata

import harness

NAMES = ["메모.md", "기억 정리 2024", "🧠", "👩‍👩‍👧‍👦 family", "日本語.txt", "عربى", "é", "é",
         "ÅngströmÅ", " leading and trailing ", "-dash", "new\nline", "tab\t", "back\\slash",
         "quote\"'", "*?[x]", "..dots", "...", "\u202egnp.exe", "\ufeffbom", "\U0010ffff", "\x7f", "\x01"]


class Names(harness.DirectoryCase):
    def test_each_name_is_kept_exactly(self):
        names = sorted(set(NAMES))
        for name in names:
            self.write(name, name.encode())
        self.assertEqual(names, sorted(os.listdir(self.dir)))
        for name in names:
            self.assertEqual(name.encode(), (self.dir / name).read_bytes())

    def test_composed_and_decomposed_forms_are_two_names(self):
        for text in ("한글", "é", "Å"):
            composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
            self.assertNotEqual(composed, decomposed)
            self.write(composed, b"composed")
            self.assert_errno(errno.ENOENT, os.stat, self.dir / decomposed)
            self.write(decomposed, b"decomposed")
            self.assertEqual(b"composed", (self.dir / composed).read_bytes())
            self.assertEqual(b"decomposed", (self.dir / decomposed).read_bytes())

    def test_upper_and_lower_case_are_two_names(self):
        self.write("Note", b"1")
        self.write("note", b"2")
        self.assertEqual(b"1", (self.dir / "Note").read_bytes())

    def test_names_of_255_bytes(self):
        for name in ("x" * 255, "가" * 85, "🧠" * 63 + "abc"):
            self.assertEqual(255, len(name.encode()))
            self.write(name, name.encode())
            self.assertEqual(name.encode(), (self.dir / name).read_bytes())
            os.rename(self.dir / name, self.dir / "short")
            os.rename(self.dir / "short", self.dir / name)
            self.assert_errno(errno.ENAMETOOLONG, os.stat, self.dir / (name + "y"))
            self.assert_errno(errno.ENAMETOOLONG, self.write, name + "가")

    def test_names_in_directories_links_and_attributes(self):
        folder = self.dir / "폴더 🗂" / "안쪽"
        folder.mkdir(parents=True)
        os.symlink("폴더 🗂/안쪽", self.dir / "링크")
        self.write("폴더 🗂/안쪽/파일", "내용".encode())
        self.assertEqual("내용", (self.dir / "링크/파일").read_text())
        os.setxattr(folder / "파일", "user.메모", "값".encode())
        self.assertEqual("값".encode(), os.getxattr(folder / "파일", "user.메모"))
        self.assertIn("user.메모", os.listxattr(folder / "파일"))


class IllegalNames(harness.DirectoryCase):
    ILLEGAL = [b"\xff", b"latin-\xe9", b"cut-\xed\x95", b"overlong-\xc0\xaf", b"surrogate-\xed\xa0\x80",
               b"beyond-\xf4\x90\x80\x80", b"\x80start"]

    def setUp(self):
        if harness.Options.directory:
            self.skipTest("other file systems take any bytes")
        super().setUp()

    def test_a_name_that_is_not_utf8_cannot_be_made(self):
        base = os.fsencode(self.dir)
        self.write("good")
        for name in self.ILLEGAL:
            path = base + b"/" + name
            makers = {"create": lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY)),
                      "mkdir": lambda: os.mkdir(path), "symlink": lambda: os.symlink(b"t", path),
                      "link": lambda: os.link(base + b"/good", path),
                      "rename": lambda: os.rename(base + b"/good", path),
                      "mkfifo": lambda: os.mkfifo(path)}
            for what, make in makers.items():
                with self.subTest(name=name, what=what):
                    self.assert_errno(errno.EILSEQ, make)
        self.assertEqual(["good"], os.listdir(self.dir))

    def test_symlink_targets_may_be_any_bytes(self):
        link = os.fsencode(self.dir) + b"/link"
        os.symlink(b"\xff\xfe/\x80", link)
        self.assertEqual(b"\xff\xfe/\x80", os.readlink(link))


class Digests(harness.DirectoryCase):
    def setUp(self):
        if harness.Options.directory:
            self.skipTest("needs the product, and runs in --dir")
        super().setUp()

    def test_the_digest_attribute_is_what_sha256sum_prints(self):
        for size in (0, 1, 4096, 262_144, 262_145, 1_000_000, 5_000_000):
            with self.subTest(size=size):
                path = self.write(f"파일{size}", harness.noise(size))
                printed = subprocess.run(["sha256sum", str(path)], capture_output=True, check=True)
                digest = os.getxattr(path, "user.memoir.sha256").decode()
                self.assertEqual(printed.stdout.split()[0].decode().lstrip("\\"), digest)

    def test_the_digest_follows_each_change(self):
        path = self.dir / "f"
        for content in (b"one", b"two", b"", b"x" * 300_000):
            path.write_bytes(content)
            # A truncation without a write is committed when the kernel has let the file go.
            harness.wait_until(lambda: os.getxattr(path, "user.memoir.state") == b"clean",
                               "the file is committed")
            self.assertEqual(hashlib.sha256(content).hexdigest(),
                             os.getxattr(path, "user.memoir.sha256").decode())

    def test_the_sequence_number_grows_with_each_change(self):
        path = self.dir / "f"
        numbers = []
        for content in (b"one", b"two", b"three"):
            path.write_bytes(content)
            numbers.append(int(os.getxattr(path, "user.memoir.seq")))
        self.assertEqual(sorted(set(numbers)), numbers)

    def test_attributes_of_the_product_cannot_be_changed(self):
        path = self.write("f")
        for change in (lambda: os.setxattr(path, "user.memoir.sha256", b"0" * 64),
                       lambda: os.removexattr(path, "user.memoir.sha256")):
            with self.assertRaises(OSError) as caught:
                change()
            self.assertIn(caught.exception.errno, (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP))


if __name__ == "__main__":
    harness.main()
