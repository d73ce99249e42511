#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo programs beyond their defaults: known kept sizes, options, progress, and refusals, alike in C and in Python.
# Usage: check_demo.sh BUILD_DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TSSAMPLE_LIBRARY="$PWD/$build/libtssample.so.0"
python_demo=capi/examples/python/demo.py

both() { # both EXPECTED_STATUS ARGUMENT...: the two agree in status and standard output
  expected=$1
  shift
  status_c=0
  status_python=0
  "$build/demo_c" "$@" >"$work/c" 2>"$work/c.err" || status_c=$?
  python3 $python_demo "$@" >"$work/python" 2>"$work/python.err" || status_python=$?
  [ "$status_c" = "$status_python" ] || { echo "demo $*: C ends in $status_c, Python in $status_python"; exit 1; }
  cmp -s "$work/c" "$work/python" || { echo "demo $*: C and Python print different things"; exit 1; }
  if [ "$expected" = 0 ]; then
    [ "$status_c" = 0 ] || { echo "demo $*: failed"; cat "$work/c.err"; exit 1; }
  else
    [ "$status_c" != 0 ] && [ -s "$work/c.err" ] && [ -s "$work/python.err" ] || { echo "demo $*: not refused"; exit 1; }
  fi
}

# The kept sizes of top-p .9 are those that the data's own description states (nucleus90).
both 0 rows
awk '$2 == "T=1" && $3 == "top_p=0.9" && NF == 7 {print $7}' "$work/c" | tr '\n' ' ' >"$work/kept"
[ "$(cat "$work/kept")" = "200 2467 3 6 4 2 3 6 " ] || { echo "kept sizes are $(cat "$work/kept")"; exit 1; }

# Text: a file in which every word has one successor can only be repeated; the seed and the filters do not matter.
printf 'one two three four five one two three four five one two three four five\n' >"$work/ring"
both 0 text --file "$work/ring" --tokens 7 --temperature 0
cp "$work/c" "$work/greedy"
grep -q 'one two three four five' "$work/greedy" || { echo "the ring came out as:"; cat "$work/greedy"; exit 1; }
for options in "--seed 1" "--seed 2" "--temperature 0.5" "--top-k 3" "--top-p 0.5" "--min-p 0.2"; do
  # shellcheck disable=SC2086
  both 0 text --file README.md --tokens 50 $options
done
both 0 text --file README.md --tokens 50 --seed 1
cp "$work/c" "$work/seed1"
both 0 text --file README.md --tokens 50 --seed 2
cmp -s "$work/c" "$work/seed1" && { echo "two seeds gave one text"; exit 1; }

# Progress, on stderr, while it takes long: a run too long to end is cut off.
long_run() {
  timeout 5 "$@" text --file README.md --tokens 50000000 >/dev/null 2>"$work/progress" || true
  grep -q ' of 50000000 tokens' "$work/progress" || { echo "$*: no progress line in 5 s"; exit 1; }
}
long_run "$build/demo_c"
long_run python3 $python_demo

for bad in "--tokens 0" "--tokens x" "--temperature -1" "--min-p 2" "--file /nonexistent" "--nonsense 1"; do
  # shellcheck disable=SC2086
  both 1 text $bad
done
both 1 nonsense
echo "demo options, refusals and kept sizes as they should be, in C and Python"
