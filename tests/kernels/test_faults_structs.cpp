// SPDX-License-Identifier: Apache-2.0
// FAULTS.md C10, the second half: struct sizes of every struct, indices beyond 32 bits, release, capture, and the
// functions that return no status.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.h"
#include "support/sampler.h"

namespace ts::test {
namespace {

constexpr int32_t kVocab = 40;
constexpr int32_t kRequests = 2;
constexpr int32_t kRowsPerRequest = 2;
constexpr int32_t kPoison = 0x5A5A5A5A;

// A copy of a struct with room behind it, on the heap in exactly the size it claims.
class Sized {
 public:
  template <class T>
  Sized(const T& value, size_t size, unsigned char last) : bytes_(static_cast<unsigned char*>(std::calloc(1, size))) {
    std::memcpy(bytes_, &value, std::min(size, sizeof(T)));
    if (size > sizeof(T)) bytes_[size - 1] = last;
    const auto size32 = static_cast<uint32_t>(size);
    std::memcpy(bytes_, &size32, sizeof(size32));
  }
  ~Sized() { std::free(bytes_); }
  Sized(const Sized&) = delete;
  Sized& operator=(const Sized&) = delete;
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes_);
  }

 private:
  unsigned char* bytes_;
};

// A prepared sampler and good arguments for each call.
struct Good {
  ts_config config{};
  ts_sampler* sampler = nullptr;
  uint64_t ids[kRequests] = {1, 2};
  SharedVector<int64_t> slots = {3, 1};
  ts_request_params request_params[kRequests] = {params(1.0f, 0, 1.0f, 0.0f, 5), params(1.0f, 9, 0.9f, 0.0f, 6)};
  SharedVector<float> logits;
  SharedVector<int64_t> positions = {10, 20};
  SharedVector<int32_t> candidates = {0, 7, 0, 7};
  SharedVector<int32_t> written = SharedVector<int32_t>(64, kPoison);  // every output of a call, 8 apart
  ts_step step{};
  ts_rows rows{};
  ts_sample_out out{};
  ts_draft draft{};
  ts_verify_out verified{};
  ts_broadcast broadcast{};  // off

  Good() {
    config.struct_size = sizeof(config);
    config.device = test_device();
    config.vocab_size = kVocab;
    config.n_slots = 4;
    config.max_rows_per_request = 4;
    REQUIRE(ts_sampler_create(&config, &sampler) == TS_OK);
    for (int i = 0; i < kRequests * kRowsPerRequest * kVocab; ++i) {
      logits.push_back(0.25f * static_cast<float>(i * 29 % 17));
    }
    step = {sizeof(step), kRequests, kRowsPerRequest, TS_INT64, ids, slots.data(), request_params, 0, 0};
    rows.struct_size = sizeof(rows);
    rows.n_requests = kRequests;
    rows.rows_per_request = kRowsPerRequest;
    rows.logits = logits.data();
    rows.slots = slots.data();
    rows.slots_type = TS_INT64;
    rows.positions = positions.data();
    rows.positions_type = TS_INT64;
    int32_t* w = written.data();
    auto* floats = reinterpret_cast<float*>(w + 48);
    auto* flags = reinterpret_cast<uint32_t*>(w + 40);
    auto* bad_rows = reinterpret_cast<uint32_t*>(w + 56);
    out = {sizeof(out), 0, w, floats, w + 8, w + 16, flags, bad_rows};
    draft = {sizeof(draft), 0, candidates.data(), 0};
    verified = {sizeof(verified), 0, w, w + 24, w + 32, floats, w + 8, w + 16, flags, bad_rows};
    broadcast.struct_size = sizeof(broadcast);
    REQUIRE(prepare(&step) == TS_OK);
  }
  ~Good() { ts_sampler_destroy(sampler); }

  void poison() { written.assign(written.size(), kPoison); }
  bool untouched() const { return written == SharedVector<int32_t>(written.size(), kPoison); }
  ts_status prepare(const ts_step* s) { return ts_sampler_prepare_step(sampler, s, nullptr); }
  ts_status sample(const ts_rows* r, const ts_sample_out* o) {
    const ts_status status = ts_sampler_sample(sampler, r, o, nullptr);
    synchronize();
    return status;
  }
  ts_status verify(const ts_rows* r, const ts_draft* d, const ts_verify_out* v) {
    const ts_status status = ts_sampler_verify(sampler, r, d, v, nullptr);
    synchronize();
    return status;
  }
  // What the good calls write, one after the other.
  std::vector<int32_t> answer() {
    poison();
    REQUIRE(sample(&rows, &out) == TS_OK);
    std::vector<int32_t> all(written.begin(), written.end());
    poison();
    REQUIRE(verify(&rows, &draft, &verified) == TS_OK);
    all.insert(all.end(), written.begin(), written.end());
    return all;
  }
};

