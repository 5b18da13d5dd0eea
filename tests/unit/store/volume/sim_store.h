#pragma once

// A store in memory with one agent, "ada", for tests of the volume.

#include <catch2/catch.hpp>
#include <string>

#include "store/volume/verify.h"
#include "tests/crash/volume_workload.h"

namespace memoirfs::testing {

struct SimStore {
  SimIo io;
  LivingStore store;

  explicit SimStore(const volume::VolumeOptions& options = CrashOptions()) : store(io, options) {
    REQUIRE(volume::InitStore(io, options).ok());
    REQUIRE(store.Open().ToString() == "ok");
    REQUIRE(store.AddAgent("ada").ok());
  }

  StreamId Ada() { return store->FindAgent("ada")->stream; }

  Status TrySave(const std::string& path, const Bytes& text) {
    const Status made = store.Create(path);
    if (!made.ok() && made.code() != Code::kExists) return made;
    return store.Commit(path, text);
  }
  void Save(const std::string& path, const Bytes& text) {
    REQUIRE(TrySave(path, text).ToString() == "ok");
  }

  void Reopen() {
    store.Close();
    REQUIRE(store.Open().ToString() == "ok");
  }

  void CheckVerifies() {
    const auto report = volume::VerifyVolume(*store, {}, {});
    REQUIRE(report.status().ToString() == "ok");
    for (const auto& problem : report->problems) UNSCOPED_INFO(problem.what + " " + problem.where);
    CHECK(report->problems.empty());
  }
};

}  // namespace memoirfs::testing
