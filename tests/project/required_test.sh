#!/usr/bin/env bash
# What a run was asked for (tests/run.sh --with) and does not find is a failure; where nobody asked it is
# skipped. Asked of the parts that can be hidden from a test: a GPU, and a part that a build lacks. TAP on stdout.
#
#   required_test.sh SOURCE DEVICE_CUDA_TEST
set -u
lacking=$1/tests/lacking_test.sh
device_cuda=$2
export CUDA_VISIBLE_DEVICES= # no GPU is seen
unset LD_LIBRARY_PATH        # nor a stand-in for its runtime
number=0

# report NAME CODE ASKED COMMAND...: the command ends with that code where the list ASKED was asked for.
report() {
    local name=$1 expected=$2 asked=$3 code
    shift 3
    TARN_REQUIRE=$asked "$@" >/dev/null 2>&1
    code=$?
    number=$((number + 1))
    if [ $code = "$expected" ]; then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name: exit $code instead of $expected"
    fi
}

gpu=("$device_cuda" cuda_gpu)
report a_gpu_that_nobody_asked_for_is_skipped 0 "" "${gpu[@]}"
report a_gpu_that_was_asked_for_is_required 1 gpu "${gpu[@]}"
report a_list_of_parts_is_read_to_its_end 1 opencl,gpu "${gpu[@]}"
report a_part_is_a_whole_word 0 gpus "${gpu[@]}"
report a_part_that_nobody_asked_for_is_skipped 77 gpu "$lacking" opencl
report a_part_that_was_asked_for_is_required 1 gpu,opencl "$lacking" opencl
echo "1..$number"
