#!/usr/bin/env bash
# All that wants a GPU, in one command, for the day on which one is there; at most 25 minutes.
# It has not been run on a GPU yet: its steps were tried on the stand-in for the CUDA runtime alone.
#
#   tests/gpu.sh BUILD OUT [--with LIST] [--stand-in]
#
# BUILD   a build with tests, made where nvcc is (checking kernels of the CUDA device)
# OUT     a folder for logs and for a table, which belongs into docs/measured.md
# --with  parts by commas that must run, besides those that always must (conformance, digests, bench):
#         sanitizer (compute-sanitizer), second (a second device), nccl (a group reduced in an arena
#         of ncclMemAlloc's), torch (PyTorch replaying a graph of its own on the device meanwhile,
#         in another process; tarn.torch.step and ddp, and tarn.torch.allocator on two streams, bit by
#         bit against eager execution).
#         Without it these run where they are there, and the table says which were not
# --stand-in   on the stand-in of BUILD instead of a GPU: to try this script
#
# Exit 1: something failed, or was asked for and is not there.
set -u
usage() { sed -n '2,18s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
source=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd) || exit 2
mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 2
shift 2
asked=
stand_in=
while [ $# -gt 0 ]; do
    case $1 in
    --with)
        for part in $(tr , ' ' <<<"${2:?--with needs a list}"); do
            case $part in
            conformance | digests | bench) ;; # these always run
            sanitizer | second | nccl | torch) asked=$asked,$part, ;;
            *) echo "gpu.sh: there is no part '$part'" >&2 && usage ;;
            esac
        done
        shift
        ;;
    --stand-in) stand_in=yes ;;
    *) usage ;;
    esac
    shift
done
end=$((SECONDS + 25 * 60))
failures=0
table=$out/table
export TARN_REQUIRE=gpu
bench_words=()
if [ -n "$stand_in" ]; then
    export LD_LIBRARY_PATH=$build/tests/fake_cudart FAKE_CUDART=${FAKE_CUDART:-host}
    bench_words=(--stand-in "$build/tests/fake_cudart/libcudart.so.13")
fi
gpu=$(timeout 60 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c | xargs)
printf '%s, commit %s\n\n| step | result | s |\n|---|---|---:|\n' "${gpu:-no GPU is here${stand_in:+: a stand-in}}" \
    "$(git -C "$source" rev-parse --short HEAD 2>/dev/null || echo unknown)" >"$table"

# row NAME RESULT SECONDS
row() { printf '| %s | %s | %s |\n' "$@" | tee -a "$table"; }

# step NAME COMMAND...: its output goes to OUT/NAME.log; what is left of the 25 minutes is its limit.
step() {
    local name=$1 begin=$SECONDS left=$((end - SECONDS)) status=1
    shift
    if [ $left -gt 0 ]; then timeout "$left" "$@" >"$out/$name.log" 2>&1; status=$?; fi
    # The suite cannot let a call of the real runtime fail; nothing else may be left out.
    if [ "$status" = 0 ] && grep '^ok .*# SKIP' "$out/$name.log" | grep -qv 'no fail_after$'; then status="tests were skipped"; fi
    if [ "$status" = 0 ]; then
        row "$name" passed $((SECONDS - begin))
    else
        failures=$((failures + 1))
        row "$name" "FAILED ($status), see $name.log" $((SECONDS - begin))
    fi
}

# absent PART WHY: it is not there; a failure where it was asked for.
absent() {
    case $asked in
    *,"$1",*)
        failures=$((failures + 1))
        row "$1" "FAILED: asked for, and $2" 0
        ;;
    *) row "$1" "not run: $2" 0 ;;
    esac
}

# digest WORDS...: of a checked run of three iterations.
digest() {
    "$build/tarn" run --check --iterations 3 --json "$@" | sed -nE 's/.*"digest": "([0-9a-f]+)".*/\1/p'
}

