#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An old processor gets a status code and not an illegal instruction: every function of the library but those of the
# files for x86-64-v3 holds no instruction of that level, and the ways into these files are behind the processor check.
# Usage: check_baseline.sh BUILD_DIRECTORY
set -eu
build=$1
[ "$(uname -m)" = x86_64 ] || { echo "skipped: not x86_64"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
find "$build/CMakeFiles/tssample_objects.dir" -name '*.o' | sort >"$work/objects"
grep -E '/src/cpu/[^/]*$|/src/core/request_state\.cpp\.o$' "$work/objects" >"$work/v3.objects"
grep -vxFf "$work/v3.objects" "$work/objects" >"$work/plain.objects"

names() { # names OPTION LIST: functions that the objects define, or that they need
  while read -r object; do nm -P "$1" "$object"; done <"$2" | awk '$2 ~ /^[TtWwU]$/ {print $1}' | LC_ALL=C sort -u
}
names --defined-only "$work/v3.objects" >"$work/v3"
names --defined-only "$work/plain.objects" >"$work/plain"
names --undefined-only "$work/plain.objects" >"$work/needed"

# Functions of the linked library that hold AVX, AVX2, FMA, BMI, LZCNT or MOVBE. Not tzcnt: an old processor takes it
# for bsf, and compilers know.
objdump -d --no-show-raw-insn "$build/libtssample.so" | awk -F'\t' '
  /^[0-9a-f]+ <.*>:$/ {name = $1; sub(/^[0-9a-f]+ </, "", name); sub(/(@@.*)?>:$/, "", name)}
  $2 ~ /^(v[a-z]|lzcnt|movbe|mulx|rorx|sarx|shlx|shrx|andn|bextr|bls|bzhi|pdep|pext)/ {print name}' |
  LC_ALL=C sort -u >"$work/held"
# Why less those that plain files define too: the linker takes either copy of an inline function.
LC_ALL=C comm -23 "$work/v3" "$work/plain" | LC_ALL=C comm -13 - "$work/held" >"$work/wrong"
[ ! -s "$work/wrong" ] || { echo "instructions of x86-64-v3 in:"; c++filt <"$work/wrong"; exit 1; }
grep -q find_kept "$work/held" || { echo "none where they must be: the check would pass on anything"; exit 1; }

# CpuBackend is made behind the check, and the state of a request needs a sampler.
LC_ALL=C comm -12 "$work/v3" "$work/needed" | c++filt | sed 's/(.*//' >"$work/ways"
printf '%s\n' ts::CpuBackend::CpuBackend ts::make_request_state | diff - "$work/ways" ||
  { echo "another way into the files for x86-64-v3: is it behind the check?"; exit 1; }
while read -r object; do
  ! objdump -h "$object" | grep -q init_array || { echo "$object runs code when the library is loaded"; exit 1; }
done <"$work/v3.objects"
echo "plain x86-64 but for $(wc -l <"$work/held") functions behind the processor check"
