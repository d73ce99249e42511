#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Collects what the GPU tests need into one folder, to be carried to a machine without compiler or internet and run there
# by "sh DIR/run_gpu.sh --prebuilt DIR". Usage: sh tests/gpu/pack.sh DIR [BUILD_DIR] [REAL_ROWS.bf16]
# BUILD_DIR: default build/release, built with TSSAMPLE_BUILD_GPU=ON. REAL_ROWS: default the 48 rows beside the
# repository, else the 8 committed ones.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
to=$1
build=${2:-$root/build/release}
real=${3:-}
if [ -z "$real" ]; then
  real=$root/tests/data/lm_rows_8x128256.bf16
  for all in "$root/../shared" "$root/../../shared" "$root/shared"; do
    [ -f "$all/data/lm_logits_48x128256.bf16" ] && real=$all/data/lm_logits_48x128256.bf16 && break
  done
fi

rm -rf "$to"
mkdir -p "$to/python" "$to/data"
cp "$build/libtssample.so.0" "$to/"
for program in kernel_tests stats_tests unit_tests; do
  cp "$build/tests/$program" "$to/"
done
for program in compare capture_test stream_test owned_graphs launches; do
  cp "$build/tests/gpu/$program" "$to/"
done
for program in bench_sampler bench_host; do
  [ -f "$build/$program" ] && cp "$build/$program" "$to/"
done
cp "$root"/capi/python/*.py "$to/python/"
cp "$root/tests/gpu/test_torch_capture.py" "$root/tests/run_gpu.sh" "$root/tests/run_sanitizers.sh" \
  "$root/benchmarks/table.py" "$to/"
cp "$root/tests/data/contract_vectors.json" "$root/tests/data/lm_rows_8x128256.bf16" "$to/data/"
cp "$real" "$to/data/real_rows.bf16"
# The programs look for the library beside themselves; what the build left behind in them is of no use elsewhere.
for file in "$to"/*; do
  case $file in *.sh | *.py) ;; *) [ -f "$file" ] && strip "$file" ;; esac
done
bytes=$(du -sb "$to" | cut -f1)
echo "packed $to: $((bytes / 1000000)) MB"
[ "$bytes" -lt 60000000 ]
