// SPDX-License-Identifier: Apache-2.0
// Sums of a group's weights, as the kernels form them, against the contract's weights one by one. By the emulator, since
// the CPU backend has no such sums.
#include <cmath>
#include <random>
#include <vector>

#include "cuda/weight_sum.cuh"
#include "emulator.h"
#include "support/catch.h"

namespace ts::test {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr int kLanes = 32;

// A group a lane.
struct Warp {
  float logits[kLanes][cuda::kGroup];
  float max;
  float factor;
};

// Groups whose sum is not that of their weights.
int64_t n_wrong(const Warp& warp) {
  uint64_t sums[kLanes];
  emulator::Launch launch;
  launch.grid = dim3(1);
  launch.block = dim3(kLanes);
  emulator::run(launch, [&] {
    const float(&logits)[cuda::kGroup] = warp.logits[threadIdx.x];
    float top = logits[0];
    for (const float logit : logits) top = logit > top ? logit : top;
    sums[threadIdx.x] = cuda::sum_of_weights(logits, top, warp.max, warp.factor);
  });
  int64_t n = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    uint64_t expected = 0;
    for (const float logit : warp.logits[lane]) expected += weight(logit - warp.max, warp.factor);
    n += sums[lane] != expected;
  }
  return n;
}

}  // namespace

TEST_CASE("weight_sum: equals the weights' sum", "[weight]") {
  std::mt19937_64 rng(7);
  const auto uniform = [&] { return static_cast<float>(rng() >> 40) * 0x1p-24f; };
  // Distances in powers of two where a branch, a rounding or the range ends, and their neighbours.
  std::vector<float> edges;
  for (const float z : {0.0f,  0x1p-149f, 0x1p-30f, 0x1p-24f, 1.0f,  15.0f, 16.0f, 17.0f, 18.0f, 19.0f,
                        20.0f, 21.0f,     23.0f,    24.0f,    38.0f, 39.0f, 40.0f, 41.0f, 1e30f, HUGE_VALF}) {
    edges.insert(edges.end(), {-std::nextafter(z, 0.0f), -z, -std::nextafter(z, HUGE_VALF)});
  }
  int64_t n = 0;
  for (int i = 0; i < 3000; ++i) {
    Warp warp;
    warp.factor = i % 3 == 0 ? 1.0f : i % 3 == 1 ? kLog2E : std::exp2(40.0f * uniform() - 20.0f);
    warp.max = i % 3 == 0 ? 0.0f : 100.0f * uniform() - 50.0f;
    // Near the maximum, far below it, and lanes of both.
    const float nearest = i % 2 == 0 ? 0.0f : 14.0f + 4.0f * uniform();
    const float range = i % 5 == 0 ? 3.0f : 42.0f;
    for (int lane = 0; lane < kLanes; ++lane) {
      const float least = i % 7 == 0 && lane > 0 ? nearest + 16.0f : nearest;
      for (float& logit : warp.logits[lane]) {
        const float z = i % 3 == 0 && rng() % 2 == 0 ? edges[rng() % edges.size()] : -least - range * uniform();
        logit = std::fmin(warp.max, warp.max + z / warp.factor);
      }
    }
    n += n_wrong(warp);
  }
  CHECK(n == 0);
}

}  // namespace ts::test
