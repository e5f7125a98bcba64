#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. The last line is
# "N passed, N failed, N skipped".
#
#   tests/run.sh                 everything that belongs into every change (under ten minutes)
#   tests/run.sh --with opencl   also parts that not every machine has: opencl, starpu, cross, fuzz, train,
#                                browser, docs, torch, torch-oldest, torch-models, read, gpu (a list by commas). All but the last are installed; what cannot run fails.
#                                TARN_WITH=opencl: installs it too, but goes on where it cannot be had
#   tests/run.sh --long FOLDER   also the long campaigns, over a folder of graphs
#
# Three builds: optimised, where all tests run, with the counts of random and of all small graphs that
# issues and papers ask for; under the address and undefined behaviour sanitizers, where tests draw a
# 32nd (DRAWS in tests/support/random_graph.h) and those of the suite `release` do not run; and under the
# thread sanitizer, where those of the suite `thread` do, without the methods of papers (-Dpapers=false);
# clang makes it, whose OpenMP tells the sanitizer what it orders (Archer). Where clang's OpenMP cannot be had,
# gcc makes it without OpenMP, and the report says so: then one thread searches, and no race of the search is found.
# With `fuzz`, a fourth one of clang's, where every fuzzer runs for 15 seconds (tests/fuzz/run.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

with=()
long=
while [ $# -gt 0 ]; do
    case $1 in
    --with)
        IFS=, read -ra with <<<"${2:?--with needs a list}"
        export TARN_REQUIRE=$2 # what needs a part of it fails where others are skipped
        shift 2
        ;;
    --long)
        long=$(cd "${2:?--long needs a folder of graphs}" && pwd)
        shift 2
        ;;
    *)
        sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
    esac
done

tests/setup.sh tests "${with[@]}"
archer=
if tests/setup.sh archer; then archer=yes; fi
without=
IFS=, read -ra wanted <<<"${TARN_WITH:-}"
for part in "${wanted[@]}"; do
    if tests/setup.sh "$part"; then with+=("$part"); else without+=" $part"; fi
done

# asked PART: as meson wants to know.
asked() { case ,${TARN_REQUIRE:-}, in *,"$1",*) echo enabled ;; *) echo auto ;; esac }

# configure NAME OPTIONS...: of build-NAME.
configure() {
    local folder=build-$1
    shift
    if [ -e "$folder/build.ninja" ]; then
        meson configure "$folder" -Dtests=enabled "$@"
    else
        meson setup "$folder" --werror -Dtests=enabled "$@" >/dev/null || {
            cat "$folder/meson-logs/meson-log.txt"
            return 1
        }
    fi
}

logs=()
status=0
# check NAME ARGUMENTS...: compiles what these tests of build-NAME need, and runs them, as many at a
# time as there are cores.
check() {
    local folder=build-$1
    shift
    meson test -C "$folder" --print-errorlogs "$@" || {
        [ $? != 125 ] || exit 1 # it does not compile
        status=1
    }
    logs+=("$folder/meson-logs/testlog.json")
}

[ -z "$long" ] || export TARN_GRAPHS=$long

# Debug information is for line numbers. Only the first build is optimised: to compile the others so
# would take longer than their tests (C++, whose tests are short, not at all). Nor do they need kernels for a GPU.
lines=(-Dc_args=-g1 -Dcpp_args=-g1 "-Dopencl=$(asked opencl)" "-Dstarpu=$(asked starpu)" "-Dtrain=$(asked train)")
plainly=("${lines[@]}" -Doptimization=1 "-Dcpp_args=-g1 -O0" -Dcuda=disabled)
configure tests "${lines[@]}"
meson compile -C build-tests
check tests
configure address "${plainly[@]}" -Db_sanitize=address,undefined -Db_lundef=false
check address --no-suite release
threaded=("${plainly[@]}" -Dpapers=false -Db_sanitize=thread -Db_lundef=false)
if [ -n "$archer" ]; then
    CC=clang CXX=clang++ configure archer "${threaded[@]}" -Dopenmp=enabled
    check archer --suite thread
else
    configure thread "${threaded[@]}" -Dopenmp=disabled
    check thread --suite thread
fi

if [[ " ${with[*]} " == *" fuzz "* ]]; then
    tests/fuzz/run.sh build-fuzz 15 || status=1
    [ ! -e build-fuzz/meson-logs/testlog.json ] || logs+=(build-fuzz/meson-logs/testlog.json)
fi

if [ -n "$long" ]; then
    tests/campaign_graphs.sh "$long" build-tests/tarn || status=1
    TRANSFORMS=--reorder ITERATIONS=1 tests/campaign_graphs.sh "$long" build-tests/tarn || status=1
fi

[ -n "$archer" ] || echo "run: clang's OpenMP with Archer could not be had: the search ran on one thread under the thread sanitizer"
[ -z "$without" ] || echo "run:$without could not be had (TARN_WITH): tests that need it were skipped"
python3 tests/count.py "$status" "${logs[@]}"
