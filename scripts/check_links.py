#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the links of the Markdown files given as arguments: files and anchors that they name
inside the repository must exist. Links to other hosts are left alone."""

import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
OUTSIDE = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]*:")


def visible_lines(path):
    """(number, line) of a file, without fenced code blocks."""
    fence = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and fence is None:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            fence = None
        elif fence is None:
            yield number, line


def anchors(path):
    """The anchors that GitHub gives to a file's headings."""
    found, counts = set(), {}
    for _, line in visible_lines(path):
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*\s*$", line)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
        if not heading:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1))
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        count = counts.get(slug, 0)
        counts[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def problems_of(path, root):
    for number, line in visible_lines(path):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if OUTSIDE.match(target):
                continue
            name, _, anchor = target.partition("#")
            base = root if name.startswith("/") else path.parent
            aim = (base / name.lstrip("/")).resolve() if name else path
            if not aim.exists():
                yield f"{path}:{number}: {target}: there is no such file"
            elif anchor and aim.suffix == ".md" and anchor not in anchors(aim):
                yield f"{path}:{number}: {target}: there is no such heading in {aim.name}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    problems = []
    for name in sys.argv[1:]:
        problems.extend(problems_of(pathlib.Path(name), root))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
