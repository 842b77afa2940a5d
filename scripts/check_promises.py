#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every test which docs/reliability.md names exists: `Suite.Name` of GoogleTest,
`Class.test_name` of unittest, and names that CTest gives (`mpi.chaos`, `unit.fuzz_spec`)."""

import pathlib
import re
import sys

PAGE = pathlib.Path("docs/reliability.md")
TESTS = pathlib.Path("tests")


def google_tests():
    form = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.MULTILINE)
    for path in TESTS.rglob("*.cpp"):
        for suite, name in form.findall(path.read_text(encoding="utf-8")):
            yield f"{suite}.{name}"


def unit_tests():
    for path in TESTS.rglob("*.py"):
        current = None
        for line in path.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"class (\w+)", line):
                current = found[1]
            elif found := re.match(r"    def (test_\w+)", line):
                yield f"{current}.{found[1]}"


def ctest_names():
    for path in [*TESTS.rglob("CMakeLists.txt"), *TESTS.rglob("*.cmake")]:
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"NAME ([\w.]+)", text)
        for name in re.findall(r"^muster_fuzz\(\s*(\w+)", text, re.MULTILINE):
            yield f"unit.fuzz_{name}"


def main():
    known = {*google_tests(), *unit_tests(), *ctest_names()}
    wrong = named = 0
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells[0] in ("promise", "---"):
            continue
        tests = re.findall(r"`([^`]+)`", cells[-1])
        if not tests:
            wrong += 1
            print(f"{PAGE}:{number}: no test holds this promise")
        for test in tests:
            named += 1
            if test not in known:
                wrong += 1
                print(f"{PAGE}:{number}: there is no test {test}")
    if not wrong:
        print(f"{named} tests")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
