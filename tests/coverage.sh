#!/usr/bin/env bash
# Measures with gcovr how much of streams, planner, runtime and cli the tests reach. Prints totals, a
# table by folder, and where coverage must be complete each branch that is never taken; last the lines
# for tests/campaign.sh. Exits 1 when a test fails, or a figure is below its limit (coverage.py).
#
#   tests/coverage.sh [BUILD]     BUILD: build-coverage, made when it is not there
#
# How it counts:
#   * Optimization 1 without inlining: a branch of the source is one branch of the program, and the suites
#     end within minutes. Counters are atomic, since suites have threads; only these folders have some.
#   * Every item of a region is an allocation, as under the address sanitizer, so that each can fail.
#   * Tests draw a 32nd of their random graphs. What only the suites left out below reach counts as missed.
#   * Left out of the count: the failing side of assert(), and lines marked GCOV_EXCL_LINE, whose comment
#     says why nothing gets there.
#   * gcov works counts out from others; one that comes out negative, where a process ended inside of a
#     function, is left out with a warning.
#   * CUDA runs on the stand-in (tests/fake_cudart). OpenCL is an example, none of these folders.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build-coverage}
unset TARN_CAMPAIGN TARN_GRAPHS # the short versions of all tests
SECONDS=0

tests/setup.sh tests coverage

flags="-g1 -fno-inline -fprofile-update=atomic -fprofile-filter-files=/(streams|planner|runtime|cli)/ -DFEW_DRAWS -DITEMS_APART=true"
options=(-Dtests=enabled -Db_coverage=true -Doptimization=1 "-Dc_args=$flags" "-Dcpp_args=$flags"
    -Dcuda=disabled -Dopencl=disabled -Dstarpu=disabled -Dtrain=disabled)
if [ -e "$build/build.ninja" ]; then
    meson configure "$build" "${options[@]}"
else
    meson setup "$build" "${options[@]}" >/dev/null
fi
meson compile -C "$build" >/dev/null
find "$build" -name '*.gcda' -delete

# Left out: what searches longest for what the others find too, what looks at texts, at other builds and through a
# browser or PyTorch, and commands whose calls fail, those that write the counters too (failing_files and memory
# have them in the process).
left_out='style documents reference required exhaustive limits lowest budget_search anytime quality figures cross
embed_ways hpp hpp_plain failing_calls browser torch'
read -ra suites < <(meson introspect --tests "$build" | python3 -c '
import json, sys
print(*(test["name"] for test in json.load(sys.stdin) if test["name"] not in sys.argv[1:]))' $left_out)
status=0
meson test -C "$build" --no-rebuild --print-errorlogs -t 10 "${suites[@]}" || status=1

gcovr -j "$(nproc)" --gcov-ignore-parse-errors --root . --object-directory "$build" --filter 'streams/' --filter 'planner/' --filter 'runtime/' \
    --filter 'cli/' --exclude-throw-branches --exclude-unreachable-branches \
    --exclude-branches-by-pattern '\s*assert\(.*' --json "$build/coverage.json" "$build"
python3 tests/coverage.py "$build/coverage.json" "$SECONDS" || status=1
exit $status
