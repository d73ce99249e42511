# SPDX-License-Identifier: Apache-2.0
"""Checks tests/FAULTS_TABLE.md: every id of FAULTS.md has a row, every test that a row names is in its file, and every
program that it names for the GPU holds that test and is run by tests/run_gpu.sh."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
IDS = [f"{letter}{i}" for letter, n in (("A", 7), ("B", 12), ("C", 10), ("D", 6), ("E", 7), ("F", 4))
       for i in range(1, n + 1)]
# Programs that run_gpu.sh starts with TS_TEST_DEVICE=cuda, and the folder of their tests.
PROGRAMS = {"kernel_tests": "tests/kernels/", "stats_tests": "tests/stats/", "unit_tests": "tests/unit/"}
# Files of tests that are for the GPU alone, and their programs.
GPU_FILES = {"tests/gpu/capture_test.cpp": "capture_test", "tests/gpu/stream_test.cpp": "stream_test",
             "tests/gpu/huge.cpp": "compare"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def gpu_failure(path, gpu, run_gpu):
    """What is wrong with a row's last column; None if nothing."""
    if gpu in PROGRAMS:
        if not path.startswith(PROGRAMS[gpu]):
            return f"{gpu} has no test of {path}"
        # Where a file can name the CPU alone, the same test does not run on the GPU.
        if "TS_DEVICE_CPU" in read(path):
            return f"{path} names TS_DEVICE_CPU, so it does not run on a GPU"
        return None if gpu in run_gpu else f"run_gpu.sh does not run {gpu}"
    file, _, words = gpu.partition(": ")
    if file not in GPU_FILES:
        return f"{gpu!r}: neither a program nor a file of GPU tests"
    if words not in read(file):
        return f"{file} has no test {words!r}"
    return None if GPU_FILES[file] in run_gpu else f"run_gpu.sh does not run {GPU_FILES[file]}"


def main():
    table, run_gpu = read("tests/FAULTS_TABLE.md"), read("tests/run_gpu.sh")
    rows = {m[1]: m.groups()[1:] for m in re.finditer(r"^\| (\w\d+) \| (\S+) \| (.*) \| (.*) \|$", table, re.M)}
    failures = [f"{fault}: no row" for fault in IDS if fault not in rows]
    failures += [f"{fault}: not an id" for fault in rows if fault not in IDS]
    on_cpu = on_gpu = 0
    for fault, (path, name, gpu) in rows.items():
        if path == "-":
            print(f"{fault}: not tested on the CPU: {name}")
        else:
            on_cpu += 1
            if name not in read(path):
                failures.append(f"{fault}: {path} has no test {name!r}")
        if gpu == "-":
            print(f"{fault}: not tested on a GPU")
        else:
            on_gpu += 1
            failure = gpu_failure(path, gpu, run_gpu)
            if failure:
                failures.append(f"{fault}: {failure}")
    print("\n".join(failures))
    print(f"of {len(IDS)} ids {on_cpu} have a test on the CPU and {on_gpu} on a GPU, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
