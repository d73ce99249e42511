// SPDX-License-Identifier: Apache-2.0
// FAULTS.md A5 and D3: the capture protocol. Every variant of both calls is captured in a stream capture that forbids
// allocation and synchronisation anywhere in the process, also as the very first call of a process, and replayed a
// hundred times with positions, slots, logits and requests that change on the device; each replay against the CPU.
// Usage: capture_test [--replays N]    N: without the processes of their own, for sanitizers
//        capture_test --first CALL INDEX    one variant, as the first call of a process
#include <filesystem>
#include <set>

#include "gpu/captured.h"
#include "gpu/engine.h"

namespace ts::gpu {
namespace {

long n_replays = 0, n_mismatches = 0, n_captures = 0;

void expect_same(Engine& engine, cudaStream_t stream, const std::string& what) {
  ++n_replays;
  if (engine.results(stream) == engine.expected()) return;
  if (++n_mismatches <= 20) std::printf("%s: differs from the CPU backend\n", what.c_str());
}

void expect(bool ok, const std::string& what) {
  if (ok) return;
  ++n_mismatches;
  std::printf("FAILED: %s\n", what.c_str());
}

// Ends a capture and counts what does not belong in it.
cudaGraphExec_t end_capture(cudaStream_t stream, ts_status status, const std::string& what) {
  ++n_captures;
  const Captured captured = gpu::end_capture(stream, status, what);
  expect(captured.n_nodes > 0, what + ": something was captured");
  expect(captured.n_foreign == 0, what + ": a node that is neither kernel nor memset");
  return captured.executable;
}

std::string variant_of(int32_t call, int32_t index) { return ts_capture_variant_name(call, index); }

Shape shape_of(int32_t call, Asked asked) {
  Shape shape;
  shape.verify = call == TS_CALL_VERIFY;
  shape.rows_per_request = shape.verify ? 4 : 1;
  shape.asked = asked;
  return shape;
}

cudaGraphExec_t capture_variant(ts_sampler* sampler, Engine& engine, const Shape& shape, const std::string& variant,
                                cudaStream_t stream) {
  check(ts_sampler_prepare_capture(sampler, shape.n_requests, shape.rows_per_request, variant.c_str(), stream) == TS_OK,
        "prepare_capture");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  const ts_status status = engine.enqueue(stream);
  cudaGraphExec_t graph = end_capture(stream, status, variant);
  check(ts_sampler_reset_capture(sampler, stream) == TS_OK, "reset_capture");
  return graph;
}

void replay(Engine& engine, cudaGraphExec_t graph, cudaStream_t stream) {
  engine.poison(stream);
  check(cudaGraphLaunch(graph, stream), "launch");
}

// The replays of an engine: all that the graph reads from device memory changes in between.
void replay_many(ts_sampler* sampler, Engine& engine, const Shape& shape, int32_t call, int32_t index, int kind,
                 cudaGraphExec_t graph, cudaStream_t stream, int replays) {
  const std::string variant = variant_of(call, index);
  const std::string what = variant + ", step " + std::to_string(kind) + ", " + to_string(shape.asked);
  engine.new_requests(kind, stream);
  if (index > 0 || kind == 0) {
    expect(ts_sampler_step_variant(sampler, call) == variant, what + ": step_variant names the graph");
  }
  std::set<std::vector<int32_t>> distinct;
  for (int i = 0; i < replays; ++i) {
    if (i % 7 == 3) engine.change_logits(stream);
    if (i % 10 == 5) engine.rotate_slots(stream);
    if (i == replays / 2) engine.new_requests(kind, stream);  // recycled slots: their new state is read
    replay(engine, graph, stream);
    expect_same(engine, stream, what);
    distinct.insert(engine.results(stream));
    if (i % 20 == 19) {  // equal positions: equal tokens
      const std::vector<int32_t> before = engine.results(stream);
      replay(engine, graph, stream);
      expect(engine.results(stream) == before, what + ": a replay with equal positions gives equal tokens");
    }
    engine.advance(shape.rows_per_request, stream);
  }
  if (kind != 5 && replays > 1) {
    expect(distinct.size() > static_cast<size_t>(replays) / 2, what + ": draws differ as positions advance");
  }
}

void test_variant(int32_t call, int32_t index, Asked asked, uint64_t flags, cudaStream_t stream, int replays) {
  const Shape shape = shape_of(call, asked);
  ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab, 0, 1024, 8, {0, flags});
  Engine engine(sampler, shape, 1 + static_cast<uint64_t>(index));
  cudaGraphExec_t graph = capture_variant(sampler, engine, shape, variant_of(call, index), stream);
  replay_many(sampler, engine, shape, call, index, index, graph, stream, replays);
  // Greedy steps replay the plain variant; the default variant serves every step.
  if (index == 1) replay_many(sampler, engine, shape, call, index, 5, graph, stream, replays / 5);
  for (int kind = 1; kind < kNumSteps && index == 0; ++kind) {
    replay_many(sampler, engine, shape, call, index, kind, graph, stream, replays / 5);
  }
  check(cudaGraphExecDestroy(graph), "destroy");
  ts_sampler_destroy(sampler);
}

// A natural step, prepared before or inside the capture: its owners are known, so nothing is written.
void test_natural_step(int32_t call, int kind, cudaStream_t stream) {
  const Shape shape = shape_of(call, kEverything);
  ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab);
  Engine engine(sampler, shape, 50);
  engine.new_requests(kind, stream);
  check(cudaStreamSynchronize(stream), "new owners");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  check(engine.prepare_known() == TS_OK, "prepare_step of known owners inside a capture");
  cudaGraphExec_t graph = end_capture(stream, engine.enqueue(stream), "a natural step");
  for (int i = 0; i < 10; ++i) {
    replay(engine, graph, stream);
    expect_same(engine, stream, "a natural step");
    engine.advance(shape.rows_per_request, stream);
  }
  check(cudaGraphExecDestroy(graph), "destroy");
  ts_sampler_destroy(sampler);
}

