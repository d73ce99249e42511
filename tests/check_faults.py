# SPDX-License-Identifier: Apache-2.0
"""Checks tests/FAULTS_TABLE.md: every id of FAULTS.md has a row, every test that a row names is in its file and has
been run by tests/run.sh since its program was built, and every program that it names for the GPU holds that test and is
run by tests/run_gpu.sh. Usage: check_faults.py BUILD_DIRECTORY, after the parts of tests/run.sh that run the tests."""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
IDS = [f"{letter}{i}" for letter, n in (("A", 7), ("B", 12), ("C", 10), ("D", 6), ("E", 7), ("F", 4))
       for i in range(1, n + 1)]
# The folders of Catch2 tests, their programs, and the parts of tests/run.sh.
PROGRAMS = {"tests/kernels": ("kernel_tests", "kernels"), "tests/stats": ("stats_tests", "stats"),
            "tests/unit": ("unit_tests", "unit")}
# Files of tests that are for the GPU alone, and their programs.
GPU_FILES = {"tests/gpu/capture_test.cpp": "capture_test", "tests/gpu/stream_test.cpp": "stream_test",
             "tests/gpu/huge.cpp": "compare"}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def log_of(part, program):
    """What tests/run.sh kept of a part, if it is of the program as it is now; else ""."""
    log = os.path.join(ROOT, "build", part + ".log")
    if not os.path.exists(program) or not os.path.exists(log) or os.path.getmtime(log) < os.path.getmtime(program):
        return ""
    return read(log)


def cpu_failure(path, name, build):
    """What is wrong with a row's file and test; None if nothing."""
    folder, file = os.path.split(path)
    if folder in PROGRAMS:
        program, part = PROGRAMS[folder]
        if f'TEST_CASE("{name}"' not in read(path):
            return f"{path} has no test {name!r}"
        # One line for each test that was run: Catch2's "-d yes".
        was_run = re.search(rf"^[\d.]+ s: {re.escape(name)}$", log_of(part, f"{build}/tests/{program}"), re.M)
    elif path == f"tests/capi/{name}.c":
        part = name.replace("_", "-")
        was_run = re.search(r"^[1-9]\d* passed, 0 failed$", log_of(part, f"{build}/tests/{name}"), re.M)
    else:
        return f"{path} is no file of tests, or not of the program {name}"
    return None if was_run else f"{name!r} was not run: sh tests/run.sh {part}"


def gpu_failure(path, gpu, run_gpu):
    """What is wrong with a row's last column; None if nothing."""
    if gpu in [program for program, _ in PROGRAMS.values()]:
        if PROGRAMS.get(os.path.dirname(path), [""])[0] != gpu:
            return f"{gpu} has no test of {path}"
        # Where a file can name the CPU alone, the same test does not run on the GPU.
        if "TS_DEVICE_CPU" in read(path):
            return f"{path} names TS_DEVICE_CPU, so it does not run on a GPU"
        whole = re.search(rf"^on_gpu \S+ {gpu}$", run_gpu, re.M)
        return None if whole else f"run_gpu.sh does not run all of {gpu}"
    file, _, words = gpu.partition(": ")
    if file not in GPU_FILES:
        return f"{gpu!r}: neither a program nor a file of GPU tests"
    # Within quotes: what the program says, not what a comment does.
    if not re.search(rf'"[^"\n]*{re.escape(words)}', re.sub("//.*", "", read(file))):
        return f"{file} does not say {words!r}"
    run = re.search(rf'^part .*"\$prebuilt/{GPU_FILES[file]}"', run_gpu, re.M)
    return None if run else f"run_gpu.sh does not run {GPU_FILES[file]}"


def main():
    build = os.path.join(ROOT, sys.argv[1])
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
            failure = cpu_failure(path, name, build)
            if failure:
                failures.append(f"{fault}: {failure}")
        if gpu == "-":
            print(f"{fault}: not tested on a GPU")
        else:
            on_gpu += 1
            failure = gpu_failure(path, gpu, run_gpu)
            if failure:
                failures.append(f"{fault}: {failure}")
    print("\n".join(failures))
    print(f"of {len(IDS)} ids {on_cpu} have a test on the CPU that was run and {on_gpu} on a GPU, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
