/* SPDX-License-Identifier: Apache-2.0 */
/* tssample.h: logits in, tokens out, for LLM serving engines. This file is the manual.
 *
 * The way through it, in the order an engine needs it:
 *   1. status codes and error messages        4. prepare_step: who is in this step
 *   2. capabilities, create, destroy          5. sample, and verify for drafted chains
 *   3. request parameters                     6. CUDA graphs: the caller's and the sampler's
 *                                             7. broadcast, for tensor-parallel ranks
 *
 * Words used throughout
 *   request     one sequence being generated, named by a 64-bit id that the caller chooses.
 *   slot        an index into the sampler's pool, 0 <= slot < n_slots; holds a request's state.
 *   row         one vector of logits. A step has n_requests * rows_per_request rows; row
 *               r * rows_per_request + j is the j-th row of the r-th request.
 *   HOST        ordinary memory.
 *   DEVICE      memory of the sampler's device: ordinary memory for the CPU backend, memory that the
 *               GPU can address for a CUDA backend.
 *
 * Rules that hold for every function
 *   Struct size   Every struct starts with struct_size = sizeof(the struct); structs only grow. A smaller
 *                 size (an older header) is accepted down to the first release's; a larger one (a newer
 *                 header, up to 4096 bytes) is accepted when the bytes this library does not know are all zero;
 *                 anything else, the middle of a field too, is TS_ERROR_STRUCT_SIZE. Zero in a field means its
 *                 default. In C:
 *                 ts_rows rows = {0}; rows.struct_size = sizeof(rows); then the fields that are wanted.
 *   Errors        Each call returns TS_OK or an error code; ts_last_error() then names the argument.
 *                 After an error the sampler is exactly as before the call, nothing was enqueued and no
 *                 output was written. (TS_ERROR_CUDA means that the device or its driver failed: what was
 *                 enqueued before it stays, and outputs are undefined.) No call aborts, exits or throws, and none prints, but prepare_step where
 *                 TSSAMPLE_LOG_PLAN asks for it.
 *   Stream        Work is ordered on the `stream` argument (a cudaStream_t; NULL is the default stream).
 *                 The CPU backend ignores it and has finished when the call returns. Calls on one sampler share
 *                 its scratch memory: those on different streams are for the caller to order. No call but
 *                 ts_sampler_create and ts_sampler_destroy waits for the device; all others may be made inside a
 *                 stream capture, the first of a process included.
 *   Thread        Different samplers are independent. One sampler: one call at a time, from any thread.
 *                 Functions without a sampler argument may be called from any thread at any time.
 *   Memory        Nothing is allocated after ts_sampler_create, but the sampler's own CUDA graphs (section 6;
 *                 ts_config.max_graphs = -1 turns them off). Input arrays are read only during the call (CPU)
 *                 or until the stream has passed it (CUDA); none are kept.
 *                 A call that returns an error may allocate its message. dlclose() after use leaks the C++ runtime's
 *                 emergency pool (72 KB): load the library once.
 *   Precision     Scores are l / T in fp64: from |l| / T of about 1e15 on, noise is lost in the rounding, and equal
 *                 logits give the lowest id. Weights are of the fp32 difference l - l_max: gaps above FLT_MAX
 *                 count as FLT_MAX for min_p and as no weight for top_p. Against real numbers the cut of min_p is at
 *                 min_p times 1 + e, |e| <= 1.2e-7 (1 + |ln min_p|): 1e-6 for 1e-3, 1.1e-5 for 1e-38. That of top_p is
 *                 within 2e-7 of p in absolute probability for rows of language models, and within 7e-6 for any
 *                 row (4 million ids, most of it in weights near 2^-39). A log-probability may be -inf.
 *   Determinism   A token depends on the row's logits, mask, parameters, seed and position alone: never
 *                 on other rows, the batch size, the route, the backend or the machine. The rules, to
 *                 the bit, are in src/contract/.
 */
#ifndef TSSAMPLE_H_
#define TSSAMPLE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TS_API __attribute__((visibility("default")))
#else
#define TS_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TS_VERSION_MAJOR 0
#define TS_VERSION_MINOR 1
#define TS_VERSION_PATCH 0
/* The soname's number. Programs built against one ABI version run with every library of that version. */
#define TS_ABI_VERSION 0

