// SPDX-License-Identifier: Apache-2.0
// FAULTS.md D4, D5 and D6 and the hot path: calls on a few SMs, beside a kernel that holds the others, right behind the
// kernel that writes the logits, and without taking memory. Results against the CPU backend.
// Usage: stream_test                             all but D5
//        stream_test --producer N                 N rounds of the producer test alone, for sanitizers, under which kernels
//                                                 do not run beside each other
//        stream_test --few-sms [FREE_SMS FLAGS]   D5; FLAGS: ts_config.flags
#include <chrono>
#include <thread>

#include "gpu/engine.h"
#include "gpu/few_sms.h"
#include "gpu/kernels.h"

namespace ts::gpu {
namespace {

long n_calls = 0, n_failures = 0, n_skipped = 0;

void expect(bool ok, const std::string& what) {
  ++n_calls;
  if (ok) return;
  if (++n_failures <= 20) std::printf("FAILED: %s\n", what.c_str());
}

// Why not cudaStreamSynchronize: a kernel that waits for a block that cannot start would hang the test.
void wait(cudaStream_t stream, const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    const cudaError_t error = cudaStreamQuery(stream);
    if (error == cudaSuccess) return;
    if (error != cudaErrorNotReady) check(error, what.c_str());
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed.count() > 15) {
      std::printf("FAILED: %s: not done after 15 s\n", what.c_str());
      std::fflush(stdout);
      std::_Exit(1);  // the device never ends: no destructor would return
    }
    std::this_thread::yield();
  }
}

// Shapes that share a row among blocks, and that have more blocks than any GPU holds at once.
const Shape kShapes[] = {{1, 1, 128256, false, kEverything},  {6, 1, 50257, false, kEverything},
                         {6, 4, 50257, true, kEverything},    {400, 2, 5003, false, kEverything},
                         {1, 1, 128256, false, kNothingElse}, {6, 1, 50257, false, kLogprobsAlone}};

void calls_on(cudaStream_t stream, const std::string& where) {
  for (const Shape& shape : kShapes) {
    ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab);
    Engine engine(sampler, shape, 7);
    for (int kind = 0; kind < kNumSteps; ++kind) {
      engine.new_requests(kind, stream);
      engine.poison(stream);
      check(engine.enqueue(stream) == TS_OK, "the call");
      wait(stream, where);
      expect(engine.results(stream) == engine.expected(), where + ": differs from the CPU backend");
    }
    ts_sampler_destroy(sampler);
  }
}

void test_green_context() {
  std::string why;
  int n_sm = 0;
  cudaStream_t stream = make_small_stream(8, &n_sm, &why);
  if (stream == nullptr) {
    ++n_skipped;
    std::printf("D5 green context: skipped: %s\n", why.c_str());
    return;
  }
  calls_on(stream, "on " + std::to_string(n_sm) + " SMs");
  std::printf("D5 green context: %d SMs\n", n_sm);
}

// All but n_free SMs are held by another kernel until the calls are done.
void test_occupied(int n_free, uint64_t config_flags) {
  // Made before, and without graphs of their own: memory cannot be taken beside a kernel that does not end.
  struct Work {
    ts_sampler* sampler;
    Engine* engine;
  };
  std::vector<Work> work;
  for (const Shape& shape : kShapes) {
    ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab, 0, 1024, 8, {-1, config_flags});
    work.push_back({sampler, new Engine(sampler, shape, 9)});
  }
  int n_sm = 0;
  check(cudaDeviceGetAttribute(&n_sm, cudaDevAttrMultiProcessorCount, 0), "number of SMs");
  cudaStream_t stream, other;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "stream");
  int32_t* shared = nullptr;  // stop, blocks running
  check(cudaHostAlloc(reinterpret_cast<void**>(&shared), 8, cudaHostAllocMapped), "mapped memory");
  volatile int32_t* flags = shared;
  flags[0] = flags[1] = 0;
  launch_occupy(n_sm - n_free, flags, flags + 1, other);
  check(cudaGetLastError(), "the occupying kernel");
  const auto begin = std::chrono::steady_clock::now();
  while (flags[1] < n_sm - n_free) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed.count() < 5) continue;
    flags[0] = 1;
    ++n_skipped;
    std::printf("D5 occupied: skipped: only %d of %d blocks run at once\n", flags[1], n_sm - n_free);
    check(cudaDeviceSynchronize(), "the occupying kernel");
    return;
  }
  for (const Work& w : work) {
    for (int kind = 0; kind < kNumSteps; ++kind) {
      w.engine->new_requests(kind, stream);
      w.engine->poison(stream);
      check(w.engine->enqueue(stream) == TS_OK, "the call");
      const std::string what = "beside a kernel on all but a few SMs, step " + std::to_string(kind) + " of " +
                               std::to_string(w.engine->n_rows());
      wait(stream, what.c_str());
      expect(w.engine->results(stream) == w.engine->expected(), "beside a kernel on all but a few SMs");
    }
  }
  expect(cudaStreamQuery(other) == cudaErrorNotReady, "the occupying kernel ran all the while");
  flags[0] = 1;
  check(cudaDeviceSynchronize(), "the occupying kernel");
  for (const Work& w : work) {
    delete w.engine;
    ts_sampler_destroy(w.sampler);
  }
  std::printf("D5 occupied: %d of %d SMs held\n", n_sm - n_free, n_sm);
}

