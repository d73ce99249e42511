#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of some Debian or Ubuntu packages: .ci/install.sh PACKAGE | COMMAND=PACKAGE ...
# COMMAND=PACKAGE is passed over when the command is there, wherever it came from.
set -eu

missing=
for argument in "$@"; do
  package=${argument#*=}
  case $argument in
    *=*) command -v "${argument%%=*}" >/dev/null 2>&1 && continue ;;
    *) [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] && continue ;;
  esac
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "install.sh: this needs$missing; there is no apt-get here, so please install them by other means" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1; then
  as_root=sudo
else
  echo "install.sh: this needs$missing; run it as root, or install them first" >&2
  exit 1
fi

echo "install.sh: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" </dev/null >"$log" 2>&1; }
# An update that fails in part (a source that is out of reach) may still be enough for the packages needed.
updated=yes
apt update || updated=no
# shellcheck disable=SC2086
if ! apt install --no-install-recommends $missing; then
  tail -n 5 "$log" >&2
  [ $updated = yes ] || echo "install.sh: apt-get update had failed before" >&2
  echo "install.sh: could not install$missing" >&2
  exit 1
fi
