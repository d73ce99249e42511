#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The functions that run before the processor check (create's way to it, capabilities, errors) hold no AVX or FMA
# instruction, so that an old processor gets a status code and not an illegal instruction.
# Usage: check_baseline.sh LIBRARY
set -eu
library=$1
[ "$(uname -m)" = x86_64 ] || { echo "skipped: not x86_64"; exit 0; }
listing=$(mktemp)
trap 'rm -f "$listing"' EXIT
objdump -d --no-show-raw-insn "$library" >"$listing"
for name in ts_sampler_create ts_get_capabilities ts_last_error ts_status_string ts_version ts_version_string \
  ts_sampler_destroy; do
  body=$(awk -v name="<$name@@" -v plain="<$name>" 'index($0, name) || index($0, plain) && /^[0-9a-f]+ </ {on = 1; next}
    /^$/ {on = 0} on' "$listing")
  [ -n "$body" ] || { echo "no disassembly of $name"; exit 1; }
  if printf '%s\n' "$body" | awk -F'\t' '{print $2}' | grep -q '^v[a-z]'; then
    echo "$name holds a vector-extended instruction"
    exit 1
  fi
done
grep -q 'vfmadd' "$listing" || { echo "no fma instruction anywhere: the check would pass on anything"; exit 1; }
echo "the way to the processor check is plain x86-64"