typedef struct ts_sampler ts_sampler;
typedef struct CUstream_st* ts_stream;

/* ---- 1. Status codes and error messages ------------------------------------------------------------ */

/* The type of every status. Values never change; new ones may be added. */
typedef int32_t ts_status;
enum {
  TS_OK = 0,
  TS_ERROR_INVALID_ARGUMENT = 1, /* NULL, out of range, misaligned, unknown enum value */
  TS_ERROR_STRUCT_SIZE = 2,      /* struct_size is not one this library can read */
  TS_ERROR_NOT_PREPARED = 3,     /* sample or verify without the matching prepare_step */
  TS_ERROR_UNSUPPORTED = 4,      /* a valid request that this build, device or forced route cannot serve */
  TS_ERROR_OUT_OF_MEMORY = 5,    /* host or device allocation failed (create, and a new graph of the sampler's own) */
  TS_ERROR_DEVICE = 6,           /* the device asked for does not exist or is not in this build */
  TS_ERROR_CUDA = 7,             /* the CUDA runtime reported an error; the message has its text */
  TS_ERROR_INTERNAL = 8          /* a defect of this library; the message says where */
};

/* A status as text: "TS_OK", "TS_ERROR_INVALID_ARGUMENT", ...; "TS_ERROR_UNKNOWN" for any other value.
 * Returns a static string, never NULL. Errors: none. */
TS_API const char* ts_status_string(ts_status status);

/* The message of the last call on this thread that returned an error, e.g.
 * "ts_step.slots[3] = 4096: outside the pool of 1024 slots". Calls that succeed leave it as it was.
 * Returns a NUL-terminated string of at most 511 bytes, "" before the first error, valid until the next
 * failing call on the same thread. Never NULL. Errors: none. */
TS_API const char* ts_last_error(void);

/* ---- 2. Capabilities, create, destroy -------------------------------------------------------------- */

/* The library's version: major * 10000 + minor * 100 + patch. Compare with TS_VERSION_* of the header. */
TS_API int32_t ts_version(void);

/* The library's version as text, e.g. "0.1.0". Static, never NULL. */
TS_API const char* ts_version_string(void);

/* Where a sampler runs (ts_config.device). */
enum {
  TS_DEVICE_AUTO = 0, /* CUDA when this build and this machine have it, else CPU */
  TS_DEVICE_CPU = 1,
  TS_DEVICE_CUDA = 2 /* the GPU numbered ts_config.device_ordinal */
};

/* Element type of logits (ts_rows.logits_type). All are converted exactly to fp32. */
enum { TS_FP32 = 0, TS_BF16 = 1, TS_FP16 = 2 };

/* Element type of an index array (slots, positions). */
enum { TS_INT32 = 0, TS_INT64 = 1 };

/* Largest supported row width. Sums of integer weights cannot overflow below it. */
#define TS_MAX_VOCAB 4194303

/* What this build can do on this machine. Filled by ts_get_capabilities. */
typedef struct ts_capabilities {
  uint32_t struct_size;   /* in: sizeof(ts_capabilities) of the caller */
  uint32_t devices;       /* 1u << TS_DEVICE_CPU, 1u << TS_DEVICE_CUDA: backends in this build */
  int32_t n_cuda_devices; /* GPUs that a sampler can be created on; 0 without driver, GPU or CUDA build */
  int32_t auto_device;    /* what TS_DEVICE_AUTO chooses now: TS_DEVICE_CPU or TS_DEVICE_CUDA */
  uint32_t logits_types;  /* 1u << TS_FP32, 1u << TS_BF16, 1u << TS_FP16 */
  uint32_t index_types;   /* 1u << TS_INT32, 1u << TS_INT64 */
  int32_t max_vocab;      /* TS_MAX_VOCAB of the library */
  int32_t abi_version;    /* TS_ABI_VERSION of the library */
} ts_capabilities;

/* Fills *out (HOST). Needs no sampler, creates no CUDA context.
 * out->struct_size must be set by the caller; the library writes exactly that many bytes, those it does not know as 0.
 * Stream: none. Thread: any. Errors: INVALID_ARGUMENT (out is NULL), STRUCT_SIZE. */
TS_API ts_status ts_get_capabilities(ts_capabilities* out);

