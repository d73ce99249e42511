# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own torch.cuda.CUDAGraph around calls of the ctypes binding, with torch tensors on torch's current stream.

Both calls and every variant are captured and replayed a hundred times while a torch op advances the positions, inside
the graph or outside; each replay against the CPU backend through the same binding. Ends with 77 and the word "skipped"
without PyTorch or a GPU. TSSAMPLE_LIBRARY: the library; TSSAMPLE_PYTHON: the folder of tssample.py (default: capi/python).
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("TSSAMPLE_PYTHON", os.path.join(HERE, "..", "..", "capi", "python")))
import tssample  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

N_REQUESTS, VOCAB, REPLAYS = 5, 32003, int(os.environ.get("TS_TEST_REPLAYS", "100"))
OPTIONAL = ("logprobs", "ranks", "n_kept", "row_flags")
SLOTS = [7, 0, 12, 3, 9]
# Parameters of the steps that each variant serves.
PARAMS = {
    "default": [dict(), dict(top_k=20), dict(top_p=0.9), dict(top_k=30, top_p=0.8, min_p=0.01), dict(temperature=0.0)],
    "plain": [dict()] * N_REQUESTS,
    "top_p": [dict(top_p=0.9)] * N_REQUESTS,
    "top_k": [dict(top_k=50)] * N_REQUESTS,
    "top_k_top_p": [dict(top_k=50, top_p=0.9)] * N_REQUESTS,
}
failures = []


def expect(ok, what):
    if not ok:
        failures.append(what)
        if len(failures) <= 20:
            print("FAILED:", what)


class Reference:
    """The same step on the CPU backend."""

    def __init__(self, params, rows_per_request):
        self.sampler = tssample.Sampler(VOCAB, device="cpu")
        self.sampler.prepare_step(range(100, 100 + N_REQUESTS), SLOTS, params, rows_per_request)

    def call(self, call, logits, positions, candidates):
        on_host = logits.cpu()
        arguments = [tssample.Pointer(on_host.data_ptr(), tuple(on_host.shape), "bf16"), SLOTS]
        if call == "verify":
            arguments.append(candidates.tolist())
        return getattr(self.sampler, call)(*arguments, positions=positions.tolist(), want=OPTIONAL)


def bits(values):
    """32-bit words of a tensor or an array, so that NaN equals itself."""
    if torch.is_tensor(values):
        return values.cpu().view(torch.int32).tolist()
    return list(memoryview(values).cast("B").cast("i"))


def same(result, expected):
    return all(bits(getattr(result, name)) == bits(getattr(expected, name)) for name in expected._fields)


def outputs(call, rows):
    def integers(n):
        return torch.full((n,), -77, dtype=torch.int32, device="cuda")
    # row_flags are uint32 in C; torch has few operations on that type, and the bits are the same.
    optional = [torch.zeros(rows, device="cuda"), integers(rows), integers(rows), Unsigned(integers(rows))]
    if call == "sample":
        return tssample.SampleResult(integers(rows), *optional)
    return tssample.VerifyResult(integers(rows), integers(rows), integers(N_REQUESTS), *optional)


class Unsigned:
    """An int32 tensor as what the binding takes for row_flags, through __cuda_array_interface__."""

    def __init__(self, tensor):
        self.tensor = tensor

    @property
    def __cuda_array_interface__(self):
        return {**self.tensor.__cuda_array_interface__, "typestr": "<u4"}


def plain(result):
    return result._replace(row_flags=result.row_flags.tensor)


