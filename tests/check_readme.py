# SPDX-License-Identifier: Apache-2.0
"""The README's examples are the tested files: each ```LANG block that follows `<!-- FILE -->` is that file's text
(or the part of it between two lines), and each command it names exists."""
import json
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def squeeze(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def check_installing(readme):
    """What the README says of building and installing is so: version, presets, and where the binding goes."""
    version = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", read("CMakeLists.txt"))[1]
    presets = {preset["name"] for preset in json.loads(read("CMakePresets.json"))["configurePresets"]}
    named = set(re.findall(r"--preset (\w+)", readme)) | set(re.findall(r"preset `(\w+)`", readme))
    wrong = [f"README does not say CMake {version}"] if f"CMake {version}" not in readme else []
    wrong += [f"README names the preset {name}, which there is not" for name in named - presets]
    for words in ("pkg-config --cflags --libs tssample", "ldconfig", "PYTHONPATH=/usr/local/share/tssample/python"):
        wrong += [f"README does not say {words}"] if words not in readme else []
    if "DATADIR}/tssample/python" not in read("capi/install.cmake"):
        wrong.append("the binding is installed elsewhere than README says")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return len(wrong)


def main():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    blocks = re.findall(r"<!-- cut from (\S+) -->\n```\w+\n(.*?)```", readme, re.S)
    failures = 0
    for path, block in blocks:
        with open(os.path.join(ROOT, path), encoding="utf-8") as file:
            text = "\n".join(squeeze(file.read()))
        if "\n".join(squeeze(block)) not in text:
            print(f"README's block is not in {path}")
            failures += 1
    for command in ("sh capi/examples/run.sh", "sh tests/run.sh"):
        if command not in readme or not os.path.exists(os.path.join(ROOT, command.split()[1])):
            print(f"{command}: not in the README, or no such file")
            failures += 1
    failures += check_installing(readme)
    for path in re.findall(r"\]\(((?!http)[^)#]+)\)", readme):
        if not os.path.exists(os.path.join(ROOT, path)):
            print(f"README links to {path}, which is not there")
            failures += 1
    if len(blocks) < 2:
        print(f"only {len(blocks)} examples are marked as cut from files")
        failures += 1
    print(f"{len(blocks)} examples, {failures} failures")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
