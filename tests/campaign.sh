#!/usr/bin/env bash
# All long campaigns by one command. Builds what they need, gives each part its minutes, and writes what it
# did and found into the table of docs/trust.md, where rows of parts that did not run stay as they are.
#
#   tests/campaign.sh [--minutes N] [--graphs FOLDER] [PART...]
#
# --minutes   for each part (10); parts that end by themselves may be quicker
# --graphs    a folder of graphs: for the part of this name, and for tests that take more graphs
# PART        tests      all tests with a long version (LONG_TESTS), or one of them by its name: optimised; and,
#                        unless it is of the suite `release`, a quarter as long under the address and undefined
#                        behaviour sanitizers
#             fuzz       every fuzzer (clang)
#             mutation   one-token mutants of the code that plans depend on; the next call goes on with the rest
#             coverage   lines and branches that the tests reach
#             graphs     checked iterations of every graph of the folder, or of as many as there is time for
#             all of them, if none is named. One that is named and cannot run is a failure
set -euo pipefail
cd "$(dirname "$0")/.."

LONG_TESTS=(exhaustive_plans property damage recompute_oracle recompute_optimum failing_calls signals many_threads)

usage() {
    sed -n '2,17s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

minutes=10
graphs=
asked=()
while [ $# -gt 0 ]; do
    case $1 in
    --minutes)
        minutes=${2:?--minutes needs a number}
        shift 2
        ;;
    --graphs)
        graphs=$(cd "${2:?--graphs needs a folder of graphs}" && pwd)
        shift 2
        ;;
    -*) usage ;;
    *)
        asked+=("$1")
        shift
        ;;
    esac
done
[[ $minutes =~ ^[1-9][0-9]*$ ]] || usage
parts=("${asked[@]}")
[ ${#parts[@]} -gt 0 ] || parts=(tests fuzz mutation coverage graphs)
[ -z "$graphs" ] || export TARN_GRAPHS=$graphs
export TARN_CAMPAIGN=$minutes

tests/setup.sh tests
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
done_parts=() failed=() left_out=()

# build NAME OPTIONS...: configures and compiles build-NAME, as tests/run.sh does. False: it does not compile, which
# is a failure of the campaign, but none of the parts that do without it.
build() {
    local folder=build-$1
    shift
    [ -e "$folder/build.ninja" ] || meson setup "$folder" -Dtests=enabled -Dc_args=-g1 -Dcpp_args=-g1 "$@" >/dev/null
    meson compile -C "$folder" >"$work/compiled" || {
        cat "$work/compiled"
        failed+=("$folder")
        return 1
    }
}

# suites_of NAME: of a test; empty if there is no such test.
suites_of() {
    meson introspect --tests build-tests | python3 -c '
import json, sys
for test in json.load(sys.stdin):
    if test["name"] == sys.argv[1]:
        print("-", *test["suite"])  # the optimised build has those of no suite, too' "$1"
}

# leave_out PART WHY: a failure if it was asked for by name.
leave_out() {
    echo "campaign: $1 is left out: $2"
    left_out+=("$1")
    [[ " ${asked[*]} " != *" $1 "* ]] || failed+=("$1")
}

# run PART COMMAND...: collects the campaign's lines of its output (or of the test log that it leaves).
run() {
    local part=$1 status=0 begin=$SECONDS
    shift
    echo "campaign: $part"
    rm -f "$work/log"
    "$@" >"$work/out" 2>&1 || status=$?
    grep -hE '^# campaign \|' "$work/out" "$work/log" >"$work/lines" 2>/dev/null || true
    if [ $status != 0 ]; then
        failed+=("$part")
        tail -n 40 "$work/out"
        if ! grep -qE '\| *[^0 ][^|]*$' "$work/lines"; then
            echo "# campaign | $part | 1 | $((SECONDS - begin)) | failed: $(grep -hE '^not ok' "$work/out" "$work/log" 2>/dev/null |
                head -3 | tr '\n|' '; ')" >>"$work/lines"
        fi
    fi
    cat "$work/lines"
    done_parts+=("$part")
    python3 tests/trust_table.py docs/trust.md "$part" "$work/lines" || failed+=("table of $part")
}

# long_test BUILD NAME MINUTES: ends what goes on for twice that time and half an hour.
long_test() {
    local status=0
    TARN_CAMPAIGN=$3 timeout -k 60 $((120 * $3 + 1800)) meson test -C "$1" "$2" -t 0 --print-errorlogs || status=$?
    cp "$1/meson-logs/testlog.txt" "$work/log"
    return $status
}

run_test() {
    local suites
    suites=$(suites_of "$1")
    if [ -z "$suites" ]; then
        leave_out "$1" "there is no such test"
        return
    fi
    run "$1" long_test build-tests "$1" "$minutes"
    [[ $suites != *release* ]] || return 0
    build address -Doptimization=1 -Dcuda=disabled -Db_sanitize=address,undefined -Db_lundef=false || return 0
    run "$1, sanitized" long_test build-address "$1" $(((minutes + 3) / 4))
}

run_graphs() {
    local status=0
    tests/campaign_graphs.sh "$graphs" build-tests/tarn || status=1
    TRANSFORMS=--reorder ITERATIONS=1 tests/campaign_graphs.sh "$graphs" build-tests/tarn || status=1
    return $status
}

for part in "${parts[@]}"; do
    case $part in
    tests)
        if build tests; then for name in "${LONG_TESTS[@]}"; do run_test "$name"; done; fi
        ;;
    fuzz)
        if ! tests/setup.sh fuzz; then
            leave_out fuzz "clang cannot be had"
        else
            run fuzz tests/fuzz/run.sh build-fuzz
        fi
        ;;
    mutation) run mutation tests/mutation.py ;;
    coverage)
        if ! tests/setup.sh coverage; then
            leave_out coverage "gcovr cannot be had"
        else
            run coverage tests/coverage.sh
        fi
        ;;
    graphs)
        if [ -z "$graphs" ]; then
            leave_out graphs "--graphs names no folder"
        elif build tests; then
            run graphs run_graphs
        fi
        ;;
    *)
        if build tests; then run_test "$part"; fi
        ;;
    esac
done

echo "campaign: ${#done_parts[@]} parts ran, ${#failed[@]} failed${failed[*]:+ (${failed[*]})}, ${#left_out[@]} left out"
[ ${#failed[@]} = 0 ]