def test_variant(call, variant, captured_advance):
    name = variant[len("verify_"):] if call == "verify" else variant
    rows_per_request = 3 if call == "verify" else 1
    rows = N_REQUESTS * rows_per_request
    what = f"{variant}, positions advanced {'inside' if captured_advance else 'outside'} the graph"
    torch.manual_seed(hash_of(variant))
    params = [tssample.RequestParams(seed=1000 + i, **p) for i, p in enumerate(PARAMS[name])]
    logits = (torch.randn(rows, VOCAB, device="cuda") * 2.5).to(torch.bfloat16)
    positions = torch.arange(10, 10 + N_REQUESTS, dtype=torch.int64, device="cuda")
    slots = torch.tensor(SLOTS, dtype=torch.int32, device="cuda")
    candidates = torch.zeros(N_REQUESTS, rows_per_request, dtype=torch.int32, device="cuda")
    if rows_per_request > 1:  # the likeliest ids: accepted now and then
        likely = logits.float().argmax(-1).to(torch.int32).view(N_REQUESTS, rows_per_request)
        candidates[:, 1:] = likely[:, :-1]
    out = outputs(call, rows)
    sampler = tssample.Sampler(VOCAB, device="cuda")
    bf16 = tssample.Pointer(logits.data_ptr(), (rows, VOCAB), "bf16")

    def enqueue():
        stream = torch.cuda.current_stream().cuda_stream
        arguments = [bf16, slots] + ([candidates] if call == "verify" else [])
        getattr(sampler, call)(*arguments, positions=positions, out=out, stream=stream)

    positions.add_(0)  # loads torch's own kernel before the capture
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    sampler.prepare_capture(N_REQUESTS, variant, rows_per_request)
    with torch.cuda.graph(graph):  # on a stream of torch's; the first call of this sampler
        enqueue()
        if captured_advance:
            positions.add_(rows_per_request)
    sampler.reset_capture()
    stream = torch.cuda.current_stream().cuda_stream
    sampler.prepare_step(range(100, 100 + N_REQUESTS), SLOTS, params, rows_per_request, stream=stream)
    expect(sampler.step_variant(call) == variant, f"{what}: step_variant says {sampler.step_variant(call)}")
    reference = Reference(params, rows_per_request)
    seen = set()
    for i in range(REPLAYS):
        if i % 9 == 4:
            logits.copy_((torch.randn(rows, VOCAB, device="cuda") * 2.5).to(torch.bfloat16))
        before = positions.clone()
        graph.replay()
        torch.cuda.synchronize()
        expected = reference.call(call, logits, before, candidates)
        expect(same(plain(out), expected), f"{what}: replay {i} differs from the CPU backend")
        seen.add(tuple(bits(out[0])))
        if captured_advance:
            expect(torch.equal(positions, before + rows_per_request), f"{what}: the captured op advanced the positions")
        else:
            positions.add_(rows_per_request)
    expect(len(seen) > REPLAYS // 2, f"{what}: draws differ as positions advance")
    # Equal positions: equal tokens. And without a graph, on a side stream of torch's.
    tokens = []
    for _ in range(2):
        positions.fill_(55)
        graph.replay()
        tokens.append(bits(out[0]))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        positions.fill_(55)
        out[0].fill_(-5)
        enqueue()
    side.synchronize()
    tokens.append(bits(out[0]))
    expect(tokens[0] == tokens[1] == tokens[2], f"{what}: equal positions, equal tokens, with and without the graph")
    sampler.close()


def hash_of(text):
    return sum(ord(c) * 31**i for i, c in enumerate(text)) % 2**31


def main():
    if torch is None or not torch.cuda.is_available():
        print("skipped:", "no PyTorch" if torch is None else "PyTorch sees no GPU")
        return 77
    library = tssample.load()
    n = 0
    for call in ("sample", "verify"):
        for variant in library.capture_variants(call):
            for captured_advance in (False, True):
                test_variant(call, variant, captured_advance)
                n += 1
    print(f"test_torch_capture: {n} graphs of torch.cuda.CUDAGraph, {REPLAYS} replays each, {len(failures)} failures "
          f"(torch {torch.__version__})")
    return bool(failures) or n != 20


if __name__ == "__main__":
    sys.exit(main())
