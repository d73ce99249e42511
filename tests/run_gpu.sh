#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs all GPU tests. Ends in "N passed, N failed, N skipped", and with 1 if a part failed, 77 if none ran.
# A part that cannot run here says "skipped" and why; it never counts as passed.
# Usage: sh tests/run_gpu.sh [--prebuilt DIR] [PART ...]
#   --prebuilt DIR   (or TS_GPU_PREBUILT=DIR) runs what tests/gpu/pack.sh collected there and builds nothing
#   TS_GPU_LOGS=DIR  keeps the parts' logs there; TS_COMPARE_OPTIONS="--rows 20000 ..." goes to compare
set -u
here=$(cd "$(dirname "$0")" && pwd)
prebuilt=${TS_GPU_PREBUILT:-}
if [ "${1:-}" = --prebuilt ]; then
  prebuilt=$2
  shift 2
fi
wanted=" $* "
logs=${TS_GPU_LOGS:-$(mktemp -d)}
mkdir -p "$logs"
n_passed=0 n_failed=0 n_skipped=0

has_gpu() {
  nvidia-smi -L >/dev/null 2>&1 || ls /dev/nvidia[0-9]* >/dev/null 2>&1
}

# What stands in the way of all parts, if anything.
missing=
if [ -z "$prebuilt" ]; then
  if ! has_gpu; then
    missing="no GPU"
  elif ! command -v nvcc >/dev/null 2>&1; then
    missing="no nvcc on PATH, and no --prebuilt"
  else
    cd "$here/.." || exit 1
    prebuilt=build/gpu_tests
    if ! { cmake --preset release -DTSSAMPLE_BUILD_GPU=ON && cmake --build --preset release -j "$(nproc)" &&
           sh tests/gpu/pack.sh "$prebuilt"; } >"$logs/build.log" 2>&1; then
      tail -n 40 "$logs/build.log"
      echo "build: FAILED"
      echo "0 passed, 1 failed, 0 skipped"
      exit 1
    fi
  fi
fi
if [ -n "$prebuilt" ]; then
  prebuilt=$(cd "$prebuilt" && pwd) || exit 1
  export LD_LIBRARY_PATH="$prebuilt${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export TSSAMPLE_LIBRARY="$prebuilt/libtssample.so.0" TSSAMPLE_PYTHON="$prebuilt/python"
  export TS_TEST_DATA="$prebuilt/data"
fi

# part NAME SECONDS COMMAND...: passed by exit status 0, skipped by 77.
part() {
  name=$1 limit=$2
  shift 2
  [ "$wanted" = "  " ] || case $wanted in *" $name "*) ;; *) return 0 ;; esac
  if [ -n "$missing" ]; then
    n_skipped=$((n_skipped + 1))
    echo "$name: skipped: $missing"
    return 0
  fi
  begin=$(date +%s)
  timeout "$limit" "$@" >"$logs/$name.log" 2>&1
  status=$?
  took="$(($(date +%s) - begin)) s: $(grep -v '^[ =]*$' "$logs/$name.log" | tail -n 1)"
  # A filter that names no test is a mistake here, and Catch2 version 2 calls it a success.
  if [ $status = 0 ] && ! grep -q 'No test' "$logs/$name.log"; then
    n_passed=$((n_passed + 1))
    echo "$name: passed in $took"
  elif [ $status = 77 ] && grep -q skipped "$logs/$name.log"; then
    n_skipped=$((n_skipped + 1))
    echo "$name: $(grep skipped "$logs/$name.log" | tail -n 1)"
  else
    n_failed=$((n_failed + 1))
    tail -n 60 "$logs/$name.log"
    echo "$name: FAILED (exit status $status) in $took"
  fi
}

on_gpu() {
  part "$1" 300 env TS_TEST_DEVICE=cuda "$prebuilt/$2" ${3:+"$3"}
}

on_gpu hot-path unit_tests "*allocate nothing"
part capture 300 "$prebuilt/capture_test"
part stream 300 "$prebuilt/stream_test"
part few-sms 300 "$prebuilt/stream_test" --few-sms
part torch 300 python3 "$prebuilt/test_torch_capture.py"
part owned-graphs 300 "$prebuilt/owned_graphs"
part launches 300 "$prebuilt/launches"
on_gpu kernels kernel_tests
# shellcheck disable=SC2086
part compare 420 "$prebuilt/compare" --real "$prebuilt/data/real_rows.bf16" ${TS_COMPARE_OPTIONS:-}
on_gpu stats stats_tests

echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed = 0 ] || exit 1
[ $n_passed -gt 0 ] || exit 77
