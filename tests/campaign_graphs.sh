#!/usr/bin/env bash
# A part of the long campaigns: three checked iterations of every multi-stream graph of a folder that fits into
# the memory that is free. Prints a table (Markdown); exits 1 when any run fails. With transforms, all
# graphs are run, and every plan file is verified once more against the graph that was given, whether
# it can be run here or not.
#
#   tests/campaign_graphs.sh FOLDER [TARN [PATTERN]]     TARN: build/tarn, PATTERN: *.json*
#   TRANSFORMS="--reorder --couple" tests/campaign_graphs.sh ...   plans of transformed graphs
#   TARN_CAMPAIGN=10 tests/campaign_graphs.sh ...     begins none after five minutes, half of that; in a shuffled order
#   ITERATIONS=1 tests/campaign_graphs.sh ...
#   SDK=build/examples/custom_sdk tests/campaign_graphs.sh ...     the same on an OpenCL device
set -u
folder=${1:?usage: campaign_graphs.sh FOLDER [TARN [PATTERN]]}
tarn=${2:-build/tarn}
pattern=${3:-*.json*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 left_out=0 late=0 faults=

# field NAME: its value in the last report.
field() { sed -nE "s/.*\"$1\": \"?([^,\"}]*).*/\1/p" "$work/report" | head -1; }

mib() { echo $(($1 >> 20)); }

# Kernel, page tables and the process itself need some of what is free.
free_bytes() {
    local kib
    kib=$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)
    echo $((kib * 1024 / 10 * 9))
}

# fault GRAPH TEXT: a row that says what went wrong.
fault() {
    failed=$((failed + 1))
    faults+="${faults:+, }$(basename "$1")"
    row "$1" "$2"
}

# row GRAPH RESULT: one line of the table, from the last report.
row() {
    echo "| $(basename "$1") | $streams | $ops | $(mib "$footprint") | $(mib "$persistent") |" \
        "$checked | $speed | $seconds | $2 |"
}

check_graph() {
    local graph=$1 needed code
    streams=- ops=- footprint=0 persistent=0 checked=- speed=- seconds=-
    read -ra transforms <<<"${TRANSFORMS:-}"
    if ! "$tarn" plan "$graph" "${transforms[@]}" ${SDK:+--alignment 128} -o "$work/plan" --json >"$work/report" 2>"$work/errors"; then
        fault "$graph" "$(cat "$work/errors")"
        return
    fi
    streams=$(field streams) ops=$(field ops)
    footprint=$(field footprint_bytes) persistent=$(field persistent_bytes)
    [ -n "${TRANSFORMS:-}" ] || [ "$streams" -gt 1 ] || return
    if [ -n "${TRANSFORMS:-}" ] && ! "$tarn" verify "$graph" "$work/plan" >"$work/errors" 2>&1; then
        fault "$graph" "rejected: $(head -1 "$work/errors")"
        return
    fi
    needed=$((footprint + persistent))
    if [ $needed -gt "$(free_bytes)" ]; then
        left_out=$((left_out + 1))
        row "$graph" "left out: needs $(mib $needed) MiB"
        return
    fi
    if [ -n "${SDK:-}" ]; then
        "$SDK" "$graph" "$work/plan" "${ITERATIONS:-3}" >"$work/report" 2>"$work/errors"
    else
        "$tarn" run "$graph" "$work/plan" --check --iterations "${ITERATIONS:-3}" --json >"$work/report" 2>"$work/errors"
    fi
    code=$?
    if [ $code = 0 ]; then
        passed=$((passed + 1))
        checked=$((($(field read_bytes) + $(field written_bytes)) / 1000000000))
        speed=$(field gb_per_s) seconds=$(field run | awk '{ printf "%.1f", $1 / 1000 }')
        row "$graph" ok
    elif [ $code = 8 ] && [ -n "${SDK:-}" ]; then
        left_out=$((left_out + 1))
        row "$graph" "left out: $(cat "$work/errors")"
    else
        fault "$graph" "exit $code: $(cat "$work/errors")"
    fi
}

echo "| graph | streams | ops | arena MiB | persistent MiB | GB checked | GB/s | s | result |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|---|"
shuffled() { if [ -n "${TARN_CAMPAIGN:-}" ]; then shuf -z --random-source=<(yes); else cat; fi; }
while IFS= read -rd '' graph; do
    if [ -n "${TARN_CAMPAIGN:-}" ] && [ "$SECONDS" -ge $((30 * TARN_CAMPAIGN)) ]; then
        late=$((late + 1))
    elif [ -f "$graph" ]; then
        check_graph "$graph" </dev/null
    fi
done < <(printf '%s\0' "$folder"/$pattern | shuffled)
echo
echo "$passed passed, $failed failed, $left_out left out for memory, $late for time"
echo "# campaign | graphs${SDK:+ on OpenCL}, ${ITERATIONS:-3} checked iterations${TRANSFORMS:+, $TRANSFORMS}$([ $late = 0 ] || echo "; $late more were left out for time") | $((passed + failed)) | $SECONDS | ${faults:-0}"
[ $failed = 0 ]
