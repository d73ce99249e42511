#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The README's command for users, preset `release`, as on a machine without nvcc: configures, builds, and runs the demo;
# and TSSAMPLE_CUDA=ON says there what is missing.
# Usage: check_no_nvcc.sh
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A folder of PATH that has nvcc is replaced by one of links to all else in it: the compiler may lie beside it.
path=
n=0
IFS=:
for folder in $PATH; do
  if [ -e "$folder/nvcc" ]; then
    n=$((n + 1))
    mkdir "$work/bin$n"
    ln -s "$folder"/* "$work/bin$n/"
    rm "$work/bin$n/nvcc"
    folder=$work/bin$n
  fi
  path=$path${path:+:}$folder
done
unset IFS CUDACXX CUDA_HOME CUDA_PATH
PATH=$path
! command -v nvcc || { echo "nvcc is still there"; exit 1; }

cmake --preset release -B "$work/build" >"$work/log"
grep -q '^-- tssample: CUDA OFF$' "$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/build" -j "$(getconf _NPROCESSORS_ONLN)" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
sh tests/capi/check_exports.sh "$work/build/libtssample.so"
"$work/build/demo_c" text --tokens 20 2>"$work/said"
grep -q '^demo_c: 20 tokens, ' "$work/said" || { cat "$work/said"; exit 1; }

# Asked for, it must not be left out in silence.
if cmake --preset release -B "$work/asked" -DTSSAMPLE_CUDA=ON >"$work/log" 2>&1; then
  echo "TSSAMPLE_CUDA=ON without nvcc was configured"
  exit 1
fi
grep -q 'TSSAMPLE_CUDA=ON, but no CUDA compiler' "$work/log" || { cat "$work/log"; exit 1; }
echo "preset release without nvcc: a library for the CPU, which ran"
