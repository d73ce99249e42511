// SPDX-License-Identifier: Apache-2.0
// Launch lists and the sampler's graphs on the fake runtime: arguments, attributes, replays, eviction, failures.
#include <vector>

#include "cuda/graph_cache.h"
#include "cuda/launch_list.h"
#include "fake_cudart.h"
#include "support/catch.h"

namespace ts::cuda {
namespace {

struct Wide {
  int64_t values[20];
};
void add_kernel_body(int* out, int value) { *out += value; }
void wide_kernel_body(Wide wide, int* out, float scale, const int* offset) {
  *out += static_cast<int>(static_cast<float>(wide.values[19]) * scale) + *offset;
}

const bool kernels_known = [] {
  fake::add_kernel(add_kernel_body);
  fake::add_kernel(wide_kernel_body);
  return true;
}();

LaunchShape shape_of(unsigned blocks) {
  LaunchShape shape;
  shape.grid = dim3(blocks);
  shape.block = dim3(32);
  shape.shared_bytes = 1000;
  return shape;
}

// Adds `value`, then 2 * 100 + offset.
LaunchList two_kernels(int* out, int value, const int* offset, unsigned blocks = 1,
                       ProgrammaticLaunch programmatic = {true, false}, unsigned cluster = 1) {
  LaunchList list(programmatic);
  list.add("add", add_kernel_body, shape_of(blocks), out, value);
  Wide wide{};
  wide.values[19] = 100;
  LaunchShape shape = shape_of(blocks);
  shape.cluster_size = cluster;
  list.add("wide", wide_kernel_body, shape, wide, out, 2.0f, offset);
  return list;
}

}  // namespace

TEST_CASE("a launch list copies its arguments and sets the attributes") {
  REQUIRE(kernels_known);
  const int offset = 5;
  struct {
    ProgrammaticLaunch programmatic;
    bool first, second;
  } const cases[] = {{{true, false}, false, true}, {{true, true}, true, true}, {{false, true}, false, false}};
  for (const auto& c : cases) {
    fake::Stream stream;
    int out = 0;
    enqueue(two_kernels(&out, 7, &offset, 3, c.programmatic), stream.handle());
    REQUIRE(stream.queue.size() == 2);
    CHECK(stream.queue[0].what == "kernel");
    CHECK(stream.queue[0].programmatic == c.first);
    CHECK(stream.queue[1].programmatic == c.second);
    CHECK(stream.queue[1].grid.x == 3);
    CHECK(stream.queue[1].shared_bytes == 1000);
    CHECK(stream.queue[1].cluster == 1);
    stream.run();
    CHECK(out == 7 + 200 + 5);
  }
}

TEST_CASE("a cluster's size reaches the launch and the graph node, and is part of a graph's shape") {
  fake::runtime() = {};
  const int offset = 5;
  int out = 0;
  GraphCache cache(8);
  fake::Stream stream;
  enqueue(two_kernels(&out, 1, &offset, 8, {true, true}, 4), stream.handle());
  cache.launch(two_kernels(&out, 1, &offset, 8, {true, true}, 4), stream.handle());
  cache.launch(two_kernels(&out, 1, &offset, 8, {true, true}, 2), stream.handle());
  cache.launch(two_kernels(&out, 1, &offset, 8, {true, true}, 4), stream.handle());
  REQUIRE(stream.queue.size() == 8);
  const unsigned sizes[] = {4, 4, 2, 4};
  for (size_t i = 0; i < 4; ++i) {
    INFO(i);
    CHECK(stream.queue[2 * i].cluster == 1);
    CHECK(stream.queue[2 * i + 1].cluster == sizes[i]);
    CHECK(stream.queue[2 * i + 1].programmatic);
  }
  CHECK(fake::runtime().n_instantiated == 2);
  stream.run();
  CHECK(out == 4 * 206);
}

TEST_CASE("a launch list that is full, and a launch that fails, are errors") {
  LaunchList list({true, true});
  int out = 0;
  for (int i = 0; i < kMaxLaunches; ++i) list.add("add", add_kernel_body, shape_of(1), &out, 1);
  CHECK_THROWS_AS(list.add("add", add_kernel_body, shape_of(1), &out, 1), Error);
  fake::Stream stream;
  fake::runtime().fail = "cudaLaunchKernelExC";
  try {
    enqueue(list, stream.handle());
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.status() == TS_ERROR_CUDA);
    CHECK_THAT(error.what(), says("add: fake failure"));
  }
}