/* ts_config.flags */
enum {
  /* Programmatic dependent launch after the kernel that produces the logits: the sampler's first kernel of a sample or
   * verify call may start before the kernel in front of it on the stream has ended, and waits for that end before its
   * first read or write of memory that the other could touch. The kernel in front need not know of it. Between the
   * sampler's own kernels this is always done. A graph that the sampler owns starts only when all in front of it has
   * ended, so the flag counts where calls are launched one by one: with max_graphs = -1, and inside the caller's
   * capture. Ignored by the CPU backend and by GPUs below compute capability 9.0. */
  TS_CONFIG_PROGRAMMATIC_LAUNCH = 1,
  /* Thread-block clusters, on GPUs of compute capability 9.0 and later: steps of few rows (up to 33) with top-p or min-p and
   * without top-k run in about half the time, with the same tokens. Why not always: a row's blocks (up to 16) start only
   * when there is room for all of them in one part of the GPU at one time, so with a kernel beside the sampler that holds
   * nearly all multiprocessors and ends only after the sampler has, a call would wait for ever. Ignored by the CPU backend
   * and by other GPUs. */
  TS_CONFIG_CLUSTERS = 2
};

/* Configuration of a sampler. Only vocab_size has no default. */
typedef struct ts_config {
  uint32_t struct_size;
  int32_t device;               /* TS_DEVICE_*; 0: automatic */
  int32_t device_ordinal;       /* CUDA device number, >= 0; 0: the first. Ignored on the CPU */
  int32_t vocab_size;           /* widest row that will be sampled, 1..TS_MAX_VOCAB */
  int32_t n_slots;              /* size of the pool, 1..2^24; 0: 1024 */
  int32_t max_requests;         /* most requests in a step, 1..n_slots; 0: n_slots */
  int32_t max_rows_per_request; /* most rows a request has in a step, 1..1024, and with max_requests fewer than
                                   2^31 rows; 0: 8 */
  int32_t invalid_token;        /* returned for a row without a candidate, 0..vocab_size-1; 0: id 0 */
  uint64_t seed;                /* mixed with the request id into the seed of requests that bring none */
  uint64_t flags;               /* TS_CONFIG_* bits, or 0 */
  int32_t max_graphs;           /* CUDA graphs that the sampler keeps, 1..4096; 0: 32; -1: none (section 6) */
  int32_t reserved;             /* must be 0 */
} ts_config;

/* Creates a sampler and allocates everything it will ever use, but its graphs.
 *   config   HOST, read.
 *   out      HOST, written: the new sampler, or NULL on error.
 * Environment, read here and only here:
 *   TSSAMPLE_FORCE_ROUTE=NAME  every step takes this route (a name that ts_sampler_step_route gives);
 *                              prepare_step returns UNSUPPORTED for a step that the route cannot serve, having a
 *                              filter that the name lacks. "mixed+min_p" serves every step. Another name, "none"
 *                              too, is INVALID_ARGUMENT here.
 *   TSSAMPLE_LOG_PLAN=1        (any value but "" and 0) prepare_step writes one line about each step's plan to stderr.
 * In builds with CUDA, prepare_step, sample and verify are NVTX ranges ("tssample sample", ...) for the profiler that
 * runs the process, if one does; it is looked for here (NVTX_INJECTION64_PATH, which profilers set).
 * Stream: none. Thread: any.
 * Errors: INVALID_ARGUMENT, STRUCT_SIZE, DEVICE, OUT_OF_MEMORY, CUDA. */
TS_API ts_status ts_sampler_create(const ts_config* config, ts_sampler** out);

/* Frees a sampler. NULL is allowed. No call on it may be under way, and none of its work on a stream either: on a GPU
 * the caller synchronizes first. Thread: any. Errors: none. */
TS_API void ts_sampler_destroy(ts_sampler* sampler);

/* The device a sampler runs on: TS_DEVICE_CPU or TS_DEVICE_CUDA; 0 when sampler is NULL. Thread: any. Errors: none. */
TS_API int32_t ts_sampler_device(const ts_sampler* sampler);

/* ---- 3. Request parameters ------------------------------------------------------------------------- */

/* ts_request_params.flags */
enum { TS_PARAMS_SEEDED = 1 /* `seed` is the request's own; without it the seed comes from ts_config.seed */ };

