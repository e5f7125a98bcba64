#!/usr/bin/env python3
"""Is a CSV file an answer to a packing instance? Looks at every pair of rows, and shares nothing with Tarn.

    validate_intervals.py INSTANCE ANSWER [CAPACITY]
"""
import csv
import itertools
import sys

KEYS = ("id", "lower", "upper", "size", "gaps")


def rows_of(path):
    with open(path, newline="") as file:
        return [{key: value if key in ("id", "gaps") else int(value) for key, value in row.items()}
                for row in csv.DictReader(file)]


def lives(row):
    """When which bytes of a row are in use: (lower, upper, first byte, byte behind the last), a gap cut out."""
    gaps = []
    for gap in row.get("gaps", "").split():
        steps, _, window = gap.partition("@")
        lower, upper = map(int, steps.split("-"))
        gaps.append((lower, upper, *(map(int, window.split(":")) if window else (0, 0))))
    step = row["lower"]
    for lower, upper, begin, end in sorted(gaps):
        yield step, lower, 0, row["size"]
        yield lower, upper, begin, end
        step = upper
    yield step, row["upper"], 0, row["size"]


def clash(a, b):
    return any(x[0] < y[1] and y[0] < x[1] and a["offset"] + x[2] < b["offset"] + y[3] and b["offset"] + y[2] < a["offset"] + x[3]
               for x in lives(a) for y in lives(b) if x[0] < x[1] and y[0] < y[1] and x[2] < x[3] and y[2] < y[3])


def violations(instance, answer, capacity):
    if [[row.get(key, "") for key in KEYS] for row in instance] != [[row.get(key, "") for key in KEYS] for row in answer]:
        yield "the answer is not one to this instance"
    for row in answer:
        if row["offset"] < 0 or row["offset"] + row["size"] > capacity:
            yield f"buffer {row['id']} does not fit into {capacity}"
        if row["offset"] % row.get("alignment", 1) != 0:
            yield f"buffer {row['id']} is misaligned"
    for a, b in itertools.combinations(answer, 2):
        if clash(a, b):
            yield f"buffers {a['id']} and {b['id']} share bytes while both are alive"


def main():
    instance, answer = rows_of(sys.argv[1]), rows_of(sys.argv[2])
    capacity = int(sys.argv[3]) if len(sys.argv) > 3 else sys.maxsize
    wrong = list(violations(instance, answer, capacity))
    print("\n".join(wrong[:20]) or "valid")
    sys.exit(bool(wrong))


main()
