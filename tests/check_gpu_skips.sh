#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Without a GPU the GPU tests say skipped, never passed: the scripts, and the Catch2 programs with TS_TEST_DEVICE=cuda.
# Usage: sh tests/check_gpu_skips.sh BUILD_DIR
set -u
if nvidia-smi -L >/dev/null 2>&1 || ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  echo "there is a GPU here: run tests/run_gpu.sh"
  exit 0
fi

fail() {
  echo "FAILED: $*"
  exit 1
}

for script in tests/run_gpu.sh tests/run_sanitizers.sh; do
  said=$(TS_GPU_PREBUILT='' sh $script)
  [ $? = 77 ] || fail "$script does not end with 77"
  echo "$said"
  echo "$said" | tail -n 1 | grep -Eq '^0 passed, 0 failed, [1-9][0-9]* skipped$' || fail "$script: its last line"
  echo "$said" | sed '$d' | grep -qv ': skipped: ' && fail "$script: a part that does not say skipped"
done
for program in kernel_tests stats_tests unit_tests; do
  said=$(TS_TEST_DEVICE=cuda "$1/tests/$program")
  [ $? = 77 ] || fail "$program does not end with 77"
  echo "$said" | grep -q '^skipped: ' || fail "$program does not say skipped"
  echo "$said" | grep -qi passed && fail "$program says passed"
done
for program in compare capture_test stream_test owned_graphs launches; do
  [ -f "$1/tests/gpu/$program" ] || continue
  said=$("$1/tests/gpu/$program")
  [ $? = 77 ] || fail "$program does not end with 77"
  echo "$program: $said" | grep ': skipped: ' || fail "$program does not say skipped"
done
echo "without a GPU all GPU tests say skipped"