/* How one request is sampled. The filters apply in the order top_k, top_p, min_p to candidates ordered by
 * logit descending, then id ascending; each keeps a prefix, never less than the first candidate.
 * A zero-filled struct (struct_size set) is greedy. Start from TS_REQUEST_PARAMS_INIT to sample from the whole
 * distribution. */
typedef struct ts_request_params {
  uint32_t struct_size;
  uint32_t flags;    /* TS_PARAMS_SEEDED or 0 */
  uint64_t seed;     /* same seed, position and logits: same token, in any request and any batch */
  float temperature; /* 0 <= temperature < inf. Below 1e-6: greedy, whatever the filters */
  int32_t top_k;     /* keep the first top_k. <= 0, >= the row width and 2^30: off. No upper bound */
  float top_p;       /* keep while the weight in front is < top_p * (weight that top_k left). >= 1: off.
                        <= 0: the first candidate only. Not NaN */
  float min_p;       /* keep probability >= min_p * largest probability, at most 1. <= 0: off. Not NaN */
} ts_request_params;

/* Temperature 1, no filter, no own seed. In C and C++: ts_request_params p = TS_REQUEST_PARAMS_INIT; */
#define TS_REQUEST_PARAMS_INIT \
  { sizeof(ts_request_params), 0u, 0u, 1.0f, 0, 1.0f, 0.0f }

/* ---- 4. prepare_step ------------------------------------------------------------------------------- */

/* Who takes part in a step. All arrays are HOST and have n_requests entries. */
typedef struct ts_step {
  uint32_t struct_size;
  int32_t n_requests;              /* 0..max_requests. 0: the step is empty, the arrays may be NULL */
  int32_t rows_per_request;        /* 1..max_rows_per_request; 0: 1. A chain of d drafts has d + 1 rows */
  int32_t slots_type;              /* TS_INT32 or TS_INT64 */
  const uint64_t* request_ids;     /* any values; 8-byte aligned */
  const void* slots;               /* HOST (those of ts_rows are DEVICE); each in [0, n_slots), none twice */
  const ts_request_params* params; /* first of n_requests structs; 8-byte aligned. Only entries of requests that
                                      are new in their slot are read; NULL is allowed when none is new */
  uint32_t params_stride;          /* bytes from one params struct to the next, a multiple of 8;
                                      0: params[0].struct_size, which is then read and checked whenever an entry
                                      is, whoever entry 0 is */
  uint32_t reserved;               /* must be 0 */
} ts_step;

/* Says which requests the next sample and verify calls serve, gives new requests their slots, and selects the
 * step's route. One step serves any number of sample and verify calls, until the next prepare_step.
 *
 * A slot is written only when its owner changes: the request id differs from the one that the slot last held, or
 * the slot was never used or was released. First use and recycling are the same thing, and a step of known requests
 * writes nothing: a known request's params are not looked at. Other params for the same id in the same slot are
 * ignored, not an error: they cannot change during a request's life; to change them, release the slot first. Request
 * ids are the caller's choice, but a new request needs an id of its own: of requests without a seed of their own, the
 * id and ts_config.seed make the noise, so ids that begin anew with the process repeat it unless ts_config.seed differs.
 *   sampler  written.     step  HOST, read during the call.
 * Stream: slots are written in stream order, with nothing enqueued when no request is new; never waits (CUDA: new
 * owners go through a ring of pinned buffers, and as kernel parameters while the ring is busy). In a stream capture the
 * new owners' states become part of the graph: each replay writes them again, so prepare steps outside of captures.
 * Thread: one call at a time per sampler.
 * Errors: INVALID_ARGUMENT (names the array and the entry), STRUCT_SIZE, UNSUPPORTED (forced route), CUDA. */
TS_API ts_status ts_sampler_prepare_step(ts_sampler* sampler, const ts_step* step, ts_stream stream);

/* Forgets the owners of n slots (HOST, int32 or int64 as slots_type says), so that whoever comes next in them is
 * new. Needed only when the same request id comes again in the same slot as another request, or with other
 * parameters. Slots that were not in use, and slots named twice, are allowed; n = 0 is nothing to do (slots may be
 * NULL). The prepared step is forgotten if it had one of them.
 * Stream: none; nothing on the device changes. Thread: as prepare_step. Errors: INVALID_ARGUMENT. */
TS_API ts_status ts_sampler_release_slots(ts_sampler* sampler, const void* slots, int32_t slots_type, int32_t n);

