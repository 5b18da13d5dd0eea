#!/usr/bin/env python3
"""Verifies a chain of Runtime Records (a JSONL file) with Python's standard library alone.

Written against store/FORMAT.md and not against the C++ code, so that the two check each other.
Exit status: 0 valid, 1 broken, 3 no records.
"""
import hashlib
import json
import sys

GENESIS = "0" * 64
MAX_INTEGER = 2**53 - 1
ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class Broken(Exception):
    pass


def canonical_string(text):
    def escape(char):
        if char in ESCAPES:
            return ESCAPES[char]
        return "\\u%04x" % ord(char) if ord(char) < 0x20 else char

    return '"' + "".join(map(escape, text)) + '"'


def canonical_number(number):
    if isinstance(number, float):
        if not number.is_integer():
            raise Broken(f"{number} is not an integer")
        number = int(number)
    if abs(number) > MAX_INTEGER:
        raise Broken(f"{number} is beyond 2^53 - 1")
    return str(number)


def canonical(value):
    """RFC 8785, with integers only."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, (int, float)):
        return canonical_number(value)
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join(canonical_string(key) + ":" + canonical(value[key]) for key in keys) + "}"


def unique_members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Broken("a key stands twice in one object")
    return members


def parse(line):
    record = json.loads(line.decode("utf-8"), object_pairs_hook=unique_members)
    if not isinstance(record, dict) or not isinstance(record.get("integrity"), dict):
        raise Broken("not a record: no object with an integrity")
    return record


def check_link(record, previous):
    integrity = record["integrity"]
    if (integrity.get("alg"), integrity.get("canon")) != ("sha-256", "rfc8785"):
        raise Broken("integrity.alg is not sha-256, or canon is not rfc8785")
    if integrity.get("prev_hash") != previous:
        raise Broken(f"prev_hash {integrity.get('prev_hash')} does not match expected {previous}")
    declared = integrity.pop("hash", None)
    recomputed = hashlib.sha256(canonical(record).encode("utf-8")).hexdigest()
    if declared != recomputed:
        raise Broken(f"hash {declared} does not match recomputed {recomputed}")
    return recomputed


def check_seq(record, seq, stream):
    """What a record of memoirfs says of its place; records of others say nothing."""
    change = record.get("fs")
    if not isinstance(change, dict):
        return stream
    if change.get("seq") != seq:
        raise Broken(f"fs.seq {change.get('seq')} where {seq} is due")
    if stream is not None and change.get("stream") != stream:
        raise Broken(f"fs.stream {change.get('stream')} in a chain of stream {stream}")
    return change.get("stream")


def verify(path):
    previous, stream, count = GENESIS, None, 0
    with open(path, "rb") as lines:
        for line in lines:
            if not line.strip():
                continue
            count += 1
            try:
                record = parse(line)
                previous = check_link(record, previous)
                stream = check_seq(record, count, stream)
            except (Broken, ValueError, RecursionError) as error:
                print(f"record {count}: {error}")
                return 1
    if count == 0:
        print("no records")
        return 3
    print(f"OK: {count} records, head {previous}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: verify_chain.py CHAIN.jsonl")
    sys.exit(verify(sys.argv[1]))
