#include "store/cas/object_store.h"

#include <unordered_map>
#include <utility>

#include "store/cas/object_cache.h"
#include "store/cas/object_reader.h"

namespace memoirfs::cas {
namespace {

// A read of one object, for which other threads may wait.
struct Flight {
  bool forgotten = false;                // Forget was called meanwhile: not to be cached
  std::optional<Result<Buffer>> result;  // set when it has ended
};

}  // namespace

// Locks: `mutex_` guards cache and flights; nothing is read, hashed or reported with it held.
class ObjectStore::Impl {
 public:
  Impl(journal::PackReader& packs, LocationTable& locations, CorruptionListener* listener,
       ObjectStoreOptions options)
      : reader_(packs, locations, listener), cache_(options.cache_bytes) {}

  Result<Buffer> Get(const Digest& digest);

  Result<Buffer> GetFromDisk(const Digest& digest) {
    return reader_.Read(digest, [](const Digest&) { return Buffer(); });
  }
  void Remember(const Digest& digest, Buffer bytes) {
    const MutexLock lock(mutex_);
    cache_.Insert(digest, std::move(bytes));
  }
  void Forget(const Digest& digest) {
    const MutexLock lock(mutex_);
    cache_.Erase(digest);
    const auto flight = flights_.find(digest);
    if (flight != flights_.end()) flight->second->forgotten = true;
  }

 private:
  // The cached bytes, the result of a read that was under way, or nothing: then this thread has
  // to read, and `flight` is its own.
  std::optional<Result<Buffer>> FindOrWait(const Digest& digest, std::shared_ptr<Flight>& flight);
  class Landing;
  void Land(const Digest& digest, Flight& flight, const Result<Buffer>& result);

  ObjectReader reader_;
  Mutex mutex_;
  CondVar landed_;
  ObjectCache cache_ GUARDED_BY(mutex_);
  std::unordered_map<Digest, std::shared_ptr<Flight>> flights_ GUARDED_BY(mutex_);
};

// Ends this thread's flight however the read ends, so that nobody waits for ever.
class ObjectStore::Impl::Landing {
 public:
  Landing(Impl& impl, const Digest& digest, Flight& flight)
      : impl_(impl), digest_(digest), flight_(flight) {}
  ~Landing() { impl_.Land(digest_, flight_, result); }
  Landing(const Landing&) = delete;
  Landing& operator=(const Landing&) = delete;

  Result<Buffer> result = Status(Code::kUnavailable, "a read of an object was broken off");

 private:
  Impl& impl_;
  const Digest& digest_;
  Flight& flight_;
};

Result<Buffer> ObjectStore::Impl::Get(const Digest& digest) {
  std::shared_ptr<Flight> flight;
  if (auto found = FindOrWait(digest, flight)) return *std::move(found);
  Landing landing(*this, digest, *flight);
  landing.result = reader_.Read(digest, [this](const Digest& base) {
    const MutexLock lock(mutex_);
    return cache_.Find(base);
  });
  return landing.result;
}

std::optional<Result<Buffer>> ObjectStore::Impl::FindOrWait(const Digest& digest,
                                                            std::shared_ptr<Flight>& flight) {
  const MutexLock lock(mutex_);
  if (Buffer cached = cache_.Find(digest)) return Result<Buffer>(std::move(cached));
  const auto [under_way, is_ours] = flights_.try_emplace(digest);
  if (is_ours) under_way->second = std::make_shared<Flight>();
  flight = under_way->second;
  if (is_ours) return std::nullopt;
  while (!flight->result) landed_.Wait(mutex_);
  return flight->result;
}

void ObjectStore::Impl::Land(const Digest& digest, Flight& flight, const Result<Buffer>& result) {
  {
    const MutexLock lock(mutex_);
    if (result.ok() && !flight.forgotten) cache_.Insert(digest, *result);
    flight.result = result;
    flights_.erase(digest);
  }
  landed_.NotifyAll();
}

ObjectStore::ObjectStore(journal::PackReader& packs, LocationTable& locations,
                         CorruptionListener* listener, ObjectStoreOptions options)
    : impl_(std::make_unique<Impl>(packs, locations, listener, options)) {}
ObjectStore::~ObjectStore() = default;

Result<Buffer> ObjectStore::Get(const Digest& digest) { return impl_->Get(digest); }
Result<Buffer> ObjectStore::GetFromDisk(const Digest& digest) { return impl_->GetFromDisk(digest); }
void ObjectStore::Remember(const Digest& digest, Buffer bytes) {
  impl_->Remember(digest, std::move(bytes));
}
void ObjectStore::Forget(const Digest& digest) { impl_->Forget(digest); }

}  // namespace memoirfs::cas
