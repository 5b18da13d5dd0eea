#include "store/cas/object_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/stored_objects.h"

namespace memoirfs::cas {
namespace {

using testing::StoredObjects;

// Checks that an object is corrupt, and returns what reading it says.
std::string CheckCorrupt(StoredObjects& store, const Digest& digest) {
  const auto got = store.objects().Get(digest);
  REQUIRE(got.code() == Code::kCorrupt);
  REQUIRE(store.objects().GetFromDisk(digest).code() == Code::kCorrupt);
  return got.status().message();
}

bool Mentions(const std::string& message, const std::string& text) {
  return message.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("an object is read from its frame once, and then from memory") {
  StoredObjects store;
  const Digest digest = store.AddBlob("some bytes");
  CHECK(*store.objects().Get(digest).value() == "some bytes");
  CHECK(*store.objects().Get(digest).value() == "some bytes");
  CHECK(store.locations.finds() == 1);
  CHECK(*store.objects().GetFromDisk(digest).value() == "some bytes");
  CHECK(store.locations.finds() == 2);
}

TEST_CASE("the empty object and the longest one are objects like others") {
  StoredObjects store;
  const Bytes longest(kChunkSize, 'x');
  CHECK(store.objects().Get(store.AddBlob("")).value()->empty());
  CHECK(*store.objects().Get(store.AddBlob(longest)).value() == longest);
}

TEST_CASE("an object without a place is corrupt, and the listener is told") {
  StoredObjects store;
  const Digest digest = Sha256::Of("never stored");
  const auto got = store.objects().Get(digest);
  CHECK(got.code() == Code::kCorrupt);
  CHECK(Mentions(got.status().message(), digest.ToHex()));
  REQUIRE(store.corruptions.reports().size() == 1);
  CHECK(store.corruptions.reports()[0].digest == digest);
  CHECK(!store.corruptions.reports()[0].where);
}

TEST_CASE("a flipped bit anywhere in an object's frame is found") {
  StoredObjects store;
  const Bytes bytes = "a short object";
  for (uint64_t at = 0; at < Digest::kSize + bytes.size(); ++at) {
    INFO("byte " << at);
    const Digest digest = store.AddBlob(bytes);
    store.DamagePayload(digest, at);
    const std::string message = CheckCorrupt(store, digest);
    CHECK(Mentions(message, digest.ToHex()));
    CHECK(Mentions(message, std::to_string(store.locations.Peek(digest)->offset)));
  }
}

TEST_CASE("corruption is reported with its place, is not cached, and ends with a repair") {
  StoredObjects store;
  const Digest digest = store.AddBlob("bytes");
  store.DamagePayload(digest, Digest::kSize);
  CHECK(store.objects().Get(digest).code() == Code::kCorrupt);
  CHECK(store.objects().Get(digest).code() == Code::kCorrupt);
  const auto reports = store.corruptions.reports();
  REQUIRE(reports.size() == 2);
  CHECK(reports[1].digest == digest);
  CHECK(reports[1].where == store.locations.Peek(digest));
  store.AddBlob("bytes");
  CHECK(store.objects().Get(digest).ok());
}

TEST_CASE("an object that lies as suffixes of others is put together and verified") {
  StoredObjects store;
  const Digest base = store.AddBlob("one ");
  const Digest two = Sha256::Of("one two ");
  const Digest three = Sha256::Of("one two three");
  store.AddExtend(two, base, "two ");
  store.AddExtend(three, two, "three");
  CHECK(*store.objects().GetFromDisk(three).value() == "one two three");
  CHECK(*store.objects().Get(three).value() == "one two three");

  SECTION("damage of a suffix in between") { store.DamagePayload(two, 2 * Digest::kSize); }
  SECTION("damage of the name of the base") { store.DamagePayload(two, Digest::kSize); }
  SECTION("damage of the base") { store.DamagePayload(base, Digest::kSize); }
  SECTION("the base is missing") { store.locations.Remove(base); }
  store.objects().Forget(three);
  CheckCorrupt(store, three);
  CHECK(store.corruptions.reports().back().digest == three);
}

TEST_CASE("a cached base need not be read, but is by whoever reads past the cache") {
  StoredObjects store;
  const Digest base = store.AddBlob("one ");
  const Digest whole = Sha256::Of("one two");
  store.AddExtend(whole, base, "two");
  REQUIRE(store.objects().Get(base).ok());
  store.DamagePayload(base, Digest::kSize);
  CHECK(*store.objects().Get(whole).value() == "one two");
  CHECK(store.objects().GetFromDisk(whole).code() == Code::kCorrupt);
}

TEST_CASE("an object that extends itself is refused") {
  StoredObjects store;
  const Digest digest = Sha256::Of("snake");
  store.AddExtend(digest, digest, "");
  CHECK(Mentions(CheckCorrupt(store, digest), "frames"));
}

TEST_CASE("objects that are longer than any may be are refused") {
  StoredObjects store;
  const Bytes half(kChunkSize / 2 + 1, 'x');

  SECTION("one frame") { CheckCorrupt(store, store.AddBlob(Bytes(kChunkSize + 1, 'x'))); }
  SECTION("a chain of frames") {
    const Digest whole = Sha256::Of(half + half);
    store.AddExtend(whole, store.AddBlob(half), half);
    CheckCorrupt(store, whole);
  }
  SECTION("what the index says is not believed") {
    const Digest digest = store.AddBlob("short");
    journal::Location where = *store.locations.Peek(digest);
    where.length = ~0U;
    store.locations.Set(digest, where);
    CheckCorrupt(store, digest);
  }
}

TEST_CASE("a place that holds something else is corrupt") {
  StoredObjects store;
  const Digest digest = store.AddBlob("this");
  journal::Location where = *store.locations.Peek(digest);

  SECTION("another object") { where = *store.locations.Peek(store.AddBlob("that")); }
  SECTION("a frame that is no object") { where.type = journal::FrameType::kRecord; }
  SECTION("a blob taken for an extension") { where.type = journal::FrameType::kExtend; }
  SECTION("a frame too short for a digest") { where.length = 7; }
  SECTION("a place behind the end of the file") { where.offset = 1ULL << 40; }
  SECTION("a file that is not there") { where.pack.number = 77; }
  store.locations.Set(digest, where);
  CheckCorrupt(store, digest);
}

TEST_CASE("a failing index is told as it is, and no object is called corrupt") {
  StoredObjects store;
  const Digest digest = store.AddBlob("bytes");
  store.locations.FailWith(Status(Code::kIo, "index"));
  CHECK(store.objects().Get(digest).code() == Code::kIo);
  CHECK(store.corruptions.reports().empty());
  store.locations.FailWith(Status());
  CHECK(store.objects().Get(digest).ok());
}

TEST_CASE("the cache keeps what was used last, within its size") {
  StoredObjects store(5 * kChunkSize / 2);  // room for two chunks
  const Digest a = store.AddBlob(Bytes(kChunkSize, 'a'));
  const Digest b = store.AddBlob(Bytes(kChunkSize, 'b'));
  const Digest c = store.AddBlob(Bytes(kChunkSize, 'c'));
  for (const Digest& digest : {a, b, a, c}) REQUIRE(store.objects().Get(digest).ok());
  CHECK(store.locations.finds() == 3);
  REQUIRE(store.objects().Get(a).ok());
  CHECK(store.locations.finds() == 3);
  REQUIRE(store.objects().Get(b).ok());
  CHECK(store.locations.finds() == 4);
}

TEST_CASE("bytes that the caller brought are served until they are forgotten") {
  StoredObjects store;
  const Digest digest = Sha256::Of("brought");
  store.objects().Remember(digest, std::make_shared<const Bytes>("brought"));
  CHECK(*store.objects().Get(digest).value() == "brought");
  CHECK(store.locations.finds() == 0);
  store.objects().Forget(digest);
  CHECK(store.objects().Get(digest).code() == Code::kCorrupt);
}

TEST_CASE("threads that want one object at once read it once") {
  StoredObjects store;
  const Bytes bytes(kChunkSize, 'x');
  const Digest digest = store.AddBlob(bytes);
  constexpr int kThreads = 8;
  std::atomic<int> started = 0;
  std::atomic<int> right = 0;
  // The first one to come waits here until all are on their way.
  store.locations.on_find = [&] {
    while (started < kThreads) std::this_thread::yield();
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      ++started;
      const auto got = store.objects().Get(digest);
      if (got.ok() && **got == bytes) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads);
  CHECK(store.locations.finds() == 1);
}

TEST_CASE("an object that is forgotten while it is read is not kept") {
  StoredObjects store;
  const Digest digest = store.AddBlob("bytes");
  store.locations.on_find = [&] { store.objects().Forget(digest); };
  CHECK(store.objects().Get(digest).ok());
  store.locations.on_find = nullptr;
  CHECK(store.objects().Get(digest).ok());
  CHECK(store.locations.finds() == 2);
}

}  // namespace memoirfs::cas
