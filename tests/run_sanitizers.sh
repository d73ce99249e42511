#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compute-sanitizer over scaled-down GPU tests: memcheck, racecheck, initcheck, synccheck. Ends in
# "N passed, N failed, N skipped", and with 1 if a run reported anything, 77 if none ran.
# Usage: sh tests/run_sanitizers.sh --prebuilt DIR [TOOL ...]     DIR: from tests/gpu/pack.sh (or TS_GPU_PREBUILT)
#   TS_GPU_LOGS=DIR  keeps the logs there
set -u
prebuilt=${TS_GPU_PREBUILT:-}
if [ "${1:-}" = --prebuilt ]; then
  prebuilt=$2
  shift 2
fi
tools=${*:-memcheck racecheck initcheck synccheck}
logs=${TS_GPU_LOGS:-$(mktemp -d)}
mkdir -p "$logs"
n_passed=0 n_failed=0 n_skipped=0

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
missing=
if [ -z "$prebuilt" ]; then
  missing="no --prebuilt"
elif [ -z "$sanitizer" ]; then
  missing="no compute-sanitizer"
elif ! nvidia-smi -L >/dev/null 2>&1 && ! ls /dev/nvidia[0-9]* >/dev/null 2>&1; then
  missing="no GPU"
else
  prebuilt=$(cd "$prebuilt" && pwd) || exit 1
  export LD_LIBRARY_PATH="$prebuilt${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
  export TS_TEST_DATA="$prebuilt/data" TS_TEST_DEVICE=cuda
fi

# check TOOL NAME PROGRAM...: passed if the program passed and every summary of the tool says 0.
check() {
  tool=$1 name=$2
  shift 2
  if [ -n "$missing" ]; then
    n_skipped=$((n_skipped + 1))
    echo "$tool $name: skipped: $missing"
    return 0
  fi
  begin=$(date +%s)
  log=$logs/$tool-$name.log
  timeout 400 "$sanitizer" --tool "$tool" --error-exitcode 99 --print-limit 20 "$@" >"$log" 2>&1
  status=$?
  took="$(($(date +%s) - begin)) s: $(grep -v '^=========' "$log" | grep -v '^[ =]*$' | tail -n 1)"
  summary=$(grep '^========= .*SUMMARY' "$log" | tail -n 1)
  # Why also the text: a hazard that is a warning leaves the exit status alone.
  if [ $status = 77 ]; then
    n_skipped=$((n_skipped + 1))
    echo "$tool $name: skipped"
  elif [ $status = 0 ] && echo "$summary" | grep -Eq 'SUMMARY: 0 (errors|hazards)'; then
    n_passed=$((n_passed + 1))
    echo "$tool $name: passed in $took (${summary#========= })"
  else
    n_failed=$((n_failed + 1))
    grep '^=========' "$log" | head -n 60
    echo "$tool $name: FAILED (exit status $status) in $took (${summary#========= })"
  fi
}

for tool in $tools; do
  check "$tool" compare "$prebuilt/compare" --rows 150 --large 4 --huge 0 --exact 1 --threads 2
  check "$tool" capture "$prebuilt/capture_test" --replays 5
  check "$tool" producer "$prebuilt/stream_test" --producer 1
  check "$tool" owned-graphs "$prebuilt/owned_graphs" --replays 4
  check "$tool" launches "$prebuilt/launches"
  check "$tool" kernels "$prebuilt/kernel_tests" "B6*,C2*,D2*,E1*,F4*,golden rows: all in one call"
done

echo "$n_passed passed, $n_failed failed, $n_skipped skipped"
[ $n_failed = 0 ] || exit 1
[ $n_passed -gt 0 ] || exit 77
