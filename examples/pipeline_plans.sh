#!/usr/bin/env bash
# Plans the stages of many pipelines (pipeline_stages.py) on 1, 2 and 4 processes, each time from the
# beginning, and prints the two tables of docs/distributed.md. With --all there are 3,024 stages instead of 48,
# of 80 to 2,700 ops, which take about 25 minutes of a core for each number of processes; --every N takes every N-th of them.
# Processor seconds are those of all processes together. With --effort no clock ends a search, so plans and processor
# seconds are those of a machine that has nothing else to do.
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
for processes in 1 2 4; do
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
import sys

rows = {}
for path in sys.argv[1:]:
    for plan in json.load(open(path))["plans"]:
        name = re.search(r"([^/]*)\.p(\d+)s(\d+)\.m(\d+)\.t(\d+)\.h(\d+)\.l(\d+)\.json$", plan["graph"]).groups()
        rows[name[0], *map(int, name[1:])] = plan
optimal = sum(p["footprint_bytes"] == p["bound_bytes"] for p in rows.values())
print(f"{optimal} of {len(rows)} plans meet their lower bound; the worst is "
      f"{100 * max(p['footprint_bytes'] / p['bound_bytes'] - 1 for p in rows.values()):.2f} % above.\n")
shapes = [(schedule, microbatches, t) for schedule in ("1f1b", "interleaved", "zero-bubble")
          for microbatches, t in ((8, 1), (32, 1), (32, 8))]
stages = {shape: [rows.get((shape[0], 4, stage, *shape[1:], 4096, 2048)) for stage in range(4)] for shape in shapes}
if not all(map(all, stages.values())):
    sys.exit()  # --every left some out
print("Arena of each stage in GiB, for 4 stages, hidden size 4,096, 2,048 tokens, 16 layers:\n")
print("| schedule | microbatches | tensor parallel | stage 0 | stage 1 | stage 2 | stage 3 |")
print("|---|---:|---:|---:|---:|---:|---:|")
for (schedule, microbatches, t), plans in stages.items():
    print(f"| {schedule} | {microbatches} | {t} | " + " | ".join(f"{plan['footprint_bytes'] / 2**30:.2f}" for plan in plans) + " |")
P
