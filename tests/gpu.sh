#!/usr/bin/env bash
# All that wants a GPU, in parts of at most two minutes, since time on one comes in slices.
#
#   tests/gpu.sh BUILD OUT [--parts LIST] [--again] [--stand-in]
#
# BUILD    a build with tests, made where nvcc is (checking kernels of the CUDA device)
# OUT      a folder for logs and results: a part that has passed on this commit and this GPU (or on
#          the stand-in) is not run again, so that the same call goes on where the last one was
#          cut; OUT/table belongs into docs/measured
# --parts  by commas, and then they must be there; without it all that are there run:
#          conformance   the suite for devices
#          environments  the same with eager modules, one connection, a pool; a digest where launches block
#          digests       checked runs of six graphs, direct and captured, by the host's digests
#          sanitizer     memcheck with leaks, racecheck, synccheck, initcheck; captures (compute-sanitizer)
#          second        a second device
#          nccl          a group reduced in an arena of ncclMemAlloc's
#          beside        the suite while PyTorch replays a graph of its own in another process
#          torch         tarn.torch.step and ddp, bit by bit against eager execution
#          allocator     tarn.torch.allocator on two streams, likewise
#          bench         times
# --again  runs what has passed, too
# --stand-in   on the stand-in of BUILD instead of a GPU: to try this script
#
# A step has a limit of its own (STEP_SECONDS, 60), a part PART_SECONDS (120): what hangs costs no
# other part its time. Exit 1: something failed, or was asked for and is not there.
set -u
usage() { sed -n '2,27s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
shift 2
parts="conformance digests sanitizer nccl torch allocator bench environments beside second"
wanted=$parts asked= again= stand_in=
while [ $# -gt 0 ]; do
    case $1 in
    --parts)
        wanted=$(tr , ' ' <<<"${2:?--parts needs a list}") asked=yes
        for part in $wanted; do
            [[ " $parts " == *" $part "* ]] || { echo "gpu.sh: there is no part '$part'" >&2 && usage; }
        done
        shift
        ;;
    --again) again=yes ;;
    --stand-in) stand_in=yes ;;
    *) usage ;;
    esac
    shift
done
export TARN_REQUIRE=gpu
bench_words=() nccl_words=()
if [ -n "$stand_in" ]; then
    export LD_LIBRARY_PATH=$build/tests/fake_cudart FAKE_CUDART=${FAKE_CUDART:-host}
    bench_words=(--stand-in "$build/tests/fake_cudart/libcudart.so.13")
    nccl_words=("$build/tests/runtime/libnccl_stand_in.so" "$build/tests/fake_cudart/libcudart.so.13")
fi
gpu=$(timeout 60 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c | xargs)
title="${gpu:-no GPU is here${stand_in:+: a stand-in}}, commit $(git -C "$source" rev-parse --short HEAD 2>/dev/null || echo unknown)"
graphs=$source/examples/graphs
small=$graphs/figure2.json
suite=("$build/tests/runtime/device_cuda_test" cuda_gpu)
failures=0

# row NAME RESULT SECONDS: of the part under way.
row() { printf '| %s | %s | %s |\n' "$@" | tee -a "$out/$part.rows"; }

# reason LOG: what a log says about a failure, in one line.
reason() {
    grep -vE '^(ok |[0-9]+\.\.[0-9]+|#? *$)' "$1" | grep -E 'not ok|error|Error|tarn:|FAIL|hang|[Ss]anit|=====' | head -1 |
        cut -c1-160 | grep . || grep . "$1" | tail -1 | cut -c1-160
}

# step NAME COMMAND...: its output goes to OUT/NAME.log, and the reason of a failure into the table.
step() {
    local name=$1 begin=$SECONDS left=$((part_end - SECONDS)) status=1 skipped
    shift
    [ "$left" -lt "${STEP_SECONDS:-60}" ] || left=${STEP_SECONDS:-60}
    if [ "$left" -le 0 ]; then
        failed=$((failed + 1))
        row "$name" "FAILED: the part has used up its ${PART_SECONDS:-120} s" 0
        return 1
    fi
    timeout -k 3 "$left" "$@" >"$out/$name.log" 2>&1 </dev/null
    status=$?
    # The suite cannot let a call of the real runtime fail, nor follow its addresses; nothing else may be left out.
    skipped=$(grep '^ok .*# SKIP' "$out/$name.log" | grep -vcE 'no fail_after$|no memory that the host can follow$')
    case $status:$skipped in
    0:0) row "$name" passed $((SECONDS - begin)) && return 0 ;;
    0:*) row "$name" "FAILED: $skipped tests were skipped" $((SECONDS - begin)) ;;
    124:* | 137:*) row "$name" "FAILED: no end after $left s; $(reason "$out/$name.log")" $((SECONDS - begin)) ;;
    *) row "$name" "FAILED ($status): $(reason "$out/$name.log")" $((SECONDS - begin)) ;;
    esac
    failed=$((failed + 1))
    return 1
}

# absent WHY: the part cannot run here; a failure where it was asked for.
absent() {
    [ -z "$asked" ] || failed=$((failed + 1))
    row "$part" "${asked:+FAILED: asked for, but }not run: $1" 0
}

# ---- The parts ----

part_conformance() { STEP_SECONDS=${PART_SECONDS:-120} step conformance "${suite[@]}"; }