/* The route selected by the last prepare_step: "greedy", "plain", "top_k", "top_k_top_p", "top_p" or "mixed",
 * with "+min_p" appended when a row uses min_p; "none" before the first step and after an empty or forgotten one; after
 * ts_sampler_prepare_capture that of its variant.
 * Every route gives the same tokens; the name is for logs and tests. Static, never NULL.
 * Stream: none. Thread: as prepare_step. Errors: none. */
TS_API const char* ts_sampler_step_route(const ts_sampler* sampler);

/* ---- 5. sample and verify -------------------------------------------------------------------------- */

/* The rows to sample from. n_requests and rows_per_request must be those of the prepared step, or fewer requests of
 * it (any subset, any order, a slot more than once if wanted). All arrays are DEVICE. What only the device can see is
 * checked on the CPU backend; on a CUDA backend a slot outside the pool gives an EMPTY row, and a slot that is in the
 * pool but not in the step is sampled as far as the step's route goes. */
typedef struct ts_rows {
  uint32_t struct_size;
  int32_t n_requests;        /* 0: nothing is done, the arrays may be NULL */
  int32_t rows_per_request;  /* 0: as prepared */
  int32_t vocab;             /* row width: ids 0..vocab-1, 1..vocab_size; 0: vocab_size */
  const void* logits;        /* [n_requests * rows_per_request, vocab], aligned to its element */
  int64_t row_stride;        /* elements from row to row, vocab..2^40; 0: vocab */
  int32_t logits_type;       /* TS_FP32, TS_BF16 or TS_FP16 */
  int32_t n_valid;           /* ids >= n_valid are padding and never sampled (an EMPTY row returns
                                invalid_token, whatever it is), 1..vocab; 0: vocab */
  const void* slots;         /* [n_requests] */
  int32_t slots_type;        /* TS_INT32 or TS_INT64 */
  int32_t positions_type;    /* TS_INT32 or TS_INT64 */
  const void* positions;     /* [n_requests], >= 0: the request's offset, usually its valid cache length. The row j of a
                                request draws the noise of position offset + j: pass another offset each step, or
                                tokens of different steps share their noise. NULL: all offsets 0 */
  const int32_t* allow_mask; /* [rows, mask_words] bitmask: bit i % 32 of word i / 32 set = id i is allowed; ids past
                                the last word are forbidden, silently. NULL: all allowed */
  int32_t mask_words;        /* words that a row has, >= 1; 0: (vocab + 31) / 32. Checked without a mask too */
  int32_t reserved;          /* must be 0 */
  int64_t mask_stride;       /* words from row to row, mask_words..2^40; 0: mask_words. Checked as mask_words is */
} ts_rows;

/* Row flags (uint32). NAN and INF look at the whole row, masked and padding ids included. */
enum {
  TS_ROW_NAN = 1,  /* the row held a NaN (taken as -inf) */
  TS_ROW_INF = 2,  /* the row held a +inf (taken as FLT_MAX) */
  TS_ROW_EMPTY = 4 /* no candidate: all ids masked, NaN or -inf; the token is ts_config.invalid_token */
};

/* What sample writes. Arrays are DEVICE, [n_requests * rows_per_request]; NULL: not wanted. */
typedef struct ts_sample_out {
  uint32_t struct_size;
  uint32_t reserved;    /* must be 0 */
  int32_t* tokens;      /* required: the sampled ids */
  float* logprobs;      /* natural log of the token's probability under the row's masked logits, before temperature
                          and filters (temperature 1, all allowed ids). NaN for an EMPTY row */
  int32_t* ranks;       /* 1 + number of allowed ids whose logit is strictly greater; 0 for an EMPTY row */
  int32_t* n_kept;      /* ids that temperature and filters left to choose from; 1 if greedy, 0 if EMPTY */
  uint32_t* row_flags;  /* TS_ROW_*, 0 for an ordinary row */
  uint32_t* n_bad_rows; /* one word: the number of rows whose flags are not 0 (whether or not row_flags is wanted) is
                           added to it, modulo 2^32. The caller clears it, and reads it when it likes */
} ts_sample_out;

