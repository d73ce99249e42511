# SPDX-License-Identifier: Apache-2.0
# What tests/run.sh is made of: running a part, and the parts that are more than one command.

wanted=" $* "
n_passed=0
n_failed=0

# part NAME COMMAND...: runs it, counts it, shows its log if it failed and its last line if not.
part() {
  name=$1
  shift
  [ "$wanted" = "  " ] || case $wanted in *" $name "*) ;; *) return 0 ;; esac
  begin=$(date +%s)
  mkdir -p build
  if "$@" >"build/$name.log" 2>&1; then
    n_passed=$((n_passed + 1))
    echo "$name: passed in $(($(date +%s) - begin)) s: $(grep -v '^ *$' "build/$name.log" | grep -v '^=*$' | tail -n 1)"
  else
    n_failed=$((n_failed + 1))
    # Why: Catch2's lines about tests that took their time ("-d yes", for check_faults.py) hide those about failures.
    grep -v '^[0-9.]* s: ' "build/$name.log" | tail -n 100
    echo "$name: FAILED"
  fi
}

# build PRESET [TARGET ...]
build() {
  preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" -j "$(getconf _NPROCESSORS_ONLN)" ${1:+--target "$@"}
}

# The GPU tests compile, and say skipped where there is no GPU.
build_gpu() {
  # Two of the architectures: they compile all there is to compile (with and without programmatic launch).
  cmake --preset release -B build/cuda -DTSSAMPLE_BUILD_GPU=ON "-DCMAKE_CUDA_ARCHITECTURES=80-real;90-real" &&
    cmake --build build/cuda -j "$(getconf _NPROCESSORS_ONLN)" && sh tests/check_gpu_skips.sh build/cuda &&
    sh tests/capi/check_exports.sh build/cuda/libtssample.so
}

# in_build PRESET PROGRAM [ARGUMENT ...]
in_build() {
  program=build/$1/tests/$2
  shift 2
  "$program" "$@"
}

# The kernels on the host, in two programs at once. Without the tests that take minutes there and run elsewhere.
emulated() {
  in_build dev emulator/emulated_compare --rows 1200 --large 40 --huge 0 --settings 6 --threads 1 \
    --real tests/data/lm_rows_8x128256.bf16 >build/emulated_compare.log 2>&1 &
  compare=$!
  TS_TEST_DEVICE=cuda in_build dev emulator/emulated_kernel_tests \
    "~B12*" "~B1 *" "~B3 *" "~E4*" "~verified chains*" "~generated rows*" "~large generated*" "~batches of many*" \
    "~real rows*" "~every step takes*"
  tests=$?
  wait $compare
  compare=$?
  cat build/emulated_compare.log
  [ $tests = 0 ] && [ $compare = 0 ]
}

check_format() {
  # Why the count: where git refuses the folder there are no files, and none are always formatted.
  [ "$(git ls-files '*.h' '*.cpp' | wc -l)" -gt 50 ] &&
    git ls-files '*.h' '*.cpp' '*.c' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run --Werror &&
    echo "all files are formatted"
}

# What a folder of src may include.
check_layers() {
  for layers in "contract" "core|contract" "cpu|core|contract" "cuda|core|contract"; do
    if grep -n '#include "[^"]*/' "src/${layers%%|*}"/* | grep -vE "#include \"($layers)/"; then
      echo "src/${layers%%|*} includes others than $layers"
      return 1
    fi
  done
  echo "includes go one way"
}

# The README's examples, from C and from Python, say the same.
quickstart() {
  cc -std=c99 -Wpedantic -Wall -Werror -Iinclude capi/examples/quickstart/quickstart.c -o build/quickstart \
    -L"$1" -ltssample -Wl,-rpath,"$PWD/$1" &&
    build/quickstart >build/quickstart.c.txt && cat build/quickstart.c.txt &&
    TSSAMPLE_LIBRARY="$PWD/$1/libtssample.so.0" python3 capi/examples/quickstart/quickstart.py >build/quickstart.py.txt &&
    diff build/quickstart.c.txt build/quickstart.py.txt &&
    grep -q '^request 12: token 5, ' build/quickstart.c.txt # the greedy row's answer, by eye
}
