"""Rows that an index adds up (fusing/row_sums.py): the kernel, run by Triton's interpreter, and graphs that use it. TAP on
stdout.

    tests/with_torch.sh tests/python/torch/row_sums_test.py"""
import itertools
import os
from unittest import mock

os.environ["TRITON_INTERPRET"] = "1"

import torch  # pylint: disable=wrong-import-position
from cases import run  # pylint: disable=wrong-import-position
from torch.fx.experimental.proxy_tensor import make_fx  # pylint: disable=wrong-import-position

from tarn.torch.fusing import row_sums  # pylint: disable=wrong-import-position
from tarn.torch.fusing.inductor import decompositions  # pylint: disable=wrong-import-position

TOLERANCES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def sums_are_those_of_index_put():
    """For all types, rows of one and of several programs, indices from both ends, rows that nothing is added to, and one that
    all are added to."""
    torch.manual_seed(0)
    for rows, count, shape, dtype, has_base in itertools.product((1, 6, 50), (1, 7, 90), ((33,), (5, 9), (1500,)), TOLERANCES, (False, True)):
        if rows == 50 and shape == (1500,):
            continue
        for index in (torch.randint(-rows, rows, (count,)), torch.full((count,), rows // 2)):
            values, base = torch.randn(count, *shape).to(dtype), torch.randn(rows, *shape).to(dtype)
            places, starts = torch.ops.tarn.rows_in_order(index, rows)
            found = torch.ops.tarn.sum_of_rows(base if has_base else None, values, places, starts, rows)
            wanted = (base.double() * has_base).index_put((index,), values.double(), accumulate=True)
            assert found.dtype == dtype
            scale = max(1.0, wanted.abs().max().item())
            assert (found.double() - wanted).abs().max().item() <= TOLERANCES[dtype] * scale, (rows, count, shape, dtype, has_base)


def an_index_in_order_tells_where_its_rows_lie():
    for rows, wide in itertools.product((1, 3, (1 << 15) - 1, 1 << 15, 1 << 20), (False, True)):
        index = torch.randint(-rows, rows, (40, 2))
        if wide:  # what is out of range stays so, whatever bits are sorted
            index[0, 0], index[1, 1] = 1 << 40, -(1 << 40)
        places, starts = torch.ops.tarn.rows_in_order(index, rows)
        for found, fake in zip((places, starts), row_sums._fake_in_order(index, rows)):
            assert found.shape == fake.shape and found.dtype == fake.dtype
        assert (starts[0] == 0 and starts[-1] == index.numel()) == (not wide)
        assert sorted(places.tolist()) == list(range(index.numel()))
        for row in index.flatten().unique().tolist():
            if -rows <= row < rows:
                its = places[starts[row + rows]:starts[row + rows + 1]].tolist()
                assert its == (index.flatten() == row).nonzero().flatten().tolist()


def traced(function, *arguments):
    with mock.patch.object(row_sums, "DEVICES", ("cpu",)):
        module = make_fx(function, decomposition_table=decompositions())(*arguments)
    row_sums.simplify(module.graph)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def named(module, name):
    return module.graph.find_nodes(op="call_function", target=getattr(torch.ops.tarn, name).default)


def a_layer_of_experts_puts_its_index_in_order_once():
    torch.manual_seed(0)
    words, weight = torch.randn(20, 40, requires_grad=True), torch.randn(40, 40, requires_grad=True)
    chosen = torch.randint(0, 20, (3, 8))

    def both(words, weight, chosen):
        picked = words[chosen.flatten()] @ weight
        made = torch.zeros_like(words).index_add(0, chosen.flatten(), picked.sigmoid())
        return torch.autograd.grad((made * words).sin().sum(), (words, weight))

    module = traced(both, words, weight, chosen)
    assert len(named(module, "rows_in_order")) == 1 and len(named(module, "sum_of_rows")) == 2
    assert any(node.args[0] is None for node in named(module, "sum_of_rows"))
    for found, wanted in zip(module(words, weight, chosen), both(words, weight, chosen)):
        torch.testing.assert_close(found, wanted)


def two_indices_stay_two_and_a_base_is_kept():
    torch.manual_seed(0)
    base, one, two = torch.randn(9, 40), torch.randint(-9, 9, (4, 3)), torch.randint(-9, 9, (4, 3))
    values = torch.randn(4, 3, 40)

    def both(base, one, two, values):
        return base.index_put((one,), values, accumulate=True), torch.zeros_like(base).index_put((two,), values, accumulate=True)

    module = traced(both, base, one, two, values)
    assert len(named(module, "rows_in_order")) == 2 and sorted(node.args[0] is None for node in named(module, "sum_of_rows")) == [False, True]
    for found, wanted in zip(module(base, one, two, values), both(base, one, two, values)):
        torch.testing.assert_close(found, wanted)


def what_is_no_sum_of_whole_rows_stays():
    base, index, row = torch.randn(9, 40), torch.tensor([1, 1, 3]), torch.randn(40)
    cases = [lambda b: b.index_put((index,), torch.ones(3, 40)),  # writes
             lambda b: b.index_put((index,), row, accumulate=True),  # one row for all
             lambda b: b.index_put((index, index), row[:3], accumulate=True),  # numbers
             lambda b: b.index_put((torch.arange(9) > 3,), torch.ones(5, 40), accumulate=True),  # a mask
             lambda b: b[:, :8].contiguous().index_put((index,), torch.ones(3, 8), accumulate=True),  # narrow
             lambda b: b.long().index_put((index,), torch.ones(3, 40, dtype=torch.long), accumulate=True)]
    for case in cases:
        module = traced(case, base)
        assert not named(module, "sum_of_rows"), module.graph
        torch.testing.assert_close(module(base), case(base))


def hindrance():
    """Why the kernel cannot be interpreted here."""
    try:
        from triton.runtime.errors import InterpreterError
    except ImportError:
        return "there is no Triton"
    try:
        torch.ops.tarn.sum_of_rows(None, torch.ones(1, 40), *torch.ops.tarn.rows_in_order(torch.tensor([0]), 1), 1)
    except InterpreterError as error:
        if "only 0-dimensional arrays" in str(error):
            return "Triton's interpreter is older than NumPy 2.4"
        raise
    return None


if __name__ == "__main__":
    if hindrance():
        print(f"1..0 # SKIP {hindrance()}")
    else:
        run([sums_are_those_of_index_put, an_index_in_order_tells_where_its_rows_lie, a_layer_of_experts_puts_its_index_in_order_once,
             two_indices_stay_two_and_a_base_is_kept, what_is_no_sum_of_whole_rows_stays])