// The kernel in front writes what the call reads, the kernel behind overwrites it, nobody waits: a read or write that
// is not ordered (programmatic dependent launch) shows as another token.
void test_producer(int rounds, Extras extras) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  for (const Shape& shape : kShapes) {
    ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab, 0, 1024, 8, extras);
    Engine engine(sampler, shape, 11);
    for (int kind = 0; kind < kNumSteps; ++kind) {
      engine.new_requests(kind, stream);
      for (int i = 0; i < rounds; ++i) {
        engine.poison(stream);
        engine.change_logits(stream);
        engine.advance(1, stream);
        if (i % 3 == 1) engine.rotate_slots(stream);
        if (i % 4 == 2) engine.new_requests(kind, stream);
        check(engine.enqueue(stream) == TS_OK, "the call");
        const std::vector<int32_t> expected = engine.expected();
        const std::vector<int32_t> got = engine.results_and_overwrite(stream);
        expect(got == expected, "between kernels that write what it reads");
      }
    }
    ts_sampler_destroy(sampler);
  }
  check(cudaStreamDestroy(stream), "stream");
}

// As a sampler comes, without graphs of its own, and with early starts behind the producer: TS_CONFIG_PROGRAMMATIC_LAUNCH.
void test_producers(int rounds) {
  test_producer(rounds, {});
  test_producer(rounds, {-1, 0});
  test_producer(rounds, {-1, TS_CONFIG_PROGRAMMATIC_LAUNCH});
}

// Two thousand calls and as many new owners: the GPU's free memory stays what it was at create, the first call
// included. Graphs that the sampler owns take memory when a shape is first seen, and none later.
void test_memory(int32_t max_graphs) {
  const Shape shape = kShapes[2];
  ts_sampler* sampler = make_sampler(TS_DEVICE_CUDA, shape.vocab, 0, 1024, 8, {max_graphs, 0});
  Engine engine(sampler, shape, 13);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  engine.poison(stream);
  engine.advance(1, stream);
  for (int kind = 0; kind < kNumSteps && max_graphs >= 0; ++kind) {
    engine.new_requests(kind, stream);
    check(engine.enqueue(stream) == TS_OK, "the call");
  }
  check(cudaDeviceSynchronize(), "set-up");
  size_t before = 0, after = 0, all = 0;
  check(cudaMemGetInfo(&before, &all), "memory");
  for (int i = 0; i < 2000; ++i) {
    engine.new_requests(i % kNumSteps, stream);
    check(engine.enqueue(stream) == TS_OK, "the call");
  }
  check(cudaDeviceSynchronize(), "the calls");
  check(cudaMemGetInfo(&after, &all), "memory");
  expect(before == after,
         "calls take no device memory: " + std::to_string(before) + " bytes were free, then " + std::to_string(after));
  ts_sampler_destroy(sampler);
}

// FAULTS.md D4: two samplers of the same pool shape, calls of both in flight at once, new owners in the same slots.
void test_two_streams(int rounds) {
  const std::string what = "two samplers on two streams";
  const Shape shape = kShapes[1];
  ts_sampler* samplers[2];
  cudaStream_t streams[2];
  Engine* engines[2];
  for (int i = 0; i < 2; ++i) {
    samplers[i] = make_sampler(TS_DEVICE_CUDA, shape.vocab);
    check(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking), "stream");
    engines[i] = new Engine(samplers[i], shape, 20 + static_cast<uint64_t>(i));
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 2; ++i) {
      engines[i]->new_requests((round + i) % kNumSteps, streams[i]);
      engines[i]->poison(streams[i]);
      engines[i]->advance(1, streams[i]);
    }
    for (int i = 0; i < 2; ++i) check(engines[i]->enqueue(streams[i]) == TS_OK, "the call");
    for (int i = 0; i < 2; ++i) expect(engines[i]->results(streams[i]) == engines[i]->expected(), what);
  }
  for (int i = 0; i < 2; ++i) {
    delete engines[i];
    ts_sampler_destroy(samplers[i]);
    check(cudaStreamDestroy(streams[i]), "stream");
  }
}

}  // namespace
}  // namespace ts::gpu

int main(int argc, char** argv) {
  ts::gpu::skip_without_gpu();
  const std::string part = argc > 1 ? argv[1] : "";
  const auto number = [&](int i, int otherwise) { return argc > i ? std::atoi(argv[i]) : otherwise; };
  if (part == "--producer") {
    ts::gpu::test_producers(number(2, 30));
  } else if (part == "--few-sms") {
    ts::gpu::test_green_context();
    ts::gpu::test_occupied(number(2, 8), static_cast<uint64_t>(number(3, 0)));
  } else {
    ts::gpu::test_memory(-1);
    ts::gpu::test_memory(0);
    ts::gpu::test_producers(30);
    ts::gpu::test_two_streams(200);
  }
  std::printf("stream_test: calls=%ld failures=%ld parts %s=%ld\n", ts::gpu::n_calls, ts::gpu::n_failures,
              ts::gpu::n_skipped != 0 ? "skipped" : "left out", ts::gpu::n_skipped);
  return ts::gpu::n_failures != 0 ? 1 : ts::gpu::n_skipped != 0 ? 77 : 0;
}
