// SPDX-License-Identifier: Apache-2.0
// Compiles a loop twice: for x86-64-v3 (AVX2 and FMA, which this folder is built for) and for AVX-512, chosen at run
// time. The arithmetic is the same in each copy: no contraction, no reassociation, so the bits are too.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define TS_SIMD_CLONES __attribute__((target_clones("default", "arch=x86-64-v4")))
#else
#define TS_SIMD_CLONES
#endif
// Why: a helper is vectorised with its caller's instruction set only if it is inlined there.
#define TS_SIMD_INLINE inline __attribute__((always_inline))
