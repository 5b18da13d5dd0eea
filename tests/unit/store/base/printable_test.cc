#include "store/base/printable.h"

#include <catch2/catch.hpp>

using memoirfs::Printable;

TEST_CASE("what is to be read stays as it is") {
  CHECK(Printable("").empty());
  CHECK(Printable("notes/a b.md") == "notes/a b.md");
  CHECK(Printable("기억 🙂 \u00a0\u200d\u2027\u202f") ==
        "기억 🙂 \u00a0\u200d\u2027\u202f");
}

TEST_CASE("text from outside cannot redraw a terminal") {
  CHECK(Printable("a\033[2Jb\r\n\x7f") == "a\\x1b[2Jb\\x0d\\x0a\\x7f");
  CHECK(Printable(std::string_view("\0", 1)) == "\\x00");
  CHECK(Printable("\u009b2J\u0080\u009f") == "\\u009b2J\\u0080\\u009f");
}

TEST_CASE("text from outside cannot reorder or break its line") {
  CHECK(Printable("\u202egnp.exe") == "\\u202egnp.exe");
  CHECK(Printable("\u202a\u202b\u202c\u202d") == "\\u202a\\u202b\\u202c\\u202d");
  CHECK(Printable("\u2066\u2067\u2068\u2069") == "\\u2066\\u2067\\u2068\\u2069");
  CHECK(Printable("\u200e\u200f\u061c") == "\\u200e\\u200f\\u061c");
  CHECK(Printable("a\u2028b\u2029c") == "a\\u2028b\\u2029c");
}

TEST_CASE("what is not UTF-8 is shown byte by byte") {
  CHECK(Printable("a\xff") == "a\\xff");
  CHECK(Printable("\x9b") == "\\x9b");
  CHECK(Printable("cut \xed\x95") == "cut \\xed\\x95");
  CHECK(Printable("\xe2\x80\xff나") == "\\xe2\\x80\\xff나");
}

TEST_CASE("no text looks like an escaped other one") {
  CHECK(Printable("a\\x1b") == "a\\\\x1b");
  CHECK(Printable("a\\x1b") != Printable("a\x1b"));
  CHECK(Printable("\\u202e") != Printable("\u202e"));
}
