#!/usr/bin/env bash
# Every table about bounds, placement and budgets, in one run: real graphs, packing instances, synthetic
# graphs of any size, and whether plans depend on the number of threads. Prints Markdown, and writes
# the same rows as CSV, a file a table.
#
#   tests/bench/tables.sh [--build FOLDER] [--csv FOLDER] [--same FILE]... GRAPHS [INSTANCES]
#
# GRAPHS: a folder of graphs; INSTANCES: a folder of packing instances whose names end in
# ".CAPACITY.csv", or in ".csv" where the heaviest antichain is the capacity. Default: build, and no
# CSV. --same: a file whose plans must be the same every time, beside those of examples. Build with
# -Dbuildtype=release and leave the machine alone meanwhile.
set -euo pipefail
shopt -s nullglob extglob
build=build csv='' same=()
while [[ ${1:-} == --* ]]; do
    case $1 in
    --build) build=$2 ;;
    --csv) csv=$2 ;;
    --same) same+=("$2") ;;
    *) break ;;
    esac
    shift 2
done
graphs=${1:?usage: tables.sh [--build FOLDER] [--csv FOLDER] [--same FILE]... GRAPHS [INSTANCES]}
instances=${2:-}
bench=$build/tests/bench

# table NAME TITLE COMMAND...: prints a table as the command does, and keeps its rows as CSV.
table() {
    local name=$1 title=$2
    shift 2
    echo
    echo "## $title"
    echo
    "$@" | tee >(if [ -n "$csv" ]; then to_csv >"$csv/$name.csv"; else cat >/dev/null; fi)
}

# The rows of Markdown tables as CSV; cells with commas in quotes.
to_csv() {
    grep '^|' | grep -v '^|[-:|]*$' | sed -E 's/^\| *//; s/ *\|$//' |
        awk -F ' *\\| *' '{
            for (i = 1; i <= NF; i++) {
                cell = $i
                if (cell ~ /[",]/) { gsub(/"/, "\"\"", cell); cell = "\"" cell "\"" }
                printf "%s%s", cell, i < NF ? "," : "\n"
            }
        }'
}

# Plans of a graph by 20 runs on 1, 2, 4 and 8 threads: how many differ from the first.
same_plans() {
    local work graph reference different threads
    work=$(mktemp -d)
    echo "| graph | plans | different |"
    echo "|---|--:|--:|"
    for graph in "$@"; do
        reference='' different=0
        for threads in 1 2 4 8; do
            for _ in {1..20}; do
                "$build/tarn" plan "$graph" --threads "$threads" --effort 50 -o "$work/plan" \
                    >/dev/null 2>&1
                [ "$reference" ] || reference=$(sha256sum <"$work/plan")
                [ "$reference" = "$(sha256sum <"$work/plan")" ] || different=$((different + 1))
            done
        done
        echo "| $(basename "$graph") | 80 | $different |"
    done
    rm -r "$work"
}

[ -z "$csv" ] || mkdir -p "$csv"
echo "# Bounds, placement and budgets"
echo
echo "Made by \`tests/bench/tables.sh\` on $(date -u +%F), $(nproc) cores," \
    "$(sed -nE 's/^model name[^:]*: //p' /proc/cpuinfo | head -1); load before: $(cut -d' ' -f1 /proc/loadavg)."

table proof "Real graphs" "$bench/proof_bench" "$graphs"
if [ -n "$instances" ]; then
    table exact "Packing instances" "$bench/exact_bench" "$instances"/*.+([0-9]).csv
    table exact_load "Packing instances at their greatest load, ten seconds" \
        "$bench/exact_bench" --seeds 1 --seconds 10 "$instances"/!(*.+([0-9])).csv
fi
table buckets "Large contiguous buckets" "$bench/scale_bench" buckets:1500x4 buckets:5000x4 buckets:20000x6
table scale "Many storages" "$bench/scale_bench"
table scale_5_s "Many storages, five seconds" "$bench/scale_bench" --seconds 5 \
    dnn:1000000x6 chain:1000000x6 uncoupled:1000000x6 chain:1000000x55
examples=$(dirname "$0")/../../examples
for kind in least ten-percent ablation curve; do
    table "budget_$kind" "Memory against time: $kind" "$bench/budget_bench" $kind "$examples/costs.csv" "$graphs"
done
table same "The same plan every time" same_plans "$examples"/graphs/*.json* "${same[@]}"
