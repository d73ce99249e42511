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

# Text of three words by lot, of which red is the likeliest and blue the least likely whatever came before.
awk 'BEGIN {x = 1; for (i = 0; i < 3000; i++) {x = (x * 16807) % 2147483647; u = x / 2147483647
  print u < .5 ? "red" : u < .8 ? "green" : "blue"}}' >"$work/lots"
lots() { # lots NAME N OPTION...: keeps N words under that name, and both say how fast that was
  name=$1 n=$2
  shift 2
  both 0 text --file "$work/lots" --tokens "$n" "$@"
  cp "$work/c" "$work/$name"
  [ "$(wc -w <"$work/$name")" = "$n" ] || { echo "--tokens $n $*: $(wc -w <"$work/$name") words"; exit 1; }
  for err in c.err python.err; do
    grep -Eq "^demo(_c|\.py): $n tokens, .* [1-9][0-9]* tokens/s\$" "$work/$err" || { cat "$work/$err"; exit 1; }
  done
}
has() { grep -q "$2" "$work/$1" || { echo "$1 has no $2"; exit 1; }; }
has_not() { ! grep -q "$2" "$work/$1" || { echo "$1 has $2"; exit 1; }; }
differ() { ! cmp -s "$work/$1" "$work/$2" || { echo "$1 and $2 are one text"; exit 1; }; }
lots one 1
lots seven 7
lots default 200
for word in red green blue; do has default $word; done
# Every way to leave only the likeliest word, then the first two.
lots greedy 200 --temperature 0
has greedy red
for options in "--top-k 1" "--top-p 0" "--top-p 0.3" "--min-p 1"; do
  # shellcheck disable=SC2086
  lots one_word 200 $options
  cmp "$work/one_word" "$work/greedy" || { echo "$options is not the greedy text"; exit 1; }
done
differ default greedy
has_not greedy 'green\|blue'
for options in "--top-k 2" "--top-p 0.7" "--min-p 0.45"; do
  # shellcheck disable=SC2086
  lots two_words 200 $options
  has two_words green
  has_not two_words blue
done
lots cold 200 --temperature 0.1
differ cold default
lots again 200 --seed 1
cmp "$work/again" "$work/default" || { echo "the default is not seed 1"; exit 1; }
lots seed2 200 --seed 2
lots seed3 200 --seed 3
differ default seed2
differ default seed3
differ seed2 seed3

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
