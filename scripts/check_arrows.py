#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the includes of the tree against scripts/arrows.txt; prints one line for each that is not
allowed and ends with 1 when there is one."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "scripts" / "arrows.txt"
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
# A clock, a sleep or hidden chance in a folder that must have none.
HIDDEN = re.compile(r"::now\(\)|\bsleep_for\b|\bsleep_until\b|\brandom_device\b|\bgetenv\b")


def read_table():
    """The table as (arrows, libraries, pure folders, impure headers)."""
    arrows, libraries, pure, impure = {}, {}, set(), []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        line = line.split("#", 1)[0].strip()
        if not line:
            continue
        name, rest = line.split(":", 1)
        if name == "pure":
            pure = set(rest.split())
        elif name == "impure":
            impure = [header.strip("<>") for header in rest.split()]
        elif name.startswith("<"):
            libraries[name.strip("<>")] = set(rest.split())
        else:
            arrows[name] = set(rest.split())
    return arrows, libraries, pure, impure


def matches(header, pattern):
    return header.startswith(pattern) if pattern.endswith("/") else header == pattern


def cpp_files(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp"):
                yield path


def check_file(path, table, complain):
    arrows, libraries, pure, impure = table
    parts = path.relative_to(ROOT).parts
    folder = parts[1] if parts[0] == "src" else parts[0]
    if parts[0] == "src" and folder not in arrows:
        complain(path, 1, f"src/{folder} is not in the table of arrows")
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if folder in pure and HIDDEN.search(line.split("//", 1)[0]):
            complain(path, number, f"{folder} is pure: time and chance are arguments")
        found = INCLUDE.match(line)
        if not found:
            continue
        quote, header = found.groups()
        for pattern, allowed in libraries.items():
            if matches(header, pattern) and folder not in allowed:
                where = " ".join(sorted(allowed))
                complain(path, number, f"<{header}> may only be included in: {where}")
        if folder in pure and any(matches(header, pattern) for pattern in impure):
            complain(path, number, f"{folder} is pure: it cannot include <{header}>")
        is_beside = quote == '"' and "/" not in header and (path.parent / header).exists()
        if parts[0] == "src" and is_beside:
            complain(path, number, f'write "{folder}/{header}": paths begin at src/ or include/')
        target = header.split("/")[0]
        if quote == '"' and target in arrows:
            check_arrow(path, number, (parts[0], folder, target), arrows, complain)


def check_arrow(path, number, arrow, arrows, complain):
    top, folder, target = arrow
    if top == "include":
        complain(path, number, f"a public header cannot include src/{target}")
    elif top == "src" and target != folder and target not in arrows[folder]:
        complain(path, number, f"no arrow from {folder} to {target} is in the table")


def check_uses(table, complain):
    """USES of each folder's CMakeLists.txt."""
    arrows = table[0]
    for path in sorted((ROOT / "src").glob("*/CMakeLists.txt")):
        text = path.read_text(encoding="utf-8")
        folder = path.parent.name
        uses = re.search(r"\bUSES\s+([a-z_\s]+?)\s*(?:LINKS|\))", text)
        for target in uses.group(1).split() if uses else []:
            if target not in arrows.get(folder, set()):
                complain(path, 1, f"USES {target}: the table has no arrow from {folder} to it")


def check_order(table, complain):
    """An arrow points to a folder that stands further up, so there is no circle."""
    seen = set()
    for folder, targets in table[0].items():
        for target in sorted(targets - seen):
            complain(TABLE, 1, f"{folder}: {target} must stand above it in the table")
        seen.add(folder)


def main():
    problems = []

    def complain(path, number, text):
        problems.append(f"{path.relative_to(ROOT)}:{number}: {text}")

    table = read_table()
    check_order(table, complain)
    check_uses(table, complain)
    for path in cpp_files("include", "src", "apps", "tests", "bench"):
        check_file(path, table, complain)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