# same_digest GRAPH WORDS...: on CUDA as on the host.
same_digest() {
    local graph=$1 plan host cuda
    shift
    plan=$out/plan.json
    "$build/tarn" plan "$graph" --effort 0 -o "$plan" >/dev/null || return 1
    host=$(digest "$graph" "$plan") && cuda=$(digest "$graph" "$plan" "$@") || return 1
    echo "host $host, $*: $cuda"
    [ -n "$host" ] && [ "$host" = "$cuda" ]
}

# ---- Conformance, in four environments ----

suite=("$build/tests/device_cuda_test" cuda_gpu)
step conformance "${suite[@]}"
step conformance_blocking env CUDA_LAUNCH_BLOCKING=1 "${suite[@]}"
step conformance_eager env CUDA_MODULE_LOADING=EAGER "${suite[@]}"
step conformance_one_connection env CUDA_DEVICE_MAX_CONNECTIONS=1 "${suite[@]}"

# ---- Digests ----

export -f digest same_digest
export build out
for name in alexnet_b1_adam.ddp.json bert_base_b1_adam.ddp.json.gz figure2.json figure7.json \
    googlenet_b1_adam.ddp_branch4.json.gz resnet50_b1_adam.ddp.json.gz; do
    graph=$source/examples/graphs/$name
    step "digest_${name%%.*}_direct" bash -c 'same_digest "$@"' - "$graph" --device cuda
    step "digest_${name%%.*}_captured" bash -c 'same_digest "$@"' - "$graph" --device cuda --unroll 3
done

# ---- What is not on every machine ----

if ! command -v compute-sanitizer >/dev/null; then
    absent sanitizer "compute-sanitizer is not here"
else
    for tool in memcheck racecheck synccheck; do
        step "sanitizer_$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$build/tarn" run "$source/examples/graphs/figure2.json" --check --device cuda
    done
    step sanitizer_captured compute-sanitizer --tool memcheck --error-exitcode 9 \
        "$build/tarn" run "$source/examples/graphs/figure2.json" --check --iterations 3 --device cuda --unroll 3
fi
if timeout 60 "$build/tarn" run "$source/examples/graphs/figure2.json" --device cuda:1 --check >/dev/null 2>&1; then
    step second bash -c 'same_digest "$@"' - "$source/examples/graphs/figure2.json" --device cuda:1
else
    absent second "there is no second device"
fi
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    # PyTorch replays a graph of its own, in another process, while the conformance suite runs beside it.
    # shellcheck disable=SC2016
    step torch bash -c 'python3 - <<"END" & torch=$!; "$@"; status=$?; wait $torch && exit $status
import torch, time
x = torch.ones(1024, 1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x @ x
end = time.monotonic() + 60
while time.monotonic() < end:
    graph.replay()
    torch.cuda.synchronize()
    assert y[0, 0].item() == 1024
END' - "${suite[@]}"
    step torch_steps env TARN_LIBRARY="$build/libtarn.so" PYTHONPATH="$source/python:$source/tests" \
        python3 "$source/tests/torch/gpu_test.py" gpu
    step torch_allocator env TARN_LIBRARY="$build/libtarn.so" CUBLAS_WORKSPACE_CONFIG=:4096:8 \
        PYTHONPATH="$source/python:$source/tests" python3 "$source/tests/torch/iterations.py" cuda
else
    absent torch "PyTorch with CUDA is not here"
fi
nccl_words=()
if [ -n "$stand_in" ]; then nccl_words=("$build/tests/libnccl_stand_in.so" "$build/tests/fake_cudart/libcudart.so.13"); fi
timeout 120 "$build/tests/nccl_check" "${nccl_words[@]}" >"$out/nccl_look.log" 2>&1
if [ $? = 77 ]; then
    absent nccl "$(tail -1 "$out/nccl_look.log")"
else
    step nccl "$build/tests/nccl_check" "${nccl_words[@]}"
fi

# ---- Times ----

step bench "$build/tests/cuda_bench" "${bench_words[@]}" "$source/examples/graphs/bert_base_b1_adam.ddp.json.gz"
{
    echo
    cat "$out/bench.log"
} >>"$table"
echo "$failures failures; the table is $table"
[ $failures = 0 ]
