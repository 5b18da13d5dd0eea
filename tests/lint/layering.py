#!/usr/bin/env python3
"""Checks the rules of the source tree that no compiler checks.

Who may include whom, which folder may use which library, how long a file may be, and words that
must not be left in. Prints one line a violation; exits 1 when there is one.

  layering.py ROOT               checks the tree at ROOT
  layering.py ROOT --self-test   checks that the checker itself finds what it is to find
"""

import pathlib
import re
import sys

MAX_LINES = 600
SOURCE_SUFFIXES = {".cc", ".h"}
FOLDERS = ("fs", "store", "tests")

# For a folder: the folders of the project that its files may include, itself included.
BASE = ("store/base",)
JOURNAL = BASE + ("store/journal",)
STORE = JOURNAL + ("store/cas", "store/chain", "store/meta", "store/volume")
MAY_INCLUDE = {
    "store/base": BASE,
    "store/journal": JOURNAL,
    "store/cas": JOURNAL + ("store/cas",),
    "store/chain": JOURNAL + ("store/chain",),
    "store/meta": JOURNAL + ("store/meta",),
    "store/volume": STORE,
    "fs/vfs": STORE + ("fs/vfs",),
    "fs/fuse": STORE + ("fs/vfs", "fs/fuse"),
    "fs/daemon": STORE + ("fs/vfs", "fs/fuse", "fs/daemon"),
    "fs/cli": STORE + ("fs/vfs", "fs/fuse", "fs/daemon", "fs/cli"),
}

# A library's headers, and where they may be included. Tests may use any.
LIBRARIES = [
    (re.compile(r"<(fuse\w*\.h|fuse3/)"), re.compile(r"^fs/fuse/")),
    (re.compile(r"<leveldb/"), re.compile(r"^store/meta/")),
    (re.compile(r"<openssl/"), re.compile(r"^store/base/")),
    (re.compile(r"<spdlog/"), re.compile(r"^store/base/")),
    (re.compile(r"<utf8"), re.compile(r"^store/base/")),
    (re.compile(r"<CLI/"), re.compile(r"^fs/cli/")),
    (re.compile(r"<nlohmann/"), re.compile(r"(\.cc$|^store/base/json[^/]*\.h$)")),
]

FORBIDDEN = [
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b"), "an unfinished spot"),
    (re.compile(r"^\s*//\s*[-=*/#]{8,}"), "a banner comment"),
]

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"(?P<own>[^"]+)"|(?P<system><[^>]+>))')


def folder_of(path):
    return "/".join(path.split("/")[:2])


def check_include(path, match):
    """The reason why this include is not allowed, or None."""
    own, system = match.group("own"), match.group("system")
    if path.startswith("tests/"):
        return None
    if system:
        for library, allowed in LIBRARIES:
            if library.search(system) and not allowed.search(path):
                return f"{system} is not for this folder"
        return None
    if "/" not in own:
        return f'"{own}": includes are written from the root of the project'
    allowed = MAY_INCLUDE.get(folder_of(path))
    if allowed is not None and folder_of(own) not in allowed:
        return f"{folder_of(path)} must not include {folder_of(own)}"
    return None


def check_text(path, text):
    """Every violation in one file as (line, reason)."""
    lines = text.split("\n")
    if len(lines) - 1 > MAX_LINES:
        yield len(lines) - 1, f"more than {MAX_LINES} lines"
    if path.endswith(".h") and "#pragma once" not in text:
        yield 1, "a header without #pragma once"
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match and (reason := check_include(path, match)):
            yield number, reason
        for pattern, reason in FORBIDDEN:
            if pattern.search(line):
                yield number, reason


def check_tree(root):
    violations = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in SOURCE_SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            for line, reason in check_text(path, file.read_text(encoding="utf-8")):
                violations.append(f"{path}:{line}: {reason}")
    return violations


def self_test():
    """Text that must be found at fault, and text that must not."""
    bad = [
        ("store/cas/a.cc", '#include "store/meta/index.h"\n'),
        ("store/base/a.cc", '#include "fs/vfs/vfs.h"\n'),
        ("fs/vfs/a.cc", "#include <fuse_lowlevel.h>\n"),
        ("store/volume/a.cc", "#include <leveldb/db.h>\n"),
        ("fs/daemon/a.h", "#pragma once\n#include <nlohmann/json.hpp>\n"),
        ("fs/cli/a.cc", '#include "output.h"\n'),
        ("fs/cli/a.h", "int x;\n"),
        ("store/base/a.cc", "// TO" + "DO\n"),
        ("store/base/a.cc", "\n" * (MAX_LINES + 1)),
    ]
    good = [
        ("store/volume/a.cc", '#include "store/meta/index.h"\n#include <vector>\n'),
        ("fs/fuse/a.cc", "#include <fuse_lowlevel.h>\n"),
        ("tests/unit/a.cc", "#include <leveldb/db.h>\n"),
        ("store/base/json.h", "#pragma once\n#include <nlohmann/json.hpp>\n"),
    ]
    wrong = [f"not found: {text!r} in {path}" for path, text in bad if not any(check_text(path, text))]
    wrong += [f"found: {text!r} in {path}" for path, text in good if any(check_text(path, text))]
    return wrong


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    problems = self_test() if "--self-test" in sys.argv else check_tree(root)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