/* Samples one token for every row.
 *   sampler  its prepared step says which requests; not changed.
 *   rows     HOST struct of DEVICE arrays, read.     out   HOST struct of DEVICE arrays, written.
 * Outputs must not overlap inputs or each other.
 * Stream: enqueues only (CUDA). Thread: one call at a time per sampler.
 * Errors: INVALID_ARGUMENT, STRUCT_SIZE, NOT_PREPARED (no step, more requests or other rows_per_request than prepared,
 * or, on the CPU backend, a slot that is not in the step), CUDA, OUT_OF_MEMORY (a new graph), and what a broadcast
 * callback returns. */
TS_API ts_status ts_sampler_sample(ts_sampler* sampler, const ts_rows* rows, const ts_sample_out* out,
                                   ts_stream stream);

/* The drafted chains to judge. */
typedef struct ts_draft {
  uint32_t struct_size;
  uint32_t reserved;         /* must be 0 */
  const int32_t* candidates; /* DEVICE [n_requests, rows_per_request]: column 0 is the last committed token (not
                                judged), column j the j-th draft, j >= 1; row j's logits are the model's
                                output after columns 0..j. Ids outside [0, vocab) never match */
  int64_t candidates_stride; /* elements from request to request, rows_per_request..2^40; 0: rows_per_request */
} ts_draft;

/* What verify writes. Arrays are DEVICE; NULL: not wanted, where not required. */
typedef struct ts_verify_out {
  uint32_t struct_size;
  uint32_t reserved;      /* must be 0 */
  int32_t* predict;       /* required, [rows]: the tokens to emit, those of request r at
                             r * rows_per_request + 0 .. + accept_length[r] - 1: the accepted drafts, then the
                             correction or the bonus token; -1 in the places after them */
  int32_t* accept_index;  /* required, [rows]: row numbers r * rows_per_request + j of the emitted tokens,
                             -1 in the places after them */
  int32_t* accept_length; /* required, [n_requests]: tokens emitted, accepted drafts + 1 */
  float* logprobs;        /* [rows], as in ts_sample_out; NaN after accept_length */
  int32_t* ranks;         /* [rows], as in ts_sample_out; 0 after accept_length */
  int32_t* n_kept;        /* [rows], as in ts_sample_out; 0 after accept_length */
  uint32_t* row_flags;    /* [rows], as in ts_sample_out; 0 after accept_length */
  uint32_t* n_bad_rows;   /* one word, as in ts_sample_out; rows after accept_length do not count */
} ts_verify_out;

/* Verifies a chain of drafted tokens per request by exact match: row j of a request is sampled exactly as
 * ts_sampler_sample would sample it; while it equals draft j + 1 the draft is accepted, the first that differs is
 * replaced by the sampled token, and when all are accepted the last row's token is the bonus. The emitted tokens
 * are therefore those that plain sampling would have given, for any draft. An EMPTY row ends its chain.
 * Parameters, Stream, Thread and Errors as ts_sampler_sample. */
TS_API ts_status ts_sampler_verify(ts_sampler* sampler, const ts_rows* rows, const ts_draft* draft,
                                   const ts_verify_out* out, ts_stream stream);

/* ---- 6. CUDA graphs: the caller's and the sampler's ------------------------------------------------ */

/* Engines that capture whole steps: capture sample and verify like any other work, once for each variant below, and
 * replay the graph that ts_sampler_step_variant names for the step just prepared. Parameters, slots and positions are
 * read from device memory at each replay.
 *
 * Everybody else gets graphs of the sampler's own (CUDA backend): outside of captures, each sample and verify call is
 * one graph launch, kept by the shape of the call: variant, number of rows, element type of the logits, row width where
 * it changes the split of the rows, and whether logprobs, ranks or n_kept are wanted. Steps then go the way of their
 * variant, not of the narrower ts_sampler_step_route (unless that was forced). All arrays may be others at each call.
 * The first call of a shape makes its graph, which allocates and takes some 100 to 400 microseconds on the host;
 * later ones do not. At most ts_config.max_graphs are kept; beyond that the one that was unused for the longest time is
 * freed, without waiting. To make them ahead, for each shape: ts_sampler_prepare_capture, then sample or verify with
 * any arrays that are large enough, then, after all, ts_sampler_reset_capture. Tokens are the same with and without
 * graphs. */

/* Which call a variant is for. */
enum { TS_CALL_SAMPLE = 0, TS_CALL_VERIFY = 1 };

