// SPDX-License-Identifier: Apache-2.0
// The golden vectors of tests/data/contract_vectors.json against the contract headers, bit for bit.
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "contract/convert.h"
#include "contract/ln.h"
#include "contract/noise.h"
#include "contract/order.h"
#include "contract/philox.h"
#include "contract/weight.h"
#include "core/request_state.h"
#include "support/catch.h"

namespace ts::test {
namespace {

using nlohmann::json;

const json& vectors(const char* section) {
  static const json all = [] {
    std::ifstream file(TS_TEST_DATA_DIR "/contract_vectors.json");
    return json::parse(file);
  }();
  const json& found = all.at(section);
  REQUIRE(found.size() >= 5);
  return found;
}

uint64_t hex(const json& text) { return std::stoull(text.get<std::string>(), nullptr, 16); }
uint32_t hex32(const json& text) { return static_cast<uint32_t>(hex(text)); }
float f32(const json& text) { return bit_cast<float>(hex32(text)); }
double f64(const json& text) { return bit_cast<double>(hex(text)); }
uint32_t bits(float value) { return bit_cast<uint32_t>(value); }
uint64_t bits(double value) { return bit_cast<uint64_t>(value); }

}  // namespace

TEST_CASE("golden: philox", "[golden]") {
  for (const json& v : vectors("philox")) {
    INFO(v.dump());
    PhiloxBlock counter;
    for (int i = 0; i < 4; ++i) counter.w[i] = hex32(v[0][i]);
    const PhiloxBlock block = philox4x32_10(counter, {{hex32(v[1][0]), hex32(v[1][1])}});
    for (int i = 0; i < 4; ++i) CHECK(block.w[i] == hex32(v[2][i]));
  }
}

TEST_CASE("golden: ln", "[golden]") {
  for (const json& v : vectors("ln")) {
    INFO(v.dump());
    CHECK(bits(ln(f64(v[0]))) == hex(v[1]));
  }
}

TEST_CASE("golden: ln_one_minus", "[golden]") {
  for (const json& v : vectors("ln_one_minus")) {
    INFO(v.dump());
    CHECK(bits(ln_one_minus(f64(v[0]))) == hex(v[1]));
  }
}

TEST_CASE("golden: exp2_fraction", "[golden]") {
  for (const json& v : vectors("exp2_fraction")) {
    INFO(v.dump());
    CHECK(bits(exp2_fraction(f32(v[0]))) == hex(v[1]));
  }
}

TEST_CASE("golden: weight", "[golden]") {
  for (const json& v : vectors("weight")) {
    INFO(v.dump());
    CHECK(weight(f32(v[0]), f32(v[1])) == hex(v[2]));
  }
}

TEST_CASE("golden: top_p_to_fixed", "[golden]") {
  for (const json& v : vectors("top_p_to_fixed")) {
    INFO(v.dump());
    CHECK(top_p_to_fixed(f32(v[0])) == hex(v[1]));
  }
}

TEST_CASE("golden: mass_limit", "[golden]") {
  for (const json& v : vectors("mass_limit")) {
    INFO(v.dump());
    CHECK(mass_limit(hex(v[0]), hex(v[1])) == hex(v[2]));
  }
}

TEST_CASE("golden: gumbel", "[golden]") {
  for (const json& v : vectors("gumbel")) {
    INFO(v.dump());
    CHECK(bits(gumbel(hex(v[0]))) == hex(v[1]));
  }
}

TEST_CASE("golden: noise bits", "[golden]") {
  for (const json& v : vectors("noise")) {
    INFO(v.dump());
    const NoiseKey key{hex(v[0]), hex(v[1]), static_cast<Purpose>(v[2].get<uint32_t>())};
    const uint32_t id = v[3].get<uint32_t>();
    const uint32_t coarse = coarse_bits(coarse_block(key, id / kCoarsePerBlock), id);
    CHECK(coarse == hex(v[4]));
    CHECK(uniform_bits(key, id, coarse) == hex(v[5]));
  }
}

TEST_CASE("golden: order_key", "[golden]") {
  for (const json& v : vectors("order_key")) {
    INFO(v.dump());
    CHECK(order_key(f32(v[0]), v[1].get<uint32_t>()) == hex(v[2]));
  }
}

TEST_CASE("golden: bf16 and fp16", "[golden]") {
  for (const json& v : vectors("bf16")) {
    INFO(v.dump());
    CHECK(bits(bf16_to_float(static_cast<uint16_t>(hex(v[0])))) == hex(v[1]));
  }
  for (const json& v : vectors("fp16")) {
    INFO(v.dump());
    CHECK(bits(fp16_to_float(static_cast<uint16_t>(hex(v[0])))) == hex(v[1]));
  }
}

TEST_CASE("golden: clean_logit", "[golden]") {
  for (const json& v : vectors("clean_logit")) {
    INFO(v.dump());
    uint32_t flags = 0;
    CHECK(bits(clean_logit(f32(v[0]), flags)) == hex(v[1]));
    CHECK(flags == v[2].get<uint32_t>());
  }
}

TEST_CASE("golden: seed of a request that brings none", "[golden]") {
  for (const json& v : vectors("request_seed")) {
    INFO(v.dump());
    const ts_request_params params = TS_REQUEST_PARAMS_INIT;
    CHECK(make_request_state(params, hex(v[0]), hex(v[1]), 100, "params", 0).seed == hex(v[2]));
  }
}

TEST_CASE("golden: parameters rounded on the host", "[golden]") {
  for (const json& v : vectors("host_parameters")) {
    INFO(v.dump());
    ts_request_params params = TS_REQUEST_PARAMS_INIT;
    params.temperature = f32(v[0]);
    params.min_p = f32(v[1]);
    const RequestState state = make_request_state(params, 1, 0, 100, "params", 0);
    CHECK(bits(state.inv_temperature) == hex(v[2]));
    CHECK(bits(state.log2e_over_t) == hex(v[3]));
    CHECK(bits(state.min_p_threshold) == hex(v[4]));
  }
}

}  // namespace ts::test