// Every size of a struct that a caller of another version, or with garbage in the field, may bring. first: the struct's
// size in the first release.
template <class T>
void check_sizes(const char* name, size_t first, T Good::*member,
                 const std::function<ts_status(Good&, const T*)>& call) {
  INFO(name);
  Good good;
  const T value = good.*member;
  const std::vector<int32_t> before = good.answer();
  const auto refuses = [&](const T* spoilt) {
    INFO("struct_size " << spoilt->struct_size);
    good.poison();
    CHECK(call(good, spoilt) == TS_ERROR_STRUCT_SIZE);
    CHECK_THAT(ts_last_error(), says(std::string(name) + ".struct_size"));
    CHECK(good.untouched());
    CHECK(good.answer() == before);
  };
  // No smaller struct was ever a struct.
  const std::string whose = "sizeof(" + std::string(name) + ")";
  for (const size_t size : {size_t{4}, size_t{8}, first - 8, first - 1}) {
    Sized smaller(value, size, 0);
    refuses(smaller.as<T>());
    CHECK(call(good, smaller.as<T>()) == TS_ERROR_STRUCT_SIZE);
    CHECK_THAT(ts_last_error(), says(whose));
  }
  // An older header's struct: fields that came later are as if zero.
  for (size_t size = first; size < sizeof(T); ++size) {
    Sized older(value, size, 0);
    if (size % 8 != 0) {  // half a field, maybe half a pointer
      refuses(older.as<T>());
      continue;
    }
    CHECK(call(good, older.as<T>()) == TS_OK);
    CHECK(good.answer() == before);
  }
  for (const size_t more : {size_t{1}, size_t{8}, size_t{100}}) {
    refuses(Sized(value, sizeof(T) + more, 1).as<T>());
    refuses(Sized(value, sizeof(T) + more, 0x80).as<T>());
    Sized newer(value, sizeof(T) + more, 0);
    CHECK(call(good, newer.as<T>()) == TS_OK);
    CHECK(good.answer() == before);
  }
  Sized garbage(value, sizeof(T) + 8, 1);
  for (const uint32_t size : {0u, 1u << 30, UINT32_MAX}) {
    garbage.as<T>()->struct_size = size;
    refuses(garbage.as<T>());
  }
}

}  // namespace

TEST_CASE("C10 every struct: too small, unknown bytes set and garbage sizes are refused, unknown zeros are not") {
  check_sizes<ts_config>("ts_config", 48, &Good::config, [](Good&, const ts_config* config) {
    ts_sampler* sampler = nullptr;
    const ts_status status = ts_sampler_create(config, &sampler);
    CHECK((sampler != nullptr) == (status == TS_OK));
    ts_sampler_destroy(sampler);
    return status;
  });
  check_sizes<ts_step>("ts_step", 48, &Good::step, [](Good& g, const ts_step* step) { return g.prepare(step); });
  check_sizes<ts_rows>("ts_rows", 88, &Good::rows, [](Good& g, const ts_rows* rows) { return g.sample(rows, &g.out); });
  check_sizes<ts_rows>("ts_rows", 88, &Good::rows,
                       [](Good& g, const ts_rows* rows) { return g.verify(rows, &g.draft, &g.verified); });
  check_sizes<ts_sample_out>("ts_sample_out", 48, &Good::out,
                             [](Good& g, const ts_sample_out* out) { return g.sample(&g.rows, out); });
  check_sizes<ts_draft>("ts_draft", 24, &Good::draft,
                        [](Good& g, const ts_draft* draft) { return g.verify(&g.rows, draft, &g.verified); });
  check_sizes<ts_verify_out>("ts_verify_out", 64, &Good::verified,
                             [](Good& g, const ts_verify_out* out) { return g.verify(&g.rows, &g.draft, out); });
  check_sizes<ts_broadcast>("ts_broadcast", 40, &Good::broadcast, [](Good& g, const ts_broadcast* broadcast) {
    return ts_sampler_set_broadcast(g.sampler, broadcast);
  });
}