// In a process of its own: nothing was ever launched when the capture begins.
int first_call(int32_t call, int32_t index) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const Shape shape = shape_of(call, kEverything);
  ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab);
  Engine engine(sampler, shape, 90);
  cudaGraphExec_t graph = capture_variant(sampler, engine, shape, variant_of(call, index), stream);
  engine.new_requests(index, stream);
  for (int i = 0; i < 3; ++i) {
    replay(engine, graph, stream);
    expect_same(engine, stream, "first call of a process");
    engine.advance(1, stream);
  }
  return n_mismatches == 0 ? 0 : 1;
}

void test_first_calls(const std::string& program) {
  for (const int32_t call : {TS_CALL_SAMPLE, TS_CALL_VERIFY}) {
    for (int32_t index = 0; index < ts_capture_variant_count(call); ++index) {
      const std::string command =
          "\"" + program + "\" --first " + std::to_string(call) + " " + std::to_string(index) + " >&2";
      expect(std::system(command.c_str()) == 0, variant_of(call, index) + " as the first call of a process");
      ++n_captures;
    }
  }
}

int run(const std::string& program, int replays, bool first_calls) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (const int32_t call : {TS_CALL_SAMPLE, TS_CALL_VERIFY}) {
    expect(ts_capture_variant_count(call) == kNumSteps - 1, "the number of variants");
    for (int32_t index = 0; index < ts_capture_variant_count(call); ++index) {
      for (const Asked asked : kAsked) test_variant(call, index, asked, 0, stream, replays);
      test_variant(call, index, kNothingElse, TS_CONFIG_CLUSTERS, stream, replays);
      test_natural_step(call, index, stream);
    }
  }
  check(cudaStreamDestroy(stream), "stream");
  if (first_calls) test_first_calls(program);
  std::printf("capture_test: captures=%ld replays=%ld mismatches=%ld\n", n_captures, n_replays, n_mismatches);
  return n_mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ts::gpu

int main(int argc, char** argv) {
  ts::gpu::skip_without_gpu();
  if (argc == 4 && std::string(argv[1]) == "--first")
    return ts::gpu::first_call(std::atoi(argv[2]), std::atoi(argv[3]));
  const bool has_replays = argc == 3 && std::string(argv[1]) == "--replays";
  return ts::gpu::run(std::filesystem::read_symlink("/proc/self/exe"), has_replays ? std::atoi(argv[2]) : 100,
                      !has_replays);
}
