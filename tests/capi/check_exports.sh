#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The exported symbols, the soname and the needed libraries of a built libtssample.so, against what is promised.
# Usage: check_exports.sh LIBRARY
set -eu
here=$(cd "$(dirname "$0")" && pwd)
library=$1
status=0

nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@@.*/, "", $3); print $3}' | LC_ALL=C sort >/tmp/tssample_exports.$$
trap 'rm -f /tmp/tssample_exports.$$' EXIT
diff -u "$here/../../capi/exports.txt" /tmp/tssample_exports.$$ || { echo "exported symbols differ from capi/exports.txt"; status=1; }

soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
[ "$soname" = libtssample.so.0 ] || { echo "soname is $soname"; status=1; }

for needed in $(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
  case $needed in
    libc.so.6 | ld-linux-*) ;;
    *) echo "needs $needed"; status=1 ;;
  esac
done

# Every exported function is declared in the header, and the other way round.
sed -n 's/^TS_API .*[ *]\(ts_[a-z_]*\)(.*/\1/p' "$here/../../include/tssample.h" | LC_ALL=C sort | diff -u - "$here/../../capi/exports.txt" ||
  { echo "capi/exports.txt differs from the header"; status=1; }
[ $status = 0 ] && echo "exports, soname and dependencies as promised"
exit $status
