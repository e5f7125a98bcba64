"""A plan as a picture: ops to the right, bytes upwards, memory spaces one behind the other; what
notebooks show of a plan."""
from html import escape
from itertools import accumulate

WIDTH, HEIGHT, MOST = 900, 320, 4000
COLOURS = {"intermediate": "#4c78a8", "gradient": "#f58518", "output": "#54a24b",
           "workspace": "#b0b0b0"}


def _blocks(plan):
    """(first op, last op, offset, size, kind, name, space), in the order of the ops' ids."""
    lives, count, tensors = {}, len(plan.graph.ops), plan.graph.tensors
    for op in plan.graph.ops:
        for tensor in op.inputs + op.outputs:
            root = tensors[tensor].root
            lives[root] = (lives.get(root, (op.id,))[0], op.id)
        if op.workspace:
            yield (op.id, op.id, plan.workspace(op.id), op.workspace, "workspace", op.name,
                   op.workspace_space)
    for tensor, offset in plan.offsets():
        t = tensors[tensor]
        first, last = lives.get(tensor, (0, count - 1))
        last = count - 1 if t.kind == "output" else last
        yield first, last, offset, t.size, t.kind, t.name, t.space


def svg(plan):
    """The largest blocks of a plan, up to MOST, as an SVG element."""
    blocks = sorted(_blocks(plan), key=lambda block: block[3], reverse=True)[:MOST]
    right, up = WIDTH / max(1, len(plan.graph.ops)), HEIGHT / max(1, plan.footprint)
    begins = list(accumulate((space.footprint for space in plan.spaces), initial=0))
    drawn = "".join(
        f'<rect x="{first * right:.2f}" y="{HEIGHT - (begins[space] + offset + size) * up:.2f}" '
        f'width="{(last + 1 - first) * right:.2f}" height="{size * up:.2f}" '
        f'fill="{COLOURS[kind]}" stroke="white" stroke-width="0.3">'
        f"<title>{escape(name)}: {size} bytes at {offset}</title></rect>"
        for first, last, offset, size, kind, name, space in blocks)
    if len(plan.spaces) > 1:
        drawn += "".join(
            f'<path d="M0 {HEIGHT - begin * up:.2f}h{WIDTH}" stroke="#333" stroke-dasharray="4 3"/>'
            f'<text x="4" y="{HEIGHT - begin * up - 4:.2f}" font-size="12">{escape(space.name)}'
            "</text>" for begin, space in zip(begins, plan.spaces))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'width="{WIDTH}" style="background:#f4f4f4">{drawn}</svg>')
