#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs a build into a folder and uses it as an engine would: the CMake package, pkg-config's flags, and the README's
# Python example.
# Usage: check_install.sh BUILD_DIRECTORY
set -eu
cd "$(dirname "$0")/../.."
build=$PWD/$1
readme=$PWD/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >/dev/null

# CMake package.
mkdir "$work/user"
cp capi/examples/quickstart/quickstart.c "$work/user/"
cat >"$work/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(tssample 0.1 REQUIRED)
add_executable(user quickstart.c)
target_link_libraries(user tssample::tssample)
CMAKE
cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/user/build" >/dev/null
"$work/user/build/user" | tee "$work/out"
grep -q '^request 12: token 5, ' "$work/out"

# pkg-config, from a prefix that the build was not configured with.
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name tssample.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir tssample)
[ "$(cd "$libdir" && pwd)" = "$(dirname "$(find "$work/prefix" -name 'libtssample.so.0')")" ]
# shellcheck disable=SC2046
cc capi/examples/quickstart/quickstart.c -o "$work/plain" $(pkg-config --cflags --libs tssample) -Wl,-rpath,"$libdir"
"$work/plain" | grep -q '^request 12: token 5, '
libdir=$(cd "$libdir" && pwd)

# The same for library folders of other depths: pkg-config's file is made when the build is configured.
for deep in lib lib64 lib/x86_64-linux-gnu opt/lib/a/b; do
  cmake -S . -B "$work/configured" -DTSSAMPLE_CUDA=OFF -DTSSAMPLE_BUILD_DEMO=OFF -DCMAKE_INSTALL_LIBDIR=$deep \
    -DCMAKE_INSTALL_PREFIX=/nowhere >/dev/null
  mkdir -p "$work/moved/$deep/pkgconfig" "$work/moved/include"
  cp "$work/configured/tssample.pc" "$work/moved/$deep/pkgconfig/"
  for variable in libdir=$deep includedir=include; do
    path=$(PKG_CONFIG_PATH=$work/moved/$deep/pkgconfig pkg-config --variable="${variable%%=*}" tssample)
    [ "$(cd "$path" && pwd)" = "$work/moved/${variable#*=}" ] || { echo "$deep: $variable is $path"; exit 1; }
  done
done

# Python binding beside the installed library.
python=$(dirname "$(find "$work/prefix" -name tssample.py)")
cd "$work"
unset TSSAMPLE_LIBRARY
PYTHONPATH="$python" python3 -c 'import tssample
sampler = tssample.Sampler(4)
print("python", sampler.version(), tssample.load().path)' | grep "$libdir"

# The README's Python example as it is printed there.
# shellcheck disable=SC2016
sed -n '/^```python/,/^```$/{/^```/!p}' "$readme" >engine.py
PYTHONPATH="$python" python3 engine.py | grep '^request 12: token 5, '
echo "installed and used from CMake, plain cc and Python"