part_environments() {
    # Where launches block, the suite would wait for its own gates; checked runs have none.
    step digest_blocking env CUDA_LAUNCH_BLOCKING=1 bash -c 'same_digest "$@"' - "$small"
    step conformance_eager env CUDA_MODULE_LOADING=EAGER "${suite[@]}"
    step conformance_one_connection env CUDA_DEVICE_MAX_CONNECTIONS=1 "${suite[@]}"
    step conformance_pool "$build/tests/runtime/device_cuda_test" cuda_gpu_pool
}

# digest WORDS...: of a checked run of three iterations; what goes wrong goes to the log.
digest() {
    local answer
    answer=$("$build/tarn" run --check --iterations 3 --json "$@") || return 1
    sed -nE 's/.*"digest": "([0-9a-f]+)".*/\1/p' <<<"$answer"
}

# same_digest GRAPH: on CUDA, direct and captured, as on the host.
same_digest() {
    local plan host cuda way
    plan=$(mktemp)
    "$build/tarn" plan "$1" --effort 0 -o "$plan" >/dev/null && host=$(digest "$1" "$plan") || return 1
    echo "host $host"
    [ -n "$host" ] && [ "$host" != 0000000000000000 ] || return 1
    for way in "" "--unroll 3"; do
        # shellcheck disable=SC2086
        cuda=$(digest "$1" "$plan" --device "${2:-cuda}" $way) || return 1
        echo "$way cuda $cuda"
        [ "$cuda" = "$host" ] || { echo "error: the digest differs"; return 1; }
    done
    rm -f "$plan"
}
export -f digest same_digest
export build

part_digests() {
    local name
    for name in figure2.json figure7.json alexnet_b1_adam.ddp.json bert_base_b1_adam.ddp.json.gz \
        googlenet_b1_adam.ddp_branch4.json.gz resnet50_b1_adam.ddp.json.gz; do
        step "digest_${name%%.*}" bash -c 'same_digest "$@"' - "$graphs/$name"
    done
}

part_sanitizer() {
    command -v compute-sanitizer >/dev/null || { absent "compute-sanitizer is not here"; return; }
    local run=("$build/tarn" run "$small" --check --device cuda) tool
    for tool in racecheck synccheck initcheck; do
        step "sanitizer_$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "${run[@]}"
    done
    step sanitizer_memcheck compute-sanitizer --leak-check full --error-exitcode 9 "${run[@]}"
    step sanitizer_captured compute-sanitizer --leak-check full --error-exitcode 9 "${run[@]}" --iterations 3 --unroll 3
}

part_second() {
    if timeout 60 "$build/tarn" run "$small" --device cuda:1 --check >/dev/null 2>&1; then
        step second bash -c 'same_digest "$@"' - "$small" cuda:1
    else
        absent "there is no second device"
    fi
}

part_nccl() {
    timeout 60 "$build/tests/runtime/nccl_check" "${nccl_words[@]}" >"$out/nccl_look.log" 2>&1
    if [ $? = 77 ]; then absent "$(tail -1 "$out/nccl_look.log")"; else step nccl "$build/tests/runtime/nccl_check" "${nccl_words[@]}"; fi
}

has_torch() {
    timeout 60 python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || { absent "PyTorch with CUDA is not here"; return 1; }
    export TARN_LIBRARY=$build/libtarn.so PYTHONPATH=$source/python:$source/tests
}

part_beside() {
    has_torch || return
    # shellcheck disable=SC2016
    step beside bash -c 'python3 - <<"END" & torch=$!; "$@"; status=$?; wait $torch && exit $status
import torch, time
x = torch.ones(1024, 1024, device="cuda")
graph = torch.cuda.CUDAGraph()
x @ x  # what the library sets up cannot be captured
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = x @ x
end = time.monotonic() + 20
while time.monotonic() < end:
    graph.replay()
    torch.cuda.synchronize()
    assert y[0, 0].item() == 1024
END' - "${suite[@]}"
}

part_torch() {
    has_torch || return
    STEP_SECONDS=${PART_SECONDS:-120} step torch_steps python3 "$source/tests/python/torch/gpu_test.py" gpu
}

part_allocator() {
    has_torch || return
    CUBLAS_WORKSPACE_CONFIG=:4096:8 step torch_allocator python3 "$source/tests/python/torch/iterations.py" cuda
}

part_bench() { STEP_SECONDS=${PART_SECONDS:-120} step bench "$build/tests/bench/cuda_bench" "${bench_words[@]}" "$graphs/bert_base_b1_adam.ddp.json.gz"; }

# ---- One after another ----

for part in $wanted; do
    if [ -z "$again" ] && grep -qsxF "$title" "$out/$part.passed"; then
        echo "$part: passed before ($(tail -n 1 "$out/$part.passed"))"
        continue
    fi
    : >"$out/$part.rows"
    rm -f "$out/$part.passed"
    failed=0
    part_end=$((SECONDS + ${PART_SECONDS:-120}))
    "part_$part"
    failures=$((failures + failed))
    [ $failed != 0 ] || grep -q 'not run' "$out/$part.rows" || { echo "$title" && date -u +%FT%TZ; } >"$out/$part.passed"
done
{
    printf '%s\n\n| step | result | s |\n|---|---|---:|\n' "$title"
    for part in $parts; do cat "$out/$part.rows" 2>/dev/null; done
    [ ! -e "$out/bench.log" ] || { echo && cat "$out/bench.log"; }
} >"$out/table"
echo "$failures failures; the table is $out/table"
[ $failures = 0 ]
