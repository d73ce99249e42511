#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fails, saying what to do, when cmake is older than CMakeLists.txt asks for.
set -eu
needed=$(sed -n 's/^cmake_minimum_required(VERSION \([0-9.]*\))$/\1/p' "$(dirname "$0")/../CMakeLists.txt")
version=$(cmake --version | sed -n 's/^cmake version //p')
if [ "$(printf '%s\n' "$needed" "$version" | sort -V | head -n 1)" != "$needed" ]; then
  echo "cmake $version is too old: $needed or newer is needed (Debian 12, Ubuntu 24.04, or https://cmake.org/download)" >&2
  exit 1
fi
