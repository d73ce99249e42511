#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo: installs what is missing, builds, runs the C and the Python program, and compares what they print.
#   sh capi/examples/run.sh [options of `demo text`]
set -eu
cd "$(dirname "$0")/../.."

say() { echo "== $*"; }

sh .ci/install.sh cc=gcc c++=g++ cmake=cmake make=make python3=python3
sh .ci/check_cmake.sh

preset=cpu
# Why only with a GPU: the demo would run on the CPU all the same, and the kernels take minutes to compile.
if command -v "${CUDACXX:-nvcc}" >/dev/null 2>&1 && nvidia-smi -L >/dev/null 2>&1; then preset=release; fi
build=build/$preset
out=$build/demo
mkdir -p "$out"

say "building the library and the C demo (preset $preset)"
{
  cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$(nproc)" --target tssample demo_c
} >"$out/build.log" 2>&1 || {
  cat "$out/build.log" >&2
  say "the build failed: see above, or $out/build.log" >&2
  exit 1
}

# The same arguments to both programs; their timing and progress lines go to stderr, all else is compared.
compare() {
  say "demo $*"
  "$build/demo_c" "$@" >"$out/c.txt"
  cat "$out/c.txt"
  TSSAMPLE_LIBRARY=$build/libtssample.so.0 python3 capi/examples/python/demo.py "$@" >"$out/python.txt"
  if ! diff -u "$out/c.txt" "$out/python.txt"; then
    say "the C and the Python program print different things: - is C, + is Python" >&2
    exit 1
  fi
  say "C and Python print the same $(wc -l <"$out/c.txt") lines"
}

compare rows
compare text "$@"
