"""tarn.torch.fsdp on 2 and 4 ranks of gloo against FSDP2, bit by bit (sharding_ranks.py is one rank); ranks that fail,
differ or hang; larger worlds by a fake process group. TAP on stdout.

    tests/with_torch.sh tests/python/torch/sharding_test.py [NAMES...]"""
import ctypes
import subprocess
import tempfile
from pathlib import Path

import ranks
import torch
from cases import run

import tarn
from tarn.torch.memory import Arena

RANKS = Path(__file__).with_name("sharding_ranks.py")


def named(name, count, *cases):
    return ranks.named(name, RANKS, count, *cases)


def a_window_is_registered_once_and_given_up_before_its_memory():
    """On the stand-in for NCCL, over a cudaMalloc that is malloc: memory that is torch's to use."""
    from tarn.torch.window import Memory, Nccl  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        cuda, nccl = f"{folder}/libfake_cuda.so", f"{folder}/libfake_nccl.so"
        source = Path(folder, "cuda.c")
        source.write_text("#include <stdlib.h>\nint cudaMalloc(void **m, size_t n) { return !(*m = malloc(n)); }\n"
                          "int cudaFree(void *m) { free(m); return 0; }\n", encoding="utf-8")
        stand_in = Path(__file__).parents[2] / "fake_cudart/nccl.c"
        for made, given, more in ((cuda, source, []), (nccl, stand_in, [f'-DFAKE_CUDART="{cuda}"', "-ldl"])):
            subprocess.run(["cc", "-shared", "-fPIC", "-o", made, given, *more], check=True)
        keep, library = ctypes.CDLL(cuda, ctypes.RTLD_GLOBAL), ctypes.CDLL(nccl)
        communicator, device = ctypes.c_void_p(), (ctypes.c_int * 1)(0)
        assert keep and library.ncclCommInitAll(ctypes.byref(communicator), 1, device) == 0
        library.fakeNcclWindow.restype = ctypes.c_void_p

        def windows():
            size, made, wrong = ctypes.c_size_t(), ctypes.c_int(), ctypes.c_int()
            begin = library.fakeNcclWindow(0, ctypes.byref(size), ctypes.byref(made), ctypes.byref(wrong))
            assert wrong.value == 0
            return begin, size.value if begin else 0, made.value

        memory = Memory(Nccl(nccl), 1 << 20, torch.device("cpu"), [communicator.value])
        memory.bytes.fill_(7)
        assert memory.bytes.numel() == 1 << 20 and memory.bytes.data_ptr() == memory.address
        for begin, end, made in ((5000, 9000, 1), (6000, 8000, 1), (5000, 9000, 1), (8192, 20000, 2)):
            memory.register(begin, end)
            at, size, count = windows()
            assert at % 4096 == 0 and at <= memory.address + begin and memory.address + end <= at + size and count == made
        arena = Arena(4096 * 10, torch.device("cpu"), memory=lambda size: memory)
        arena.register(tarn.Window(tarn.SpaceId(0), 0, 4096))
        assert windows()[2] == 2 and arena.bytes(0, 8).data_ptr() == arena.base > memory.address
        del arena
        assert windows() == (None, 0, 2)
        memory = Memory(Nccl(nccl), 1 << 16, torch.device("cpu"), [communicator.value, 1])
        try:  # the second communicator is none: the first one's window goes with the memory, and only once
            memory.register(0, 64)
            assert False
        except RuntimeError as error:
            assert "ncclCommWindowRegister failed" in str(error) and "all ranks must register" in str(error), error
        assert windows()[2] == 3 and windows()[0]
        memory.close(), memory.close()
        assert windows() == (None, 0, 3)
        for path in (f"{folder}/none.so", cuda):
            try:
                Nccl(path)
                assert False
            except RuntimeError as error:
                assert "NCCL 2.27 or later" in str(error)
        try:
            Memory(Nccl(nccl), 1 << 16, torch.device("cpu"), [1]).register(0, 64)
            assert False
        except RuntimeError as error:
            assert "failed with code 4, invalid argument" in str(error)


AT_ONCE = "planning_made", "running_first", "planning_later", "running_later"

# The short version has each kind of case; the long one all of them, with more options, on four ranks, too.
SHORT = [named("two_ranks_have_the_bits_of_fsdp2", 2, "plain", "several_uses", "mixed_precision_and_clipping", "within_a_budget", "symmetric",
               "saved_and_loaded", "eager_ranks", "refused", "refused_replicas"),
         a_window_is_registered_once_and_given_up_before_its_memory,
         named("two_ranks_with_uneven_parts_choose_the_same", 2, "uneven_within_a_budget"),
         named("three_ranks_with_uneven_parts_choose_the_same", 3, "uneven_within_a_budget"),
         named("ranks_that_raise_alike_go_on", 2, "raising_alike"),
         named("replicas_raise_alike_and_go_on_or_fail_together", 4, "raising_alike", "failing"),
         named("a_rank_that_fails_takes_the_others_along", 2, "failing"),
         named("a_rank_that_fails_in_a_comparison_takes_the_others_along", 2, "rehearsed_apart"),
         named("a_rank_that_fails_in_an_eager_step_is_told_of", 2, "eager_apart"),
         named("a_report_of_one_rank_alone_is_refused", 2, "reported_apart"),
         named("a_rank_with_another_example_spoils_no_later_step", 2, "differs_planning_made"),
         named("batches_of_other_kinds_refuse_nothing_for_good", 2, "other_kinds"),
         named("a_world_that_is_not_here_is_planned", 1, "large_worlds")]
LONG = [named("four_ranks_have_the_bits_of_fsdp2", 4, "odd_sizes", "later_dimensions", "replicas", "replicas_with_options", "symmetric"),
        named("models_and_options_have_the_bits_of_fsdp2", 2, "models_and_options", "accumulated"),
        named("four_ranks_save_and_two_load", 4, "saved_and_loaded", "loaded_by_fewer_ranks"),
        named("models_are_wrapped_here", 2, "wrapped_here"),
        named("other_shapes_are_planned_on_all_ranks", 2, "other_shapes"),
        *(named(f"a_rank_{how}_at_any_time", 2, *(f"{how}_{when}" for when in AT_ONCE)) for how in ("fails", "differs", "hangs")),
        named("a_rank_that_hangs_is_named", 2, "hanging"),
        named("a_rank_that_is_gone_is_named", 2, "dying")]

if __name__ == "__main__":
    run(SHORT + LONG if ranks.IS_LONG else SHORT)