/* The graphs worth capturing for a call: how many, and the name of each (index from 0; NULL outside the list).
 * Sampling: "default", "plain", "top_p", "top_k", "top_k_top_p"; verification: the same with "verify_" in front.
 * "default" serves every step. Static strings. Thread: any. Errors: count is 0 for an unknown call. */
TS_API int32_t ts_capture_variant_count(int32_t call);
TS_API const char* ts_capture_variant_name(int32_t call, int32_t index);

/* Makes the next sample or verify calls take the way of `variant`, whatever the slots hold, so that the caller can
 * warm up and capture them: any slots of the pool are then allowed. No slot is written; a slot that was never used
 * samples greedily. The step prepared before is forgotten; lasts until the next ts_sampler_prepare_step, or
 * ts_sampler_reset_capture, which leaves no step prepared.
 *   n_requests, rows_per_request   as in ts_step, both >= 1.     variant   HOST, one of the names above.
 * TSSAMPLE_FORCE_ROUTE does not apply here. Stream: `stream` is for backends that prepare device state; none does yet.
 * Thread: as prepare_step. Errors: INVALID_ARGUMENT; reset_capture: only a NULL sampler. */
TS_API ts_status ts_sampler_prepare_capture(ts_sampler* sampler, int32_t n_requests, int32_t rows_per_request,
                                            const char* variant, ts_stream stream);
TS_API ts_status ts_sampler_reset_capture(ts_sampler* sampler, ts_stream stream);

/* The variant that serves the step just prepared: the name to look the captured graph up by. Static;
 * NULL when sampler is NULL, no step (or an empty one) is prepared, or call is unknown. Stream: none. Thread: as
 * prepare_step. Errors: none. */
TS_API const char* ts_sampler_step_variant(const ts_sampler* sampler, int32_t call);

/* ---- 7. Broadcast, for tensor-parallel ranks ------------------------------------------------------- */

/* Sends an array of rank 0 to the other ranks, in place: data (DEVICE, n_bytes) is read on rank 0 and written on the
 * others, in the order of `stream`. user: ts_broadcast.user. Called with the sampler's device current; may only enqueue
 * when the stream could be capturing. Returns TS_OK or an error of its choice. Must not call the same sampler. */
typedef ts_status (*ts_broadcast_callback)(void* user, void* data, size_t n_bytes, ts_stream stream);

/* How outputs travel from rank 0. Exactly one of nccl_comm and callback is given. */
typedef struct ts_broadcast {
  uint32_t struct_size;
  int32_t n_ranks;   /* <= 1: off, and the fields below are not looked at */
  int32_t rank;      /* this sampler's, 0..n_ranks-1 */
  uint32_t reserved; /* must be 0 */
  void* nccl_comm;   /* ncclComm_t of n_ranks ranks, this one being `rank`, on the sampler's GPU. The caller keeps it */
  ts_broadcast_callback callback;
  void* user; /* for the callback; may be NULL */
} ts_broadcast;

/* Makes all later sample and verify calls of this sampler agree with rank 0's: after a call's own work, each array that
 * it was asked for (tokens or predict, accept_index, accept_length, logprobs, ranks, n_kept, row_flags, in this order;
 * not n_bad_rows) is broadcast in place from rank 0, in stream order on the call's stream. All ranks must make the same
 * calls with the same n_requests, rows_per_request and outputs. Safe in stream captures as far as NCCL or the callback
 * are. With one rank nothing is done.
 *   broadcast   HOST, read; NULL: off (also the state after create).
 * nccl_comm: the arrays of a call are one NCCL group. libnccl.so.2 is looked for here, at run time: the one that the
 * process has loaded, or else the loader's. CUDA backend only; the callback works on both.
 * When NCCL or the callback fails, sample and verify return TS_ERROR_CUDA or the callback's status; their own work has
 * been enqueued by then and the outputs are undefined.
 * Stream: none. Thread: one call at a time per sampler.
 * Errors: INVALID_ARGUMENT (also a communicator of other size or rank), STRUCT_SIZE, UNSUPPORTED (nccl_comm on the CPU
 * backend, or no libnccl.so.2), CUDA (NCCL). */
TS_API ts_status ts_sampler_set_broadcast(ts_sampler* sampler, const ts_broadcast* broadcast);

#ifdef __cplusplus
}
#endif
#endif /* TSSAMPLE_H_ */
