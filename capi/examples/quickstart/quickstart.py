# SPDX-License-Identifier: Apache-2.0
"""One step for two requests: the README's Python example."""
import os
import sys

# The source tree's binding; an installed one is found by PYTHONPATH.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import array

import tssample

# Request 11 in slot 0 samples with top-p and its own seed; request 12 in slot 1 is greedy.
params = [tssample.RequestParams(temperature=0.8, top_p=0.9, seed=42), tssample.RequestParams(temperature=0.0)]

# One row of logits per request: numpy arrays, torch tensors' .numpy(), array.array, raw pointers all do.
logits = array.array("f", [1, 4, 0, 3, 3, -2, 0, 1, 0, 0, 1, 0, 0, 5, 0, 2])

with tssample.Sampler(vocab_size=8) as sampler:
    sampler.prepare_step(request_ids=[11, 12], slots=[0, 1], params=params)
    result = sampler.sample(logits, slots=[0, 1], positions=[17, 4], want=["logprobs"])
    for request, token, logprob in zip([11, 12], result.tokens, result.logprobs):
        print(f"request {request}: token {token}, logprob {logprob:.4f}")
