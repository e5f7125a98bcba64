#!/usr/bin/env bash
# Plans the stages of many pipelines (pipeline_stages.py) on 1, 2 and 4 processes, each time from the
# beginning, and prints the tables of docs/distributed.md. With --all there are 3,024 stages instead of 48,
# of 80 to 2,700 ops, which take about 25 minutes of a core for each number of processes; --every N takes every N-th of them.
# Processor seconds are those of all processes together. With --effort no clock ends a search, so plans and processor
# seconds are those of a machine that has nothing else to do.
#
# PROCESSES="1" in the environment: on one process alone.
#
#   examples/pipeline_plans.sh TARN [--all | --every N]
set -euo pipefail
tarn=$1
stages=$(dirname "$0")/pipeline_stages.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

what=(--stages 4 --microbatches 8,32 --tensor-parallel 1,8 --hidden 4096 --length 2048)
every=${3:-1}
[[ ${2:-} != --all && ${2:-} != --every ]] ||
    what=(--stages 2,4,8 --microbatches 8,16,32 --tensor-parallel 1,2,4,8 --hidden 2048,4096 --length 1024,2048,4096)
python3 "$stages" "$work/graphs" "${what[@]}" --layers 16 | awk "NR % $every == 0" >"$work/list"

echo "| processes | graphs | distinct | seconds | plans a second | processor seconds | plans a processor second |"
echo "|---:|---:|---:|---:|---:|---:|---:|"
plan() { # plan PROCESSES: as many at the same time, each its share
    for ((i = 0; i < $1; i++)); do
        "$tarn" plan --batch "$work/list" -o "$work/plans" --share $i/"$1" --threads 1 --effort 1000 --json \
            >"$work/share.$i" 2>"$work/said.$i" &
    done
    wait
}
for processes in ${PROCESSES:-1 2 4}; do
    rm -rf "$work/plans"
    TIMEFORMAT='%R %U %S'
    { time plan $processes; } 2>"$work/time"
    distinct=$(find "$work/plans" -type f | wc -l)
    awk -v n=$processes -v graphs="$(wc -l <"$work/list")" -v distinct="$distinct" '{
        busy = $2 + $3
        printf "| %d | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", n, graphs, distinct, $1, distinct / $1, busy, distinct / busy
    }' "$work/time"
done

echo
python3 - "$work"/share.* <<'P'
import json
import re
import statistics
import sys

rows = {}
for path in sys.argv[1:]:
    for plan in json.load(open(path))["plans"]:
        name = re.search(r"([^/]*)\.p(\d+)s(\d+)\.m(\d+)\.t(\d+)\.h(\d+)\.l(\d+)\.json$", plan["graph"]).groups()
        rows[name[0], *map(int, name[1:])] = plan
optimal = sum(p["footprint_bytes"] == p["bound_bytes"] for p in rows.values())
print(f"{optimal} of {len(rows)} plans meet their lower bound; the worst is "
      f"{100 * max(p['footprint_bytes'] / p['bound_bytes'] - 1 for p in rows.values()):.2f} % above.\n")

groups = {}
for (*stage, _, _, _, _), plan in rows.items():
    groups.setdefault(tuple(stage), []).append(plan)


def three(values):
    return " / ".join(f"{value:.2f}" for value in (min(values), statistics.median(values), max(values)))


print("Of every stage of a schedule, all shapes: minimum / median / maximum.\n")
print("| schedule | stages | stage | plans | proved optimal | footprint, GiB | above the bound, % |")
print("|---|---:|---:|---:|---:|---:|---:|")
for (schedule, stages, stage), plans in sorted(groups.items()):
    gaps = [100 * (plan["footprint_bytes"] / plan["bound_bytes"] - 1) for plan in plans]
    print(f"| {schedule} | {stages} | {stage} | {len(plans)} | {gaps.count(0)} | "
          f"{three([plan['footprint_bytes'] / 2**30 for plan in plans])} | {three(gaps)} |")
print()

shapes = [(schedule, microbatches, t) for schedule in ("1f1b", "interleaved", "zero-bubble")
          for microbatches, t in ((8, 1), (32, 1), (32, 8))]
of_shape = {shape: [rows.get((shape[0], 4, stage, *shape[1:], 4096, 2048)) for stage in range(4)] for shape in shapes}
if not all(map(all, of_shape.values())):
    sys.exit()  # --every left some out
print("Arena of each stage in GiB, for 4 stages, hidden size 4,096, 2,048 tokens, 16 layers:\n")
print("| schedule | microbatches | tensor parallel | stage 0 | stage 1 | stage 2 | stage 3 |")
print("|---|---:|---:|---:|---:|---:|---:|")
for (schedule, microbatches, t), plans in of_shape.items():
    print(f"| {schedule} | {microbatches} | {t} | " + " | ".join(f"{plan['footprint_bytes'] / 2**30:.2f}" for plan in plans) + " |")
P
