#!/usr/bin/env bash
# The command on a CUDA device, which the stand-in plays: checked execution of real graphs, direct and
# captured, by both boundary rules, must give the host's digests; and what goes wrong must be told with
# the right exit code. TAP on stdout.
#
#   cuda_run_test.sh SOURCE TARN FOLDER [GRAPH...]     FOLDER: with the stand-in
#
# Without graphs two of the examples, one in every way and one in one; with graphs, or all examples
# when TARN_GRAPHS is set (tests/run.sh --long), all in every way.
set -u
graphs=$1/examples/graphs
tarn=$2
also=${FAKE_CUDART:-} # more words for the stand-in
stand_in=$3
export LD_LIBRARY_PATH=$3 # alone: meson adds folders that hold other stand-ins
shift 3
every=${TARN_GRAPHS:+yes}${1:+yes}
[ $# -gt 0 ] || set -- "$graphs"/{resnet50_b1_adam.ddp,googlenet_b1_adam.ddp_branch4}.json.gz \
    ${TARN_GRAPHS:+"$graphs"/bert_base_b1_adam.ddp.json.gz}
preload= # a library that the process has loaded before Tarn looks for one
number=0
work=$(mktemp -d)
output=$work/output
trap 'rm -rf "$work"' EXIT

# report NAME EXPECTED FOUND: passes when they are equal.
report() {
    number=$((number + 1))
    if [ "$2" = "$3" ]; then
        echo "ok $number - $1"
    else
        echo "not ok $number - $1: '$3' instead of '$2'"
        sed 's/^/# /' "$output" | head -20
    fi
}

# digest WORDS...: of a checked run of three iterations.
digest() {
    timeout 300 "$tarn" run --check --iterations 3 --json "$@" >"$output" 2>&1
    local status=$?
    [ $status = 0 ] || echo "exit $status"
    grep -o '"digest": *"[0-9a-f]*"' "$output"
}

# check BOUNDARY OPTIONS...: of the graph on the stand-in, by a plan with that boundary.
check() {
    local boundary=$1 plan=$work/$1
    shift
    "$tarn" plan "$graph" --effort 0 --boundary "$boundary" -o "$plan" >"$output" 2>&1 || exit 1
    [ -n "$expected" ] || expected=$(digest "$graph" "$plan")
    report "$(basename "$graph" .json.gz) $boundary $*" "$expected" \
        "$(FAKE_CUDART="strict $also seed=$number" digest "$graph" "$plan" --device cuda "$@")"
}

for graph; do
    expected= # the host's
    case $every:$graph in
    :*resnet50*) check refined --unroll 3 ;;
    *)
        for boundary in simple refined; do
            check $boundary
            check $boundary --unroll 3
        done
        ;;
    esac
done

graph=$graphs/figure2.json
# run NAME EXIT FAKE TEXT: of a small graph on a stand-in that is set up so.
run() {
    FAKE_CUDART="strict $also $3" LD_PRELOAD=$preload timeout 60 "$tarn" run "$graph" --device cuda --iterations 2 >"$output" 2>&1
    local status=$?
    grep -q "$4" "$output" || status="$status without '$4'"
    report "$1" "$2" "$status"
}
run a_missing_driver_is_told 4 "driver=-1" "no NVIDIA driver"
run a_driver_too_old_is_told 4 "driver=11080" "too old: it serves CUDA 11.8 (libcudart.so"
run a_missing_device_is_told 4 "devices=-1" "shows no device"
run too_little_memory_is_told 8 "capacity=4096" "no memory"
run a_call_that_fails_is_told 4 "fail=cudaEventRecord:0:1" "invalid argument"
run a_poisoned_device_is_told 4 "fail=work:3:700:sticky" "700"

# Two runtimes: that of CUDA 12 is in a folder of its own.
older=$stand_in/older
newest=$(basename "$stand_in"/libcudart.so.[0-9]* | sed 's/.*so\.//')
if [ "$newest" -gt 12 ]; then
    run a_driver_too_old_for_the_only_runtime_is_told 4 "driver=12080" \
        "too old: it serves CUDA 12.8 (libcudart.so.$newest needs a driver for CUDA $newest.0; "
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$older
    run the_newest_runtime_is_used_when_the_driver_serves_it 0 tell "CUDA $newest was used"
    run an_older_runtime_is_used_when_the_driver_serves_no_more 0 "driver=12080 tell" "CUDA 12 was used"
    run every_runtime_that_was_tried_is_named 4 "driver=11080" "CUDA $newest.0; libcudart.so.12 needs"
    preload=$older/libcudart.so.12
    run a_runtime_that_the_process_uses_already_is_taken 0 tell "CUDA 12 was used"
    preload=$older/libloads_it.so
    run a_runtime_that_a_library_has_loaded_for_itself_is_taken 0 tell "CUDA 12 was used"
    preload=$work/libprogram.so # the program's own: it exports the runtime and is not called libcudart
    sed 's/libcudart\.so\.12/libprogram.so\x00\x00/g' "$older/libcudart.so.12" >"$preload"
    LD_LIBRARY_PATH=
    run a_runtime_inside_the_program_is_taken 0 tell "CUDA 12 was used"
fi
echo "1..$number"
