#!/usr/bin/env bash
# The SDK's program: nothing of the planner is in it, and it runs real graphs on OpenCL with the
# same digest as the host, from shared virtual memory and from sub-buffers. TAP on stdout.
#
#   custom_sdk_test.sh SOURCE PROGRAM TARN PLANNER     PLANNER: libtarn-plan.a
set -u
cd "$1" || exit 1
program=$2 tarn=$3 planner=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
graphs=(resnet50_b1_adam.ddp googlenet_b1_adam.ddp_branch4)
[ -z "${TARN_GRAPHS:-}" ] || graphs+=(bert_base_b1_adam.ddp) # a long campaign
echo "1..$((1 + 3 * ${#graphs[@]}))"

# report NAME FINDINGS: passes when nothing was found.
report() {
    number=$((number + 1))
    if [ -z "$2" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1"
        sed 's/^/# /' <<<"$2"
    fi
}

# skip NAME WHY: but not where OpenCL was asked for (tests/run.sh --with).
skip() {
    case ,${TARN_REQUIRE:-}, in *,opencl,*)
        report "$1" "$2, and OpenCL was asked for"
        return
        ;;
    esac
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

# digest REPORT: the field's value.
digest() { sed -nE 's/.*"digest": "([0-9a-f]*)".*/\1/p' "$1"; }

# symbols FILE PATTERN: of the kinds that match; a program's hidden ones are local in it.
symbols() { nm --defined-only "$1" | awk -v kinds="$2" '$2 ~ kinds { print $3 }' | sort -u; }

[ -n "$(symbols "$planner" '[A-Z]')" ] || exit 1
report the_program_has_no_symbol_of_the_planner \
    "$(comm -12 <(symbols "$planner" '[A-Z]') <(symbols "$program" .))"

# same_digest NAME PLAN WORDS...: three checked iterations on OpenCL against the host's.
same_digest() {
    local name=$1 plan=$2
    shift 2
    "$program" "$graph" "$plan" 3 0 "$@" >"$work/opencl" 2>&1
    case $? in
    0) report "$name" "$(diff <(digest "$work/opencl") <(digest "$work/host"))" ;;
    8) skip "$name" "$(tail -1 "$work/opencl")" ;; # too little memory
    4) if grep -q 'opening OpenCL device' "$work/opencl"; then
        skip "$name" "no OpenCL device"
    else
        report "$name" "$(cat "$work/opencl")"
    fi ;;
    *) report "$name" "$(cat "$work/opencl")" ;;
    esac
}

for name in "${graphs[@]}"; do
    graph=examples/graphs/$name.json.gz
    "$tarn" run "$graph" --check --iterations 3 --json >"$work/host" || exit 1
    for boundary in simple refined; do
        "$tarn" plan "$graph" --alignment 128 --boundary $boundary -o "$work/$boundary" >/dev/null ||
            exit 1
    done
    same_digest "${name}_simple_svm" "$work/simple"
    same_digest "${name}_refined_svm" "$work/refined"
    same_digest "${name}_refined_buffers" "$work/refined" buffers
done
