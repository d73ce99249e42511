// SPDX-License-Identifier: Apache-2.0
// Routes through the C API: the natural one, forced ones, capture variants, the plan's log line.
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "support/catch.h"
#include "support/rows.h"

namespace ts::test {
namespace {

struct Kind {
  const char* route;
  ts_request_params params;
};

const Kind kKinds[] = {{"greedy", params(0.0f)},
                       {"plain", params(1.0f)},
                       {"top_k", params(1.0f, 20)},
                       {"top_k_top_p", params(1.0f, 20, 0.9f)},
                       {"top_p", params(1.0f, 0, 0.9f)},
                       {"plain+min_p", params(1.0f, 0, 1.0f, 0.02f)},
                       {"top_k+min_p", params(1.0f, 20, 1.0f, 0.02f)},
                       {"top_k_top_p+min_p", params(1.0f, 20, 0.9f, 0.02f)},
                       {"top_p+min_p", params(1.0f, 0, 0.9f, 0.02f)}};
const char* const kRoutes[] = {"greedy",     "plain",       "top_k",       "top_k_top_p",       "top_p",
                               "mixed",      "plain+min_p", "top_k+min_p", "top_k_top_p+min_p", "top_p+min_p",
                               "mixed+min_p"};

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

// Whether a route's name promises what a kind needs.
bool can_serve(const char* route, const ts_request_params& p) {
  const bool mixed = has(route, "mixed");
  if (p.temperature < 1e-6f) return true;
  if (has(route, "greedy")) return false;
  if (p.top_k > 0 && !mixed && !has(route, "top_k")) return false;
  if (p.top_p < 1 && !mixed && !has(route, "top_p")) return false;
  return !(p.min_p > 0) || has(route, "+min_p");
}

Batch batch_of(Random& random, const std::vector<ts_request_params>& p) {
  std::vector<std::vector<float>> rows;
  for (size_t i = 0; i < p.size(); ++i) rows.push_back(synthetic_row(random, 700));
  Batch batch;
  batch.vocab = 700;
  batch.logits = pack(rows, TS_BF16, 700);
  batch.params = p;
  for (size_t i = 0; i < p.size(); ++i) batch.params[i].seed = random();
  return batch;
}

// The same rows as chains of two: drafts that are partly right, and what a sampler says of them.
Batch chains_of(const Batch& rows) {
  Batch chains = rows;
  chains.rows_per_request = 2;
  chains.params.resize(rows.params.size() / 2);
  return chains;
}
const std::vector<int32_t> kDrafts = {0, 1, 0, 2, 0, 3, 0, 4};
std::vector<int32_t> verified(Sampler& sampler, const Batch& chains) {
  const std::vector<int32_t> drafts(kDrafts.begin(), kDrafts.begin() + static_cast<long>(chains.params.size() * 2));
  const Verified v = sampler.verify(chains, drafts);
  std::vector<int32_t> all = v.predict;
  all.insert(all.end(), v.accept_length.begin(), v.accept_length.end());
  return all;
}

}  // namespace

TEST_CASE("every step takes its natural route, and every forced route that can serve it gives the same") {
  Random random(1);
  for (const Kind& a : kKinds) {
    for (const Kind& b : kKinds) {
      const Batch batch = batch_of(random, {a.params, b.params, a.params, params(0.0f)});
      Sampler natural(700);
      const Sampled expected = natural.run(batch);
      if (&a == &b) CHECK(natural.route() == a.route);
      for (const char* route : kRoutes) {
        const ScopedEnvironment forced("TSSAMPLE_FORCE_ROUTE", route);
        Sampler sampler(700);
        if (can_serve(route, a.params) && can_serve(route, b.params)) {
          const Sampled got = sampler.run(batch);
          CHECK(sampler.route() == route);
          CHECK(got.tokens == expected.tokens);
          CHECK(got.n_kept == expected.n_kept);
          CHECK(got.logprobs == expected.logprobs);
          const Batch chains = chains_of(batch);
          sampler.prepare(chains);
          CHECK(sampler.route() == route);
          const std::vector<int32_t> judged = verified(sampler, chains);
          natural.prepare(chains);
          CHECK(judged == verified(natural, chains));
        } else {
          CHECK_THROWS_WITH(sampler.prepare(batch), says("TS_ERROR_UNSUPPORTED"));
          CHECK_THROWS_WITH(sampler.prepare(batch), says(route));
          CHECK(sampler.route() == "none");
        }
      }
    }
  }
}

TEST_CASE("a captured variant gives what the step gives that it serves") {
  Random random(2);
  for (const Kind& kind : kKinds) {
    const Batch batch = batch_of(random, {kind.params, kind.params});
    Sampler sampler(700);
    const Sampled expected = sampler.run(batch);
    const char* variant = ts_sampler_step_variant(sampler.handle(), TS_CALL_SAMPLE);
    REQUIRE(variant != nullptr);
    REQUIRE(ts_sampler_prepare_capture(sampler.handle(), 2, 1, variant, nullptr) == TS_OK);
    CHECK(sampler.sample(batch).tokens == expected.tokens);
    REQUIRE(ts_sampler_prepare_capture(sampler.handle(), 2, 1, "default", nullptr) == TS_OK);
    CHECK(sampler.sample(batch).tokens == expected.tokens);
    // Slots that nobody used are allowed in a capture, and sample greedily.
    Batch elsewhere = batch;
    elsewhere.slots = {900, 901};
    CHECK(sampler.sample(elsewhere).n_kept == std::vector<int32_t>{1, 1});
    REQUIRE(ts_sampler_reset_capture(sampler.handle(), nullptr) == TS_OK);
    CHECK_THROWS_WITH(sampler.sample(batch), says("TS_ERROR_NOT_PREPARED"));
    CHECK(sampler.run(batch).tokens == expected.tokens);

    const Batch chains = chains_of(batch_of(random, {kind.params, kind.params, kind.params, kind.params}));
    sampler.prepare(chains);
    const std::vector<int32_t> judged = verified(sampler, chains);
    for (const char* name : {ts_sampler_step_variant(sampler.handle(), TS_CALL_VERIFY), "verify_default"}) {
      REQUIRE(ts_sampler_prepare_capture(sampler.handle(), 2, 2, name, nullptr) == TS_OK);
      CHECK(verified(sampler, chains) == judged);
    }
    // A step ends a capture: slots that are not in it are refused again (the CPU sees them).
    sampler.prepare(chains);
    Batch others = chains;
    others.slots = {900, 901};
    if (test_device() == TS_DEVICE_CPU) CHECK_THROWS_WITH(sampler.sample(others), says("TS_ERROR_NOT_PREPARED"));
    // And a capture takes no more requests than it was prepared for, nor a forced route.
    const ScopedEnvironment forced("TSSAMPLE_FORCE_ROUTE", "greedy");
    Sampler greedy(700);
    REQUIRE(ts_sampler_prepare_capture(greedy.handle(), 1, 1, "top_k", nullptr) == TS_OK);
    CHECK(greedy.route() == "top_k");
    CHECK_THROWS_WITH(greedy.sample(batch), says("TS_ERROR_NOT_PREPARED"));
  }
}

TEST_CASE("TSSAMPLE_LOG_PLAN writes a line for each step to stderr") {
  Random random(3);
  const Batch batch = batch_of(random, {params(1.0f, 20), params(1.0f, 20)});
  const auto logged = [&](const char* setting) {
    const ScopedEnvironment log("TSSAMPLE_LOG_PLAN", setting);
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    std::fflush(stderr);
    const int before = dup(2);
    dup2(fileno(file), 2);
    Sampler sampler(700);
    sampler.prepare(batch);
    sampler.prepare(batch);
    std::fflush(stderr);
    dup2(before, 2);
    close(before);
    std::rewind(file);
    char text[1024] = {};
    const size_t n = std::fread(text, 1, sizeof(text) - 1, file);
    std::fclose(file);
    return std::string(text, n);
  };
  const std::string line =
      "tssample: route=top_k requests=2 rows_per_request=1 variant=top_k greedy=0 plain=0 top_k=2 top_k_top_p=0 "
      "top_p=0 min_p=0\n";
  CHECK(logged("1") == line + line);
  CHECK(logged("yes") == line + line);
  CHECK(logged("0").empty());
  CHECK(logged("").empty());
  CHECK(logged(nullptr).empty());
}

}  // namespace ts::test