TEST_CASE("a graph is made once for a shape and replayed with the arguments of each call") {
  fake::runtime() = {};
  const int offsets[2] = {1000, 2000};
  int outs[2] = {0, 0};
  {
    GraphCache cache(8);
    fake::Stream stream;
    cache.launch(two_kernels(&outs[0], 1, &offsets[0]), stream.handle());
    REQUIRE(stream.queue.size() == 2);
    CHECK(stream.queue[0].what == "node");
    CHECK_FALSE(stream.queue[0].programmatic);
    CHECK(stream.queue[1].programmatic);
    CHECK(fake::runtime().n_instantiated == 1);
    CHECK(fake::runtime().n_set_params == 0);
    // The same arguments again: nothing to set. Others in one node: that node.
    cache.launch(two_kernels(&outs[0], 1, &offsets[0]), stream.handle());
    CHECK(fake::runtime().n_set_params == 0);
    cache.launch(two_kernels(&outs[0], 10, &offsets[0]), stream.handle());
    CHECK(fake::runtime().n_set_params == 1);
    cache.launch(two_kernels(&outs[1], 20, &offsets[1]), stream.handle());
    CHECK(fake::runtime().n_set_params == 3);
    CHECK(fake::runtime().n_instantiated == 1);
    // What was enqueued before a change keeps its arguments.
    stream.run();
    CHECK(outs[0] == 1 + 1 + 10 + 3 * 1200);
    CHECK(outs[1] == 20 + 2200);
    // Back to the arguments that the graph was made with: set again.
    cache.launch(two_kernels(&outs[0], 1, &offsets[0]), stream.handle());
    stream.run();
    CHECK(outs[0] == 1 + 1 + 10 + 3 * 1200 + 1201);
    CHECK(outs[1] == 20 + 2200);
    // Each part of a shape makes another graph.
    cache.launch(two_kernels(&outs[0], 1, &offsets[0], 2), stream.handle());
    cache.launch(two_kernels(&outs[0], 1, &offsets[0], 1, {false, false}), stream.handle());
    LaunchList one({true, false});
    one.add("add", add_kernel_body, shape_of(1), &outs[0], 1);
    cache.launch(one, stream.handle());
    CHECK(fake::runtime().n_instantiated == 4);
    CHECK(cache.size() == 4);
    CHECK(fake::runtime().n_live_execs == 4);
  }
  CHECK(fake::runtime().n_live_execs == 0);
  CHECK(fake::runtime().n_live_graphs == 0);
}

TEST_CASE("a hundred replays with advancing arguments") {
  GraphCache cache(1);
  fake::Stream stream;
  const int offset = 0;
  int out = 0;
  int expected = 0;
  for (int i = 0; i < 100; ++i) {
    cache.launch(two_kernels(&out, i, &offset), stream.handle());
    expected += i + 200;
  }
  stream.run();
  CHECK(out == expected);
  CHECK(cache.size() == 1);
}

TEST_CASE("the graph that was unused for the longest time goes when the bound is reached") {
  fake::runtime() = {};
  const int offset = 0;
  int out = 0;
  GraphCache cache(2);
  fake::Stream stream;
  const auto launch = [&](unsigned blocks) {
    const int before = fake::runtime().n_instantiated;
    cache.launch(two_kernels(&out, 1, &offset, blocks), stream.handle());
    CHECK(cache.size() <= 2);
    CHECK(fake::runtime().n_live_execs <= 2);
    return fake::runtime().n_instantiated - before;
  };
  CHECK(launch(1) == 1);
  CHECK(launch(2) == 1);
  CHECK(launch(1) == 0);
  CHECK(launch(3) == 1);  // 2 goes
  CHECK(launch(1) == 0);
  CHECK(launch(2) == 1);  // 3 goes
  CHECK(launch(1) == 0);
  CHECK(launch(3) == 1);  // 2 goes
  stream.run();           // graphs that went while in flight ran all the same
  CHECK(out == 8 * 201);
  CHECK_FALSE(GraphCache(-1).enabled());
  CHECK_FALSE(GraphCache(0).enabled());
  CHECK(GraphCache(1).enabled());
}

TEST_CASE("a graph that cannot be made, set or launched is an error, and nothing is lost") {
  fake::runtime() = {};
  const int offset = 0;
  int out = 0;
  GraphCache cache(4);
  fake::Stream stream;
  const auto fails_at = [&](const char* function, int value) {
    INFO(function);
    fake::runtime().fail = function;
    try {
      cache.launch(two_kernels(&out, value, &offset, 2, {true, false}, 2), stream.handle());
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.status() == TS_ERROR_CUDA);
    }
    CHECK(stream.queue.empty());
    CHECK(fake::runtime().n_live_execs == static_cast<int>(cache.size()));
    CHECK(fake::runtime().n_live_graphs == static_cast<int>(cache.size()));
  };
  fails_at("cudaGraphAddKernelNode", 1);
  fails_at("cudaGraphKernelNodeSetAttribute", 1);
  fails_at("cudaGraphInstantiate", 1);
  CHECK(cache.size() == 0);
  cache.launch(two_kernels(&out, 1, &offset, 2, {true, false}, 2), stream.handle());
  stream.run();
  fails_at("cudaGraphExecKernelNodeSetParams", 2);
  fails_at("cudaGraphLaunch", 3);
  cache.launch(two_kernels(&out, 4, &offset, 2, {true, false}, 2), stream.handle());
  stream.run();
  CHECK(out == 201 + 204);
}

}  // namespace ts::cuda
