"""Puts the figures of one part of the campaigns into the table of docs/trust.md.

trust_table.py DOCUMENT PART LINES: LINES has "# campaign | WHAT | RUNS | SECONDS | FOUND" lines. Rows of the
same part are replaced; those of others stay. Each row says when, with which commit (+: changed files) and where.
"""
import datetime
import os
import platform
import re
import subprocess
import sys

BEGIN, END = "<!-- campaign: begin -->", "<!-- campaign: end -->"
HEAD = "| part | what | runs | seconds | found | day, commit, machine |\n|---|---|--:|--:|---|---|\n"


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def stamp():
    changed = "+" if output_of("git", "status", "--porcelain", "--untracked-files=no", "--", ":!docs/trust.md") else ""
    compiler = re.sub(r" \(.*?\)", "", (output_of("cc", "--version").splitlines() or ["?"])[0]).replace("cc ", "gcc ")
    return "%s, %s%s, %d %s cores, %s" % (datetime.date.today(), output_of("git", "rev-parse", "--short", "HEAD"),
                                          changed, os.cpu_count(), platform.machine(), compiler)


def main(document, part, lines):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN)
    table, tail = rest.split(END)
    rows = [row for row in table.strip().split("\n")[2:] if row and row.split(" | ")[0] != "| " + part]
    when = stamp()
    with open(lines, encoding="utf-8", errors="replace") as file:
        for line in file:
            _, what, runs, seconds, found = (field.strip() for field in line.strip().split("|", 4))
            count = "{:,}".format(int(runs)) if runs.isdigit() else runs
            rows.append("| %s | %s | %s | %s | %s | %s |" % (part, what, count, seconds, found.replace("|", "/"), when))
    with open(document, "w", encoding="utf-8") as file:
        file.write(head + BEGIN + "\n" + HEAD + "".join(row + "\n" for row in sorted(rows)) + END + tail)


if __name__ == "__main__":
    main(*sys.argv[1:])
