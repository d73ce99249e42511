#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's second command: installs what the tests need, builds, and runs them all. Needs no GPU and no CUDA.
# Ends in one line, "N passed, N failed": the parts below. A part's log is printed when it fails.
# Usage: sh tests/run.sh [PART ...]   (default: all parts)
set -u
cd "$(dirname "$0")/.." || exit 1
. tests/parts.sh

sh .ci/install.sh g++ cmake make python3 python3-numpy catch2 nlohmann-json3-dev libboost-context-dev binutils pkg-config || exit 1
sh .ci/check_cmake.sh || exit 1
# Newer systems lack this version, and another one formats differently.
sh .ci/install.sh clang-format-14 >/dev/null 2>&1

if command -v clang-format-14 >/dev/null 2>&1; then
  part format       check_format
else
  echo "format: skipped, no clang-format-14 to be had"
fi
part layers       check_layers
part build        build dev
part unit         in_build dev unit_tests -d yes
part kernels      in_build dev kernel_tests -d yes
part stats        in_build dev stats_tests -d yes
if [ -f build/dev/tests/cuda_host_tests ]; then
  part cuda-host  in_build dev cuda_host_tests
else
  echo "cuda-host: skipped, no CUDA headers"
fi
if [ -f build/dev/tests/emulator/emulated_compare ]; then
  part emulated   emulated
else
  echo "emulated: skipped, no CUDA headers or no Boost.Context"
fi
part c99          in_build dev c99_api
part c99-memory   in_build dev c99_memory
part c99-threads  in_build dev c99_threads
part exports      sh tests/capi/check_exports.sh build/dev/libtssample.so
part old-cpu      sh tests/capi/check_baseline.sh build/dev
part vectors      python3 tests/data/make_contract_vectors.py --check
part python       env TSSAMPLE_LIBRARY="$PWD/build/dev/libtssample.so.0" python3 tests/capi/test_python.py
part readme       python3 tests/check_readme.py
part faults       python3 tests/check_faults.py build/dev
part gpu-skips    sh tests/check_gpu_skips.sh build/dev
part quickstart   quickstart build/dev
part demo         sh capi/examples/run.sh
part demo-options sh tests/capi/check_demo.sh build/dev
part install      sh tests/capi/check_install.sh build/dev
part no-nvcc      sh tests/capi/check_no_nvcc.sh
part build-asan   build asan unit_tests kernel_tests c99_api c99_threads
part unit-asan    in_build asan unit_tests
part kernels-asan in_build asan kernel_tests
part c99-asan     in_build asan c99_api
part threads-asan in_build asan c99_threads
if command -v nvcc >/dev/null 2>&1; then
  part cuda       build_gpu
else
  echo "cuda: skipped, no nvcc on PATH"
fi

echo "$n_passed passed, $n_failed failed"
# Why the second: a part's name that is none runs nothing.
[ "$n_failed" = 0 ] && [ "$n_passed" -gt 0 ]
