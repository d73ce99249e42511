// SPDX-License-Identifier: Apache-2.0
// Graphs that the sampler owns (ts_config.max_graphs), against the CPU backend: a hundred calls of every kind with
// advancing positions and other arrays each time, eviction, the off switch, graphs made ahead, and calls inside a
// capture of the caller's. Usage: owned_graphs [--replays N]    N: without the device's free memory, for sanitizers
#include "gpu/captured.h"
#include "gpu/engine.h"

namespace ts::gpu {
namespace {

long n_calls = 0, n_mismatches = 0;

void expect(bool ok, const std::string& what) {
  if (ok) return;
  if (++n_mismatches <= 20) std::printf("FAILED: %s\n", what.c_str());
}

// One call, on the arrays or on their copies elsewhere, and its comparison.
void call_and_compare(Engine& engine, cudaStream_t stream, bool other, const std::string& what) {
  ++n_calls;
  engine.poison(stream);
  if (other) engine.copy_arrays(stream);
  check(engine.enqueue(stream, other) == TS_OK, what.c_str());
  if (other) engine.poison_first(stream);  // results that landed in the other call's arrays are gone
  expect(engine.results(stream, other) == engine.expected(), what + ": differs from the CPU backend");
}

Shape shape_of(int32_t n_requests, bool verify, Asked asked) {
  Shape shape;
  shape.n_requests = n_requests;
  shape.verify = verify;
  shape.rows_per_request = verify ? 4 : 1;
  shape.asked = asked;
  return shape;
}

void test_replays(int32_t max_graphs, uint64_t flags, bool ahead, cudaStream_t stream, int replays) {
  for (const bool verify : {false, true}) {
    for (const Asked asked : kAsked) {
      const Shape shape = shape_of(6, verify, asked);
      ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab, 0, 1024, 8, {max_graphs, flags});
      Engine engine(sampler, shape, 31);
      const int32_t call = verify ? TS_CALL_VERIFY : TS_CALL_SAMPLE;
      for (int32_t i = 0; ahead && i < ts_capture_variant_count(call); ++i) {
        const char* variant = ts_capture_variant_name(call, i);
        check(ts_sampler_prepare_capture(sampler, shape.n_requests, shape.rows_per_request, variant, stream) == TS_OK,
              "prepare_capture");
        check(engine.enqueue(stream) == TS_OK, "a graph made ahead");
      }
      if (ahead) check(ts_sampler_reset_capture(sampler, stream) == TS_OK, "reset_capture");
      for (int kind = 0; kind < kNumSteps; ++kind) {
        engine.new_requests(kind, stream);
        const std::string what = "max_graphs " + std::to_string(max_graphs) + (ahead ? ", ahead" : "") + ", step " +
                                 std::to_string(kind) + (verify ? ", verify" : ", sample");
        for (int i = 0; i < replays; ++i) {
          if (i % 7 == 3) engine.change_logits(stream);
          if (i % 10 == 5) engine.rotate_slots(stream);
          if (i == replays / 2) engine.new_requests(kind, stream);
          call_and_compare(engine, stream, i % 2 == 1, what);
          engine.advance(shape.rows_per_request, stream);
        }
      }
      ts_sampler_destroy(sampler);
    }
  }
}

// Five shapes of one sampler that keeps two graphs: each call makes one and frees one, while calls of the freed one may
// still be under way.
void test_eviction(cudaStream_t stream, int replays, bool memory) {
  ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, 50257, 0, 1024, 8, {2, 0});
  std::vector<Engine*> engines;
  for (const int32_t n : {1, 2, 5, 9, 17})
    engines.push_back(new Engine(sampler, shape_of(n, n % 2 == 0, kEverything), 40));
  size_t early = 0, late = 0, all = 0;
  for (int i = 0; i < 5 * replays; ++i) {
    Engine& engine = *engines[static_cast<size_t>(i * i + i / 5) % engines.size()];
    engine.new_requests(i / 3 % kNumSteps, stream);
    call_and_compare(engine, stream, i % 2 == 1, "two graphs for five shapes");
    engine.advance(1, stream);
    // Several calls in flight: the results of the last are read.
    if (i % 4 == 0) {
      for (Engine* other : engines) {
        other->new_requests(i % kNumSteps, stream);
        other->poison(stream);
        check(other->enqueue(stream) == TS_OK, "calls in flight");
      }
      for (Engine* other : engines) expect(other->results(stream) == other->expected(), "evicted while under way");
    }
    if (i == replays) check(cudaMemGetInfo(&early, &all), "memory");
  }
  check(cudaMemGetInfo(&late, &all), "memory");
  expect(!memory || late + (size_t{8} << 20) >= early, "evicted graphs give their memory back");
  for (Engine* engine : engines) delete engine;
  ts_sampler_destroy(sampler);
}

// A sampler that has a graph for the shape is captured by its caller: kernels go into the caller's graph, no graph
// within it; and its own graph serves on afterwards.
void test_inside_capture(cudaStream_t stream, int replays) {
  for (const bool verify : {false, true}) {
    const Shape shape = shape_of(6, verify, kEverything);
    ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab);
    Engine engine(sampler, shape, 51);
    for (int kind = 0; kind < kNumSteps; ++kind) {
      engine.new_requests(kind, stream);
      call_and_compare(engine, stream, false, "before a capture");
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
      const ts_status status = engine.enqueue(stream);
      const Captured captured = end_capture(stream, status, "a call with a graph of its own");
      expect(captured.n_nodes > 0 && captured.n_foreign == 0, "kernels in the caller's capture");
      for (int i = 0; i < replays; ++i) {
        engine.advance(1, stream);
        if (i % 3 == 2) {
          call_and_compare(engine, stream, true, "its own graph beside the caller's");
          continue;
        }
        ++n_calls;
        engine.poison(stream);
        check(cudaGraphLaunch(captured.executable, stream), "launch");
        expect(engine.results(stream) == engine.expected(),
               "inside the caller's capture: differs from the CPU backend");
      }
      check(cudaGraphExecDestroy(captured.executable), "destroy");
    }
    ts_sampler_destroy(sampler);
  }
}

}  // namespace
}  // namespace ts::gpu

int main(int argc, char** argv) {
  using namespace ts::gpu;
  skip_without_gpu();
  const bool has_replays = argc == 3 && std::string(argv[1]) == "--replays";
  const int replays = has_replays ? std::atoi(argv[2]) : 100;
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  test_replays(0, 0, false, stream, replays);
  test_replays(0, 0, true, stream, replays / 4);
  test_replays(0, TS_CONFIG_CLUSTERS, false, stream, replays / 4);
  test_replays(-1, 0, false, stream, replays / 4);
  test_eviction(stream, replays, !has_replays);
  test_inside_capture(stream, replays / 4);
  std::printf("owned_graphs: calls=%ld mismatches=%ld\n", n_calls, n_mismatches);
  return n_mismatches == 0 ? 0 : 1;
}
