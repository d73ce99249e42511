// SPDX-License-Identifier: Apache-2.0
// What a backend does for the sampler: execute. All choosing has happened before.
#pragma once

#include <vector>

#include "core/broadcast.h"
#include "core/plan.h"
#include "core/request_state.h"
#include "tssample.h"

namespace ts {

class Pool;

// What a call acts on: the pool and the step that was prepared on it.
struct Step {
  const Pool& pool;
  const Plan& plan;
  bool capturing;  // any slot of the pool is allowed, not only the step's
};

// Calls throw Error with nothing enqueued and nothing written. Arguments arrive complete: defaults filled in, host-side
// values checked. What lies in device memory only the backend can look at.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual int32_t device() const = 0;

  // slots[i] is about to hold states[i].
  virtual void write_slots(const std::vector<int32_t>& slots, const std::vector<RequestState>& states,
                           ts_stream stream) = 0;
  virtual void sample(const Step& step, const ts_rows& rows, const ts_sample_out& out, ts_stream stream) = 0;
  virtual void verify(const Step& step, const ts_rows& rows, const ts_draft& draft, const ts_verify_out& out,
                      ts_stream stream) = 0;

  // A broadcast that this backend can do. Throws Error.
  virtual Broadcast make_broadcast(const ts_broadcast& broadcast) = 0;
  // Sends outputs of the call just enqueued, with the backend's device current.
  virtual void send(const Broadcast& broadcast, const OutputArrays& arrays, ts_stream stream) = 0;
};

}  // namespace ts
