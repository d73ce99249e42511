// SPDX-License-Identifier: Apache-2.0
// Broadcasts through a communicator, with a fake libnccl.so.2: found as loaded and by the loader, grouped, and failing.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "core/broadcast.h"
#include "core/error.h"
#include "fake_nccl/fake_nccl.h"
#include "support/catch.h"

namespace ts {
namespace {

ts_broadcast broadcast_of(FakeCommunicator& communicator) {
  ts_broadcast broadcast{};
  broadcast.struct_size = sizeof(broadcast);
  broadcast.n_ranks = 2;
  broadcast.rank = communicator.rank;
  broadcast.nccl_comm = &communicator;
  return broadcast;
}

template <class Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(TS_OK, "no error");
}

struct Arrays {
  std::vector<int32_t> tokens = std::vector<int32_t>(6, 1);
  std::vector<float> logprobs = std::vector<float>(6, 2.0f);
  OutputArrays all() {
    ts_sample_out out{};
    out.tokens = tokens.data();
    out.logprobs = logprobs.data();
    ts_rows rows{};
    rows.n_requests = 3;
    rows.rows_per_request = 2;
    return OutputArrays(out, rows);
  }
};

// One hidden test in a process of its own, which begins without any libnccl.so.2. environment: in front of the command.
int run_again(const std::string& test, const std::string& environment) {
  char self[4096] = "";
  REQUIRE(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
  const std::string command = environment + " '" + self + "' '" + test + "' >/dev/null";
  return std::system(command.c_str());
}

}  // namespace

TEST_CASE("nccl missing", "[.]") {
  if (void* real = dlopen("libnccl.so.2", RTLD_NOW)) {
    dlclose(real);
    return;  // this machine has one
  }
  FakeCommunicator communicator;
  const Error error = error_of([&] { Broadcast{broadcast_of(communicator)}; });
  CHECK(error.status() == TS_ERROR_UNSUPPORTED);
  CHECK(std::string(error.what()).find("libnccl.so.2") != std::string::npos);
}

TEST_CASE("nccl by path", "[.]") {
  FakeCommunicator communicator;
  const Broadcast broadcast(broadcast_of(communicator));
  Arrays arrays;
  broadcast.send(arrays.all(), nullptr);
  CHECK(communicator.n_broadcasts == 2);
}

TEST_CASE("nccl: libnccl.so.2 is found on the loader's path, and named where it is missing") {
  CHECK(run_again("nccl by path", "LD_LIBRARY_PATH='" TS_FAKE_NCCL_DIR "'") == 0);
  CHECK(run_again("nccl missing", "") == 0);
}

TEST_CASE("nccl: the copy that the process has loaded serves a call in one group") {
  REQUIRE(dlopen(TS_FAKE_NCCL_DIR "/libnccl.so.2", RTLD_NOW) != nullptr);
  int some_stream = 0;
  const auto stream = reinterpret_cast<ts_stream>(&some_stream);
  for (const int rank : {0, 1}) {
    FakeCommunicator communicator;
    communicator.rank = rank;
    communicator.fill = 7;
    const Broadcast broadcast(broadcast_of(communicator));
    CHECK(broadcast.on());
    CHECK(communicator.n_groups == 0);
    Arrays arrays;
    broadcast.send(arrays.all(), stream);
    CHECK(communicator.n_groups == 1);
    CHECK_FALSE(communicator.in_group);
    CHECK(communicator.n_outside_group == 0);
    REQUIRE(communicator.n_broadcasts == 2);
    CHECK(communicator.data[0] == arrays.tokens.data());
    CHECK(communicator.data[1] == arrays.logprobs.data());
    CHECK(communicator.n_bytes[0] == 24);
    CHECK(communicator.n_bytes[1] == 24);
    CHECK(communicator.stream == stream);
    CHECK(arrays.tokens == std::vector<int32_t>(6, rank == 0 ? 1 : 0x07070707));
  }
}

TEST_CASE("nccl: a communicator of another size or rank, and NCCL's own errors") {
  REQUIRE(dlopen(TS_FAKE_NCCL_DIR "/libnccl.so.2", RTLD_NOW) != nullptr);
  FakeCommunicator communicator;
  const auto make = [&](int n_ranks, int rank) {
    return error_of([&] {
      ts_broadcast broadcast = broadcast_of(communicator);
      broadcast.n_ranks = n_ranks;
      broadcast.rank = rank;
      Broadcast{broadcast};
    });
  };
  CHECK(make(2, 0).status() == TS_OK);
  CHECK(make(3, 0).status() == TS_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(make(3, 0).what()).find("ts_broadcast.n_ranks") == 0);
  CHECK(make(2, 1).status() == TS_ERROR_INVALID_ARGUMENT);
  CHECK(std::string(make(2, 1).what()).find("ts_broadcast.rank") == 0);
  communicator.n_ranks = 0;
  CHECK(make(2, 0).status() == TS_ERROR_CUDA);
  CHECK(std::string(make(2, 0).what()) == "ncclCommCount: fake invalid usage");

  communicator.n_ranks = 2;
  const Broadcast broadcast(broadcast_of(communicator));
  communicator.broadcast_error = 5;
  Arrays arrays;
  Error error = error_of([&] { broadcast.send(arrays.all(), nullptr); });
  CHECK(error.status() == TS_ERROR_CUDA);
  CHECK(std::string(error.what()) == "ncclBroadcast: fake invalid usage");
  CHECK_FALSE(communicator.in_group);
  communicator.end_error = 2;
  error = error_of([&] { broadcast.send(arrays.all(), nullptr); });
  CHECK(std::string(error.what()) == "ncclGroupEnd: fake error");
}

}  // namespace ts
