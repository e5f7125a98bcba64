#!/usr/bin/env bash
# Fuzzes: builds with clang, the address and the undefined behaviour sanitizer, replays what was found before
# (tests/data/fuzz), and runs every fuzzer for some time, as many at once as there are cores (MESON_TESTTHREADS
# says otherwise). The last lines are the campaign's and
# "N passed, N failed, N skipped".
#
#   tests/fuzz/run.sh BUILD SECONDS     of each fuzzer, in this build folder
#   TARN_CAMPAIGN=60 tests/fuzz/run.sh BUILD     so many minutes in all
#
# BUILD/tests/fuzz keeps the corpus for the next run, and inputs that ended a fuzzer; the log says how to repeat
# one. What is mended goes to tests/data/fuzz/TARGET, as small as it gets.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:?usage: run.sh BUILD SECONDS}
fuzzers=7
export TARN_FUZZ_SECONDS=${2:-60}
[ -z "${TARN_CAMPAIGN:-}" ] || TARN_FUZZ_SECONDS=$((TARN_CAMPAIGN * 60 / fuzzers))

if [ ! -e "$build/build.ninja" ]; then
    CC=clang CXX=clang++ meson setup "$build" -Dtests=enabled -Dfuzz=enabled -Dtools=disabled -Dcuda=disabled \
        -Doptimization=1 -Dc_args=-g1 -Db_sanitize=address,undefined -Db_lundef=false >/dev/null
fi
status=0
meson test -C "$build" --suite fuzz --print-errorlogs || status=1
grep -h '^# campaign' "$build/meson-logs/testlog.txt" || status=1
python3 tests/count.py "$status" "$build/meson-logs/testlog.json"