TEST_CASE("C10 request params: struct sizes, one new request at a time") {
  const auto prepare = [](Good& g, const ts_request_params* p) {
    static uint64_t id = 100;
    const uint64_t ids[1] = {++id};
    const int64_t slots[1] = {0};
    const ts_step step = {sizeof(step), 1, 1, TS_INT64, ids, slots, p, 0, 0};
    return g.prepare(&step);
  };
  const ts_request_params value = params(0.5f, 3);
  for (const size_t size : {size_t{4}, size_t{8}, sizeof(value) - 8, sizeof(value) + 8, sizeof(value) + 64}) {
    for (const unsigned char last : {0, 1}) {
      Good good;
      const std::vector<int32_t> before = good.answer();
      Sized sized(value, size, last);
      const bool right = size > sizeof(value) && last == 0;
      INFO("size " << size << " last " << int{last});
      CHECK(prepare(good, sized.as<ts_request_params>()) == (right ? TS_OK : TS_ERROR_STRUCT_SIZE));
      if (size < sizeof(value)) CHECK_THAT(ts_last_error(), says("sizeof(ts_request_params)"));
      if (!right) CHECK(good.answer() == before);
    }
  }
}

TEST_CASE("C10 messages about request params name the entry, the type, the address and the whole value") {
  Good good;
  uint64_t ids[2] = {77, 78};  // both new
  ts_request_params two[2] = {params(), params()};
  ts_step step = good.step;
  step.request_ids = ids;
  step.params = two;
  const auto refused = [&](ts_status status, const char* message) {
    CHECK(good.prepare(&step) == status);
    CHECK_THAT(ts_last_error(), says(message));
  };
  two[1].struct_size = 0;
  refused(TS_ERROR_STRUCT_SIZE, "ts_step.params[1].struct_size = 0: set it to sizeof(ts_request_params)");
  two[1].struct_size = sizeof(ts_request_params) + 8;
  refused(TS_ERROR_STRUCT_SIZE, "ts_step.params[1].struct_size = 40: does not fit the stride of 32 bytes");
  two[1] = params();
  two[1].min_p = 1.0000001f;  // not "1", which is allowed
  refused(TS_ERROR_INVALID_ARGUMENT, "ts_step.params[1].min_p = 1.00000012:");
  const auto odd = reinterpret_cast<uintptr_t>(two) + 4;
  step.params = reinterpret_cast<const ts_request_params*>(odd);
  refused(TS_ERROR_INVALID_ARGUMENT, "ts_step.params = 0x");
  const auto odd_step = reinterpret_cast<uintptr_t>(&step) + 4;
  CHECK(good.prepare(reinterpret_cast<const ts_step*>(odd_step)) == TS_ERROR_INVALID_ARGUMENT);
  CHECK_THAT(ts_last_error(), says("ts_step = 0x"));
}

TEST_CASE("C10 params_stride 0 is a checked size of entry 0; with a stride, a known request's entry is not read") {
  const std::vector<int32_t> before = Good().answer();
  for (const uint32_t garbage : {0u, 8u, 31u, 33u, 36u, 4104u, 0xDEADBEE0u, UINT32_MAX}) {
    INFO("struct_size " << garbage);
    Good good;
    const uint64_t ids[2] = {good.ids[0], 99};  // entry 0 is known, entry 1 new
    ts_request_params two[2] = {params(-1.0f), good.request_params[1]};
    two[0].struct_size = garbage;
    ts_step step = good.step;
    step.request_ids = ids;
    step.params = two;
    CHECK(good.prepare(&step) == TS_ERROR_STRUCT_SIZE);
    CHECK_THAT(ts_last_error(), says("ts_step.params[0].struct_size = " + std::to_string(garbage)));
    CHECK(good.answer() == before);
    step.params_stride = sizeof(ts_request_params);
    CHECK(good.prepare(&step) == TS_OK);
    CHECK(good.answer() == before);
    // Nobody is new: nothing of it is read.
    step.params_stride = 0;
    CHECK(good.prepare(&step) == TS_OK);
  }
}

