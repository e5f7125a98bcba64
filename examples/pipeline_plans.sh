#!/usr/bin/env bash
# Plans the stages of many pipelines (pipeline_stages.py) on 1, 2 and 4 processes, each time from the
# beginning, and prints the two tables of docs/distributed.md. With --all there are 3,024 stages instead of 48,
# of 80 to 2,700 ops, which take about 200 s of a core for each number of processes.
#
#   examples/pipeline_plans.sh TARN [--all]
set -euo pipefail
tarn=$1
stages=$(dirname "$0")/pipeline_stages.py
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

what=(--stages 4 --microbatches 8,32 --tensor-parallel 1,8 --hidden 4096 --length 2048)
[ "${2:-}" != --all ] ||
    what=(--stages 2,4,8 --microbatches 8,16,32 --tensor-parallel 1,2,4,8 --hidden 2048,4096 --length 1024,2048,4096)
python3 "$stages" "$work/graphs" "${what[@]}" --layers 16 >"$work/list"

echo "| processes | graphs | distinct | seconds | plans a second |"
echo "|---:|---:|---:|---:|---:|"
for processes in 1 2 4; do
    rm -rf "$work/plans"
    begin=$(date +%s.%N)
    for ((i = 0; i < processes; i++)); do
        "$tarn" plan --batch "$work/list" -o "$work/plans" --share $i/$processes --threads 1 --json >"$work/share.$i" &
    done
    wait
    end=$(date +%s.%N)
    distinct=$(find "$work/plans" -type f | wc -l)
    awk -v n=$processes -v graphs="$(wc -l <"$work/list")" -v distinct="$distinct" -v t="$end" -v s="$begin" \
        'BEGIN { printf "| %d | %d | %d | %.1f | %.0f |\n", n, graphs, distinct, t - s, distinct / (t - s) }'
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
print("Arena of each stage in GiB, for 4 stages, hidden size 4,096, 2,048 tokens, 16 layers:\n")
print("| schedule | microbatches | tensor parallel | stage 0 | stage 1 | stage 2 | stage 3 |")
print("|---|---:|---:|---:|---:|---:|---:|")
for schedule in ("1f1b", "interleaved", "zero-bubble"):
    for microbatches, t in ((8, 1), (32, 1), (32, 8)):
        arenas = [rows[schedule, 4, stage, microbatches, t, 4096, 2048]["footprint_bytes"] for stage in range(4)]
        print(f"| {schedule} | {microbatches} | {t} | " + " | ".join(f"{a / 2**30:.2f}" for a in arenas) + " |")
P
