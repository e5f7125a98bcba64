#!/usr/bin/env python3
"""Is a CSV file an answer to a packing instance? Looks at every pair of rows, and shares nothing with Tarn.

    validate_intervals.py INSTANCE ANSWER [CAPACITY]
"""
import csv
import itertools
import sys

KEYS = ("id", "lower", "upper", "size")


def rows_of(path):
    with open(path, newline="") as file:
        return [{key: value if key == "id" else int(value) for key, value in row.items()} for row in csv.DictReader(file)]


def meet(a, b):
    return a["lower"] < b["upper"] and b["lower"] < a["upper"]


def touch(a, b):
    return a["offset"] < b["offset"] + b["size"] and b["offset"] < a["offset"] + a["size"]


def violations(instance, answer, capacity):
    if [[row[key] for key in KEYS] for row in instance] != [[row[key] for key in KEYS] for row in answer]:
        yield "the answer is not one to this instance"
    for row in answer:
        if row["offset"] < 0 or row["offset"] + row["size"] > capacity:
            yield f"buffer {row['id']} does not fit into {capacity}"
        if row["offset"] % row.get("alignment", 1) != 0:
            yield f"buffer {row['id']} is misaligned"
    for a, b in itertools.combinations(answer, 2):
        if meet(a, b) and touch(a, b):
            yield f"buffers {a['id']} and {b['id']} share bytes while both are alive"


def main():
    instance, answer = rows_of(sys.argv[1]), rows_of(sys.argv[2])
    capacity = int(sys.argv[3]) if len(sys.argv) > 3 else sys.maxsize
    wrong = list(violations(instance, answer, capacity))
    print("\n".join(wrong[:20]) or "valid")
    sys.exit(bool(wrong))


main()
