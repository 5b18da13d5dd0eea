#!/usr/bin/env python3
"""Checks that the manual page names every command and option that --help names, and no other.

  manual.py MEMOIRFS MANUAL
"""

import itertools
import re
import subprocess
import sys


def run_help(binary, command):
    result = subprocess.run([binary, *command, "--help"], check=True, capture_output=True, text=True)
    return result.stdout


def options_of(text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]*)", text))


def subcommands_of(text):
    listed = text.partition("Subcommands:")[2]
    return re.findall(r"^  ([a-z][a-z-]*)(?:\s|$)", listed, re.MULTILINE)


def collect(binary):
    """Command (a tuple of words) → the options that its own help lists."""
    found = {}
    pending = [()]
    while pending:
        command = pending.pop()
        text = run_help(binary, command)
        found[command] = options_of(text.partition("Subcommands:")[0])
        pending += [command + (name,) for name in subcommands_of(text)]
    return found


def manual_sections(page):
    """Command → the text of its section, which begins with .SS memoirfs COMMAND ARGUMENTS."""
    sections = {}
    for part in re.split(r"^\.SS ", page, flags=re.MULTILINE)[1:]:
        heading, _, body = part.partition("\n")
        body = re.split(r"^\.SH ", body, flags=re.MULTILINE)[0]
        words = heading.strip().strip('"').split()
        if words[:1] == ["memoirfs"]:
            command = itertools.takewhile(lambda word: re.fullmatch("[a-z-]+", word), words[1:])
            sections[tuple(command)] = body
    return sections


def main():
    binary, manual = sys.argv[1:3]
    with open(manual, encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    commands = collect(binary)
    sections = manual_sections(page)
    general = options_of(page.partition(".SH OPTIONS")[2].partition(".SH ")[0])
    problems = []
    for command, options in sorted(commands.items()):
        name = " ".join(("memoirfs",) + command)
        has_children = any(other[: len(command)] == command and other != command for other in commands)
        if command and not has_children and command not in sections:
            problems.append(f"the manual has no section '.SS {name}'")
        documented = general | options_of(sections.get(command, ""))
        problems += [f"{name} {option} is not in the manual" for option in sorted(options - documented)]
    for command, body in sorted(sections.items()):
        known = set().union(*commands.values())
        name = " ".join(("memoirfs",) + command)
        if command not in commands:
            problems.append(f"the manual describes '{name}', which does not exist")
        problems += [f"the manual has {option} of {name}, which does not exist"
                     for option in sorted(options_of(body) - known)]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