TEST_CASE("C10 a step that is refused halfway has given no slot away") {
  Good good;
  const std::vector<int32_t> before = good.answer();
  // The first entry is a right new owner of slot 3; the second is wrong.
  uint64_t ids[2] = {77, 78};
  const auto refuse = [&](std::vector<int64_t> slots, ts_request_params second) {
    const ts_request_params two[2] = {params(0.0f), second};
    const ts_step step = {sizeof(step), 2, kRowsPerRequest, TS_INT64, ids, slots.data(), two, 0, 0};
    CHECK(good.prepare(&step) == TS_ERROR_INVALID_ARGUMENT);
    CHECK(good.answer() == before);
    // Still known, so no params are needed, and nothing is greedy.
    ts_step known = good.step;
    known.params = nullptr;
    CHECK(good.prepare(&known) == TS_OK);
    CHECK(good.answer() == before);
  };
  refuse({3, 4}, params());
  refuse({3, -1}, params());
  refuse({3, 3}, params());
  refuse({3, int64_t{1} << 32}, params());
  refuse({3, 1}, params(-1.0f));
}

TEST_CASE("C10 params inside the caller's wider structs are found by their stride") {
  Good good;
  struct Request {
    ts_request_params sampling;
    uint64_t own[4];
  };
  Request requests[kRequests];
  std::memset(requests, 0xFF, sizeof(requests));
  for (int32_t r = 0; r < kRequests; ++r) requests[r].sampling = params(1.0f, r + 2, 1.0f, 0.0f, 5);
  const uint64_t ids[kRequests] = {11, 12};
  ts_step step = good.step;
  step.request_ids = ids;
  step.params = &requests[0].sampling;
  step.params_stride = sizeof(Request);
  REQUIRE(good.prepare(&step) == TS_OK);
  REQUIRE(good.sample(&good.rows, &good.out) == TS_OK);
  for (int32_t row = 0; row < kRequests * kRowsPerRequest; ++row) {
    CHECK(good.out.n_kept[row] == row / kRowsPerRequest + 2);
  }
}

TEST_CASE("C10 indices of 64 bits are not cut to 32") {
  Good good;
  const std::vector<int32_t> before = good.answer();
  // Each would be a slot of the step if its low half were taken.
  for (const int64_t wrong : {(int64_t{1} << 32) + 3, (int64_t{1} << 62) + 1, INT64_MIN + 1, INT64_MIN, INT64_MAX}) {
    const SharedVector<int64_t> slots = {3, wrong};
    ts_step step = good.step;
    step.slots = slots.data();
    CHECK(good.prepare(&step) == TS_ERROR_INVALID_ARGUMENT);
    CHECK_THAT(ts_last_error(), says("ts_step.slots[1]"));
    ts_rows rows = good.rows;
    rows.slots = slots.data();
    good.poison();
    if (on_cuda()) {  // only the device sees it: EMPTY rows, not the rows of the slot's low half
      CHECK(good.sample(&rows, &good.out) == TS_OK);
      const auto* flags = good.out.row_flags;
      CHECK((flags[0] == 0u && flags[1] == 0u && flags[2] == TS_ROW_EMPTY && flags[3] == TS_ROW_EMPTY));
    } else {
      CHECK(good.sample(&rows, &good.out) == TS_ERROR_INVALID_ARGUMENT);
      CHECK_THAT(ts_last_error(), says("ts_rows.slots[1]"));
      CHECK(good.verify(&rows, &good.draft, &good.verified) == TS_ERROR_INVALID_ARGUMENT);
      CHECK(good.untouched());
    }
    CHECK(ts_sampler_release_slots(good.sampler, slots.data() + 1, TS_INT64, 1) == TS_ERROR_INVALID_ARGUMENT);
    CHECK(good.answer() == before);
  }
  ts_rows rows = good.rows;
  if (!on_cuda()) {  // only the device sees it there, and takes any number
    const SharedVector<int64_t> negative = {0, INT64_MIN};
    rows.positions = negative.data();
    good.poison();
    CHECK(good.sample(&rows, &good.out) == TS_ERROR_INVALID_ARGUMENT);
    CHECK(good.untouched());
  }
  // The last offset is an offset, and the row after it has a position too.
  const SharedVector<int64_t> last = {INT64_MAX, INT64_MAX};
  rows.positions = last.data();
  CHECK(good.sample(&rows, &good.out) == TS_OK);
}

