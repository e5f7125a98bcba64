"""Prints what gcovr found, and judges it; see coverage.sh.

coverage.py REPORT.json SECONDS   Exits 1 when a figure is below its limit.
"""
import collections
import json
import re
import sys

LINES_MIN, BRANCHES_MIN = 95, 90

# Here every branch is taken.
COMPLETE = {
    "loaders": r"streams/(file|text)/.*|streams/base/(escape|utf8)\..*|streams/verify/form\.c"
               r"|planner/transform/implementations/cost_table\.c",
    "verifier": r"streams/verify/.*",
    "checked arithmetic": r"streams/base/checked\.h",
}


class Count:
    """Lines and branches: taken, and there at all."""

    def __init__(self):
        self.lines_taken = self.lines = self.taken = self.branches = 0

    def add(self, line):
        self.lines += 1
        self.lines_taken += line["count"] > 0
        self.branches += len(line["branches"])
        self.taken += sum(branch["count"] > 0 for branch in line["branches"])

    def line_share(self):
        return 100 * self.lines_taken / max(self.lines, 1)

    def branch_share(self):
        return 100 * self.taken / self.branches if self.branches else 100

    def row(self):
        return "%6.1f %% %6d / %-6d %6.1f %% %6d / %-6d" % (
            self.line_share(), self.lines_taken, self.lines,
            self.branch_share(), self.taken, self.branches)


def lines_of(file):
    return [line for line in file["lines"] if not line.get("gcovr/noncode")]


def list_missed(file):
    """Each line with a branch that no test takes: + taken, - not."""
    with open(file["file"]) as source:
        texts = source.read().split("\n")
    for line in lines_of(file):
        if any(branch["count"] == 0 for branch in line["branches"]):
            signs = "".join("+" if branch["count"] else "-" for branch in line["branches"])
            print("  %s:%d: %s  %s" % (file["file"], line["line_number"], signs,
                                       texts[line["line_number"] - 1].strip()))


def main():
    with open(sys.argv[1]) as report:
        files = sorted(json.load(report)["files"], key=lambda file: file["file"])
    total, folders = Count(), collections.defaultdict(Count)
    groups = {name: Count() for name in COMPLETE}
    for file in files:
        members = [total, folders[file["file"].rsplit("/", 1)[0]]]
        members += [groups[name] for name, names in COMPLETE.items() if re.fullmatch(names, file["file"])]
        for line in lines_of(file):
            for count in members:
                count.add(line)
    print("%-20s %26s %26s" % ("", "lines", "branches"))
    for name, count in [*sorted(folders.items()), ("all", total), *groups.items()]:
        print("%-20s %s" % (name, count.row()))
    for name, names in COMPLETE.items():
        if groups[name].taken == groups[name].branches:
            continue
        print("%s: branches that are never taken" % name)
        for file in files:
            if re.fullmatch(names, file["file"]):
                list_missed(file)

    figures = [("lines", total.line_share(), LINES_MIN), ("branches", total.branch_share(), BRANCHES_MIN)]
    figures += [("branches, " + name, count.branch_share(), 100) for name, count in groups.items()]
    for name, share, least in figures:
        found = "0" if share >= least else "below %d %%" % least
        print("# campaign | coverage of %s | %.1f %% | %s | %s" % (name, share, sys.argv[2], found))
    empty = [name for name, count in groups.items() if count.branches == 0]
    return 1 if empty or any(share < least for _, share, least in figures) else 0


sys.exit(main())