TEST_CASE("C10 release and capture: every wrong argument is refused and the prepared step stays") {
  Good good;
  const std::vector<int32_t> before = good.answer();
  const int32_t slots[4] = {3, 1, 4, -1};
  ts_sampler* s = good.sampler;
  const std::vector<std::pair<const char*, std::function<ts_status()>>> wrongs = {
      {"sampler", [&] { return ts_sampler_release_slots(nullptr, slots, TS_INT32, 1); }},
      {"slots", [&] { return ts_sampler_release_slots(s, nullptr, TS_INT32, 1); }},
      {"slots_type", [&] { return ts_sampler_release_slots(s, slots, 2, 1); }},
      {"n = -1", [&] { return ts_sampler_release_slots(s, slots, TS_INT32, -1); }},
      {"slots[2]", [&] { return ts_sampler_release_slots(s, slots, TS_INT32, 3); }},
      {"slots[0]", [&] { return ts_sampler_release_slots(s, slots + 3, TS_INT32, 1); }},
      {"slots",
       [&] {
         const auto odd = reinterpret_cast<uintptr_t>(slots) + 1;
         return ts_sampler_release_slots(s, reinterpret_cast<const void*>(odd), TS_INT32, 1);
       }},
      {"sampler", [&] { return ts_sampler_prepare_capture(nullptr, 1, 1, "plain", nullptr); }},
      {"n_requests", [&] { return ts_sampler_prepare_capture(s, 0, 1, "plain", nullptr); }},
      {"n_requests", [&] { return ts_sampler_prepare_capture(s, -1, 1, "plain", nullptr); }},
      {"n_requests", [&] { return ts_sampler_prepare_capture(s, 5, 1, "plain", nullptr); }},
      {"rows_per_request", [&] { return ts_sampler_prepare_capture(s, 1, 0, "plain", nullptr); }},
      {"rows_per_request", [&] { return ts_sampler_prepare_capture(s, 1, 5, "plain", nullptr); }},
      {"variant", [&] { return ts_sampler_prepare_capture(s, 1, 1, nullptr, nullptr); }},
      {"variant", [&] { return ts_sampler_prepare_capture(s, 1, 1, "", nullptr); }},
      {"variant", [&] { return ts_sampler_prepare_capture(s, 1, 1, "plai", nullptr); }},
      {"variant", [&] { return ts_sampler_prepare_capture(s, 1, 1, "verify_verify_plain", nullptr); }},
      {"sampler", [&] { return ts_sampler_reset_capture(nullptr, nullptr); }},
      {"ts_capabilities", [&] { return ts_get_capabilities(nullptr); }},
  };
  for (const auto& [named, call] : wrongs) {
    INFO(named);
    CHECK(call() == TS_ERROR_INVALID_ARGUMENT);
    CHECK_THAT(ts_last_error(), says(named));
    CHECK(std::strlen(ts_last_error()) <= 511);
    CHECK(good.answer() == before);
    // A refused release has released nothing: the owners are still known.
    ts_step known = good.step;
    known.params = nullptr;
    CHECK(good.prepare(&known) == TS_OK);
  }
  const std::string message = ts_last_error();
  CHECK(good.answer() == before);
  CHECK(ts_last_error() == message);  // calls that succeed leave it
}

TEST_CASE("C10 functions without a status take NULL and unknown values") {
  CHECK(ts_sampler_device(nullptr) == 0);
  CHECK(ts_sampler_step_route(nullptr) != nullptr);
  CHECK(ts_sampler_step_variant(nullptr, TS_CALL_SAMPLE) == nullptr);
  const Good good;
  for (const int32_t call : {-1, 2, INT32_MAX, INT32_MIN}) {
    CHECK(ts_sampler_step_variant(good.sampler, call) == nullptr);
    CHECK(ts_capture_variant_count(call) == 0);
    CHECK(ts_capture_variant_name(call, 0) == nullptr);
  }
  for (const int32_t index : {-1, 5, INT32_MAX, INT32_MIN}) CHECK(ts_capture_variant_name(0, index) == nullptr);
  for (const ts_status status : {-1, 9, INT32_MAX, INT32_MIN}) {
    CHECK(std::string(ts_status_string(status)) == "TS_ERROR_UNKNOWN");
  }
  ts_sampler_destroy(nullptr);
}

}  // namespace ts::test
