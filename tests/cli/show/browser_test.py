"""The page of `tarn show` in a real browser: it complains about nothing, loads nothing, and hover, click,
search, zoom and keys change what they should. TAP on stdout.

    browser_test.py SOURCE TARN"""
import json
import os
import sys

import chromium
import rules
from subjects import Tarn, break_plan, hostile_graph, large_graph, write_graph

SOURCE, tarn = sys.argv[1], Tarn(os.path.abspath(sys.argv[2]))
GOOGLENET = os.path.join(SOURCE, "examples/graphs/googlenet_b1_adam.ddp_branch4.json.gz")
FIGURE2 = os.path.join(SOURCE, "examples/graphs/figure2.json")
WIDTH, HEIGHT = 1600, 1000

browser = None  # one for all rules
pages = []


def opened(graph, *words, fragment="#theme=light", code=0, width=WIDTH, height=HEIGHT):
    path = f"{len(os.listdir('.'))}.html"
    tarn("show", graph, *words, "-o", path, code=code)
    pages.append(browser.open(path, width, height, fragment))
    return pages[-1]


googlenet_page = []


def googlenet():
    """The same page for all that leave it as they found it."""
    if not googlenet_page:
        tarn("plan", GOOGLENET, "-o", "googlenet.plan")
        googlenet_page.append(opened(GOOGLENET, "googlenet.plan"))
    page = googlenet_page[0]
    page.run("tarn.choose(null), tarn.find(''), tarn.setAxis('order'), document.getElementById('chart').focus()")
    page.settle()
    return page


def at_holder(page, name):
    """Where the middle of a storage is drawn, on the page."""
    return page.run(f"""(() => {{ const h = tarn.plan.holder.name.indexOf({json.dumps(name)}), box = document.getElementById('chart').getBoundingClientRect();
        return [box.x + (tarn.toX(tarn.axis.from[h]) + tarn.toX(tarn.axis.to[h])) / 2, box.y + tarn.toY(tarn.plan.holder.offset[h] + tarn.plan.holder.size[h] / 2)]; }})()""")


def at_launch(page, v):
    return page.run(f"""(() => {{ const box = document.getElementById('chart').getBoundingClientRect(), s = tarn.plan.launch.stream[{v}];
        return [box.x + (tarn.toX(tarn.axis.begin[{v}]) + tarn.toX(tarn.axis.end[{v}])) / 2, box.y + tarn.rowY(s) + tarn.layout.rows.row / 2]; }})()""")


def chosen(page):
    return page.run("tarn.state.chosen")


def title(page):
    return page.run("document.querySelector('#panel h2').textContent")


def window(page):
    return page.run("[tarn.view.x0, tarn.view.x1, tarn.view.y0, tarn.view.y1]")


def ink(page):
    """What is drawn below what follows the pointer."""
    return hash(page.run("document.getElementById('base').toDataURL()"))


# ---- Rules ----

def figures_are_those_of_info():
    for graph in (GOOGLENET, FIGURE2, os.path.join(SOURCE, "examples/graphs/alexnet_b1_adam.ddp.json")):
        page, info, plan = opened(graph), tarn.json("info", graph), tarn.json("plan", graph)
        assert page.run("tarn.prepareAxis(tarn.axisOf('order')).peak") == info["serial_peak_bytes"]
        titles = page.run("[...document.querySelectorAll('#figures div')].map((div) => [div.firstChild.textContent, div.title, div.lastChild.textContent])")
        shown = {name: (exact, text) for name, exact, text in titles}
        assert shown["serial peak"][0] == f"{info['serial_peak_bytes']:,} bytes"
        assert shown["footprint"][0] == f"{plan['footprint_bytes']:,} bytes" and shown["bound"][0] == f"{plan['bound_bytes']:,} bytes"
        assert shown["storages"][1] == f"{info['storages']:,}" and shown["launches"][1] == f"{info['ops'] - info['views']:,}"
        assert shown["streams"][1] == str(info["streams"])
        model = tarn.json("info", graph)["model"]["critical_path_ns"]
        assert abs(page.run("tarn.prepareAxis(tarn.axisOf('time')).top") - model) <= 1 or not info["cost_ns"]


def an_axis_is_chosen_by_key_and_by_button():
    page = googlenet()
    for key, axis in (("2", "time"), ("3", "cut"), ("1", "order")):
        before = ink(page)
        page.key(key)
        assert page.run("tarn.axis.key") == axis and ink(page) != before
    page.press("x time")
    assert page.run("tarn.axis.key") == "time"
    assert page.run("document.querySelector('[data-choice=\"x time\"]').getAttribute('aria-pressed')") == "true"
    page.key("4")  # there is no trace
    assert page.run("tarn.axis.key") == "time"


def a_storage_under_the_pointer_is_named_and_chosen():
    page = googlenet()
    page.hover(*at_holder(page, "mm_9"))
    tip = page.run("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
    assert tip.startswith("mm_9 · 8.00 MiB · gradient · by mm_9 in compute"), tip
    page.click(*at_holder(page, "mm_9"))
    assert title(page) == "mm_9" and chosen(page)["holder"] == page.run("tarn.plan.holder.name.indexOf('mm_9')")
    panel = page.run("document.getElementById('panel').textContent")
    assert "8,388,608" in panel and "in the certificate" in panel and "Same bytes before" in panel and "112 members" in panel
    page.key("Escape")
    assert chosen(page) is None and title(page) == "List order"


def a_launch_is_chosen_and_leads_to_what_it_touches():
    page = googlenet()
    page.key("2")
    v = page.run("tarn.plan.launch.name.indexOf('all_reduce_2')")
    page.click(*at_launch(page, v))
    assert title(page) == "all_reduce_2" and chosen(page) == {"launch": v}
    beside = "[...[...document.querySelectorAll('#panel h3')].at(-1).nextSibling.parentNode.querySelectorAll('h3:last-of-type ~ table td:first-child')].map((td) => td.textContent)"
    assert page.run(beside) == [name for name in page.run("tarn.plan.streams") if name != "comm"], page.run(beside)
    page.run("[...document.querySelectorAll('#panel a')].find((a) => a.dataset.what.includes('holder')).click()")
    assert page.run(f"[...tarn.plan.holdersOf.of({v})].includes(tarn.state.chosen.holder)")


def search_finds_what_is_there():
    page = googlenet()
    page.key("/")
    assert page.run("document.activeElement.id") == "search"
    page.type("conv")
    names = page.run("[tarn.plan.holder.name, tarn.plan.launch.name, [...tarn.plan.holder.writer]]")
    holders = [h for h, name in enumerate(names[0]) if "conv" in name or "conv" in names[1][names[2][h]]]
    launches = [v for v, name in enumerate(names[1]) if "conv" in name]
    persistent = page.run("tarn.plan.persistent.filter(([name]) => name.includes('conv')).length")
    found = page.run("document.getElementById('hits').textContent")
    assert found == f"{len(holders) + len(launches) + persistent:,} found", found
    page.key("Enter")
    assert chosen(page) == {"holder": holders[0]}
    page.key("Enter")
    assert chosen(page) == {"holder": holders[1]} and page.run("document.getElementById('hits').textContent").startswith("2 of ")
    page.key("Escape")
    assert page.run("tarn.state.found") is None and page.run("document.activeElement.id") == "chart"
    page.key("n")
    assert chosen(page) == {"holder": holders[1]}  # nothing is looked for any more


def the_wheel_keys_and_drags_move_the_window():
    page = googlenet()
    whole = window(page)
    x, y = at_holder(page, "mm_9")
    page.wheel(x, y, -300)
    closer = window(page)
    assert closer[1] - closer[0] < whole[1] - whole[0] and closer[2:] == whole[2:]
    page.wheel(x, y, -300, shift=True)
    taller = window(page)
    assert taller[:2] == closer[:2] and taller[3] - taller[2] < whole[3] - whole[2]
    page.drag(x, y, x + 80, y + 40)
    moved = window(page)
    assert moved[0] < taller[0] and moved[2] > taller[2] and abs((moved[1] - moved[0]) - (taller[1] - taller[0])) < 1e-6
    page.key("ArrowRight")
    assert window(page)[0] > moved[0]
    page.key("+")
    page.key("0")
    assert window(page) == whole
    page.drag(x - 50, y - 30, x + 50, y + 30, shift=True)
    box = window(page)
    assert box[1] - box[0] < (whole[1] - whole[0]) / 3 and box[3] - box[2] < (whole[3] - whole[2]) / 2
    page.press("fit")
    assert window(page) == whole
    page.click(x, y, count=2)
    assert window(page)[1] - window(page)[0] < whole[1] - whole[0] or page.run("tarn.axis.to[tarn.state.chosen.holder]") > 0
    page.key("0")


def offsets_beside_the_map_are_told_apart_at_every_zoom():
    page = googlenet()
    page.click(*at_holder(page, "mm_9"))
    for _ in range(12):
        texts = page.run("tarn.offsetTicks(tarn.layout.map).map(([, text]) => text)")
        assert len(texts) >= 2 and len(set(texts)) == len(texts), texts
        page.wheel(*at_holder(page, "mm_9"), -300, shift=True)
    page.key("0")


def keys_go_through_who_has_the_bytes():
    page = googlenet()
    page.click(*at_holder(page, "mm_9"))
    here = chosen(page)["holder"]
    shares = "((a, b) => { const { offset, size } = tarn.plan.holder; return offset[a] < offset[b] + size[b] && offset[b] < offset[a] + size[a]; })"
    page.key("[")
    before = chosen(page)["holder"]
    assert before != here and page.run(f"{shares}({before}, {here}) && tarn.plan.holder.writer[{before}] < tarn.plan.holder.writer[{here}]")
    page.key("]")
    after = chosen(page)["holder"]
    assert page.run(f"{shares}({before}, {after}) && tarn.plan.holder.writer[{after}] > tarn.plan.holder.writer[{before}]")
    page.key(".")
    assert chosen(page)["holder"] == after + 1
    page.key(",")
    assert chosen(page)["holder"] == after
    page.key("z")
    assert window(page)[3] - window(page)[2] < page.run("tarn.plan.footprint")


def a_range_of_bytes_lists_its_holders():
    page = googlenet()
    box = page.run("(() => { const b = document.getElementById('chart').getBoundingClientRect(), l = tarn.layout; return [b.x + l.strip.x + 20, b.y + l.map.y, l.map.height]; })()")
    page.drag(box[0], box[1] + box[2] * 0.5, box[0], box[1] + box[2] * 0.6)
    low, high = chosen(page)["range"]
    assert title(page).startswith("Bytes ") and 0 < low < high < page.run("tarn.plan.footprint")
    count = page.run(f"tarn.plan.holder.offset.reduce((n, o, h) => n + (o < {high} && o + tarn.plan.holder.size[h] + tarn.plan.holder.padding[h] > {low}), 0)")
    assert f"{count:,} storage" in page.run("document.getElementById('panel').textContent")


def a_moment_is_chosen_on_the_curve():
    page = googlenet()
    x, y = page.run("(() => { const b = document.getElementById('chart').getBoundingClientRect(), l = tarn.layout; return [b.x + l.x + l.width * 0.2, b.y + l.curve.y + 5]; })()")
    page.hover(x, y)
    assert "alive" in page.run("document.getElementById('tip').textContent")
    page.click(x, y)
    moment = chosen(page)["moment"]
    inside = page.run(f"tarn.axis.from.reduce((n, from, h) => n + (from <= {moment} && {moment} < tarn.axis.free[h]), 0)")
    assert f": {inside:,}" in page.run("[...document.querySelectorAll('#panel h3')].map((h) => h.textContent).join()")


def themes_colours_and_switches_change_the_picture():
    page = googlenet()
    before = ink(page)
    page.key("t")
    assert page.run("document.documentElement.dataset.theme") == "dark" and ink(page) != before
    page.press("theme")
    assert ink(page) == before
    page.press("colour stream")
    assert ink(page) != before
    page.key("c")
    assert ink(page) == before
    for switch in ("certificate", "held", "groups"):
        page.key("2")
        before = ink(page)
        page.press("show " + switch)
        assert ink(page) != before, switch
        page.press("show " + switch)
        assert ink(page) == before, switch


def a_stream_is_looked_at_alone():
    page = googlenet()
    x, y = page.run("(() => { const b = document.getElementById('chart').getBoundingClientRect(); return [b.x + tarn.layout.x - 40, b.y + tarn.rowY(4) + 5]; })()")
    before = ink(page)
    page.click(x, y)
    assert page.run("tarn.state.focus") == 4 and ink(page) != before
    page.key("Escape")
    assert page.run("tarn.state.focus") is None


WAYS = """(() => {
  const { plan } = tarn, { stream, place } = plan.launch, bad = [], count = { pairs: 0, ways: 0, missing: 0 };
  const follows = (a, b, how) => how === "order" ? stream[a] === stream[b] && place[a] < place[b] : how === "wait" ? plan.waits.of(b).includes(a)
    : how === "boundary" ? plan.previous.of(b).includes(a) : how === "next" && stream[a] === stream[b];
  for (let h = 0; h < plan.holders; h += Math.max(1, Math.floor(plan.holders / 300)))
    for (const direction of [-1, 1]) {
      const near = tarn.neighbours(h, direction);
      let bytes = 0;
      for (const one of near) {
        const [earlier, later] = direction < 0 ? [one.holder, h] : [h, one.holder];
        bytes += one.bytes;
        count.pairs++;
        for (const way of tarn.waysBetween(earlier, one.isOther, later)) {
          count.ways++;
          if (!way) { count.missing++; continue; }
          const crossings = way.filter((step) => step.how === "boundary" || step.how === "next").length;
          if (way.at(-1).launch !== plan.holder.writer[later] || crossings !== +one.isOther) bad.push([h, one.holder]);
          for (let i = 1; i < way.length; i++) if (!follows(way[i - 1].launch, way[i].launch, way[i].how)) bad.push([h, one.holder, i]);
        }
      }
      if (bytes !== plan.holder.size[h] + plan.holder.padding[h]) bad.push([h, "bytes", bytes]);
    }
  return { ...count, bad };
})()"""


def every_way_is_made_of_order_and_waits():
    for graph in (GOOGLENET, FIGURE2):
        found = opened(graph).run(WAYS)
        assert not found["bad"] and found["missing"] == 0 and found["ways"] >= found["pairs"] > 0, found


def a_refused_plan_says_where_a_way_is_missing():
    tarn("plan", GOOGLENET, "-o", "whole.plan")
    page = opened(GOOGLENET, break_plan("whole.plan", "broken.plan"), code=6)
    found = page.run(WAYS)
    assert not found["bad"] and found["missing"] > 0, found
    assert page.run("!document.getElementById('violations').hidden") and "refuses" in page.run("document.getElementById('violations').textContent")
    last = page.run("tarn.plan.violations.length") - 1
    page.run(f"tarn.choose({{ violation: {last} }})")
    assert page.run(f"tarn.launchesOf(tarn.plan.violations[{last}]).includes(tarn.axis.reader)") != ("It does not come to" in page.run("document.getElementById('panel').textContent"))
    page.run("tarn.choose({ violation: 0 })")
    assert "It does not come to" not in page.run("document.getElementById('panel').textContent")
    assert chosen(page) == {"violation": 0} and title(page) == page.run("tarn.plan.violations[0].kind")
    page.run("document.querySelectorAll('#violations button')[1].click()")
    assert chosen(page) == {"violation": 1}


def boundary_violation(graph, path):
    """A plan whose next iteration begins too early: without the waits for the iteration before."""
    tarn("plan", graph, "-o", path)
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    assert plan["boundary_waits"]
    plan["boundary_waits"] = []
    with open(path, "w", encoding="utf-8") as file:
        json.dump(plan, file)
    return path


LEGAL = """(() => {
  const { plan, axis } = tarn, violation = plan.violations[tarn.state.chosen.violation], { witness } = violation, done = [new Set(), new Set()];
  for (let i = 0; i < witness.length; i += 2) {
    const v = witness[i], k = witness[i + 1], list = plan.lists[plan.launch.stream[v]], place = plan.launch.place[v];
    for (const u of plan.waits.of(v)) if (!done[k].has(u)) throw Error("wait");
    if (place && !done[k].has(list[place - 1])) throw Error("order");
    if (k && (!done[0].has(list.at(-1)) || [...plan.previous.of(v)].some((u) => !done[0].has(u)))) throw Error("boundary");
    done[k].add(v);
    if ((k ? axis.next.get(v) : axis.begin[v]) !== i / 2) throw Error("step");
  }
  if (new Set(axis.begin).size !== plan.launches || axis.violation !== violation) throw Error("axis");
  return { key: axis.key, next: axis.next.size, mark: axis.mark[0] * 2 + 2 - witness.length, reader: axis.reader === witness.at(-2), seen: tarn.view.x0 <= axis.mark[0] && tarn.view.x1 >= axis.mark[1] };
})()"""


def an_order_that_corrupts_is_an_axis_of_each_violation():
    tarn("plan", GOOGLENET, "-o", "whole.plan")
    subjects = [(GOOGLENET, break_plan("whole.plan", "broken.plan"), False), (FIGURE2, boundary_violation(FIGURE2, "early.plan"), True)]
    for graph, path, is_next in subjects:
        page = opened(graph, path, code=6)
        before = None
        for i in range(min(2, page.run("tarn.plan.violations.length"))):
            page.run(f"document.querySelectorAll('#violations button')[{i}].click()")
            page.settle()
            found = page.run(LEGAL)
            assert found == {"key": "wrong", "next": found["next"], "mark": 0, "reader": True, "seen": True} and (found["next"] > 0) == is_next, found
            assert ink(page) != before and "An order that corrupts" in page.run("document.getElementById('panel').textContent")
            before = ink(page)
        page.key("1")
        assert page.run("tarn.axis.key") == "order"
        page.press("x wrong")
        assert page.run("tarn.axis.key") == "wrong" and "violation" in chosen(page)


def what_may_run_meanwhile_is_what_is_not_ordered():
    page = opened(FIGURE2)
    assert page.run("""(() => {
      const { plan } = tarn, n = plan.launches, before = Array.from({ length: n }, () => new Set());
      for (let v = 0; v < n; v++) for (const u of [...plan.waits.of(v), ...(plan.launch.place[v] ? [plan.lists[plan.launch.stream[v]][plan.launch.place[v] - 1]] : [])]) {
        before[v].add(u); for (const w of before[u]) before[v].add(w); }
      for (let h = 0; h < plan.holders; h++) tarn.meanwhile(h).forEach(({ from, to }, s) => plan.lists[s].forEach((v, place) => {
        const touches = []; for (let t = plan.holder.touchBegin[h]; t < plan.holder.touchBegin[h + 1]; t++) touches.push(plan.holder.touchLaunch[t]);
        if ((place < from) !== before[plan.holder.writer[h]].has(v)) throw Error("from " + h + " " + v);
        if ((place >= to) !== (plan.holder.kind[h] !== 2 && touches.every((t) => before[v].has(t)))) throw Error("to " + h + " " + v); }));
      return true; })()""")


def a_memory_space_is_looked_at_alone():
    graph = os.path.join(SOURCE, "examples/graphs/offload.json")
    page, made = opened(graph), tarn.json("plan", graph)
    figures = "Object.fromEntries([...document.querySelectorAll('#figures div')].map((div) => [div.firstChild.textContent, div.title]))"
    assert page.run(figures)["footprint"] == f"{made['footprint_bytes']:,} bytes"
    before = ink(page)
    for key, space in enumerate(made["spaces"]):
        page.key("m")
        begin = sum(one["footprint_bytes"] for one in made["spaces"][:key])
        assert page.run("[tarn.view.y0, tarn.view.y1]") == [begin, begin + space["footprint_bytes"]] and ink(page) != before
        shown = page.run(figures)
        assert shown["footprint"] == f"{space['footprint_bytes']:,} bytes" and shown["bound"] == f"{space['bound_bytes']:,} bytes"
        assert page.run("tarn.prepareAxis(tarn.axisOf('order')).peak") == page.run(f"tarn.plan.spaces[{key}].serialPeak")
    panel = page.run("document.getElementById('panel').textContent")
    with open(graph, encoding="utf-8") as file:
        lasting = [t for t in json.load(file)["tensors"] if t["kind"] in ("parameter", "optimizer_state", "input") and t.get("space") == 1 and "alias_of" not in t]
    assert f"Lives for ever: {len(lasting)} storages" in panel and "certificate of device" not in panel, panel
    page.press("space device")
    assert "certificate of device" in page.run("document.getElementById('panel').textContent")
    page.key("2")
    h = page.run("tarn.plan.holder.name.indexOf('a0.host')")
    page.hover(*at_holder(page, "a1"))
    assert "in device" in page.run("document.getElementById('tip').textContent")
    page.run(f"tarn.choose({{ holder: {h} }}, true)")  # of the other space: all are shown again
    assert page.run("tarn.state.space") is None and page.run("[tarn.view.y0, tarn.view.y1]") == [0, made["footprint_bytes"]]
    panel = page.run("document.getElementById('panel').textContent")
    assert "memory spacehost" in panel and "offset0" in panel, panel
    assert opened(graph, fragment="#space=host").run("tarn.state.space") == 1


def names_are_text_and_nothing_else():
    graph = hostile_graph("hostile.json")
    page = opened(graph)
    page.run("for (let h = 0; h < tarn.plan.holders; h++) tarn.choose({ holder: h })")
    page.run("for (let v = 0; v < tarn.plan.launches; v++) tarn.choose({ launch: v })")
    page.run("tarn.find('script'); tarn.setAxis('time')")
    page.hover(700, 500)
    assert page.run("window.hacked === undefined && document.querySelectorAll('img').length === 0 && document.scripts.length === 2")
    assert page.run("document.getElementById('name').textContent").startswith("</script><script>window.hacked = 1")
    assert page.run("document.title").startswith("</script>")


def names_and_figures_of_the_panel_and_the_tip_are_whole():
    """A long name is broken into lines; its figure, its colour and what the pointer is on are not."""
    page = opened(hostile_graph("long.json"), fragment="#axis=order")
    for chosen_one in ("null", "{ range: [0, 20000] }"):
        page.run(f"tarn.choose({chosen_one})")
        assert page.run("""(() => { const all = (what) => [...document.querySelectorAll('#panel ' + what)];
          return all('.whole').every((one) => one.getClientRects().length === 1) && all('.named').length > 1 &&
            all('.named').every((one) => one.firstChild.getBoundingClientRect().bottom < one.getBoundingClientRect().top + 20); })()""")
    page.hover(*page.run("(() => { const box = document.getElementById('chart').getBoundingClientRect(); return [box.x + tarn.toX(8.5), box.y + tarn.toY(4000)]; })()"))
    over, text = page.run("(() => { const tip = document.getElementById('tip'); return [tip.scrollWidth - tip.clientWidth, tip.textContent]; })()")
    assert over <= 0 and text.startswith("xxx") and text.endswith("certificate"), (over, text)


def times_have_a_unit_that_fits():
    for cost, text in ((1234, "1.234 µs"), (12345678, "12.3457 ms"), (1234567890, "1.23457 s")):
        graph = write_graph(f"cost{cost}.json", "costs", ["one"], [{"name": "o", "kind": "k", "stream": 0, "inputs": [], "outputs": [0], "cost": cost}],
                            [{"name": "t", "size": 512, "kind": "output"}])
        page = opened(graph, fragment="#axis=time&launch=o")
        assert text in page.run("document.getElementById('panel').textContent"), text


def a_hundred_thousand_storages_are_drawn():
    graph = large_graph("large.json", 100000, 4)
    tarn("plan", graph, "-o", "large.plan", "--effort", "0", "--method", "lowest")
    page = opened(graph, "large.plan")
    assert os.path.getsize(sorted(os.listdir("."), key=lambda name: os.path.getmtime(name))[-1]) <= 3000000
    assert page.run("tarn.plan.holders") == 100000
    x, y = page.run("(() => { const b = document.getElementById('chart').getBoundingClientRect(), l = tarn.layout; return [b.x + l.x + l.width * 0.4, b.y + l.map.y + l.map.height * 0.8]; })()")
    page.hover(x, y)
    assert "tensor_" in page.run("document.getElementById('tip').textContent")
    page.click(x, y)
    assert "tensor_" in title(page)
    drawn = page.run("(() => { const t = performance.now(); tarn.drawBase(); return performance.now() - t; })()")
    print(f"# 100,000 storages: loaded in {page.run('tarn.loaded'):.0f} ms, drawn again in {drawn:.0f} ms")


def many_streams_have_rows_and_colours():
    graph = large_graph("many.json", 3000, 60)
    page = opened(graph, fragment="#colour=stream&theme=dark")
    assert page.run("tarn.plan.streams.length === 60 && tarn.layout.rows.height < tarn.layout.whole.height / 2")
    v = page.run("tarn.plan.lists[59][0]")
    page.hover(*at_launch(page, v))
    assert "stream 59" in page.run("document.getElementById('tip').textContent")


def times_of_a_trace_are_an_axis():
    tarn("plan", FIGURE2, "-o", "real.plan")
    tarn("run", FIGURE2, "real.plan", "--check", "--iterations", "3", "--trace", "real.json")
    page = opened(FIGURE2, "real.plan", "--trace", "real.json")
    assert page.run("tarn.axis.key") == "real" and title(page) == "Real times"
    page.key("1")
    page.key("4")
    assert page.run("tarn.axis.key") == "real"
    assert page.run("tarn.plan.launches") == page.run("tarn.axis.begin.filter((begin, v) => begin <= tarn.axis.end[v]).length")


def a_small_window_shows_all_parts():
    page = opened(FIGURE2, width=800, height=600)
    assert page.run("tarn.layout.map.height >= 40 && document.getElementById('panel').getBoundingClientRect().top > 300")


# What is on the canvas, read from a copy: Chromium warns of a canvas that is read more than once.
COPY = """(() => {
  const { canvas } = document.getElementById("base").getContext("2d"), copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const g = copy.getContext("2d", { willReadFrequently: true });
  g.drawImage(canvas, 0, 0);
  return g;
})()"""

RESIZED = """new Promise((done) => {
  const chart = document.getElementById("chart");
  const observer = new ResizeObserver(() => { // behind the page's own, before anything is shown
    const base = COPY, { width, height } = base.canvas, pixels = base.getImageData(0, 0, width, height).data;
    let empty = 0, black = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      empty += pixels[i + 3] === 0;
      black += pixels[i + 3] > 0 && pixels[i] + pixels[i + 1] + pixels[i + 2] === 0;
    }
    if (Math.abs(width - HERE) > 2) return;
    observer.disconnect();
    done([empty, black / (width * height), width]);
  });
  observer.observe(chart);
  chart.style.width = HERE + "px";
})"""


def the_chart_is_drawn_in_the_call_that_resizes_it():
    page = opened(GOOGLENET)
    for width in (700, 900, 650):
        empty, black, drawn = page.run(RESIZED.replace("HERE", str(width)).replace("COPY", COPY))
        assert empty == 0 and black < 0.2 and abs(drawn - width) <= 2, (width, empty, black, drawn)


def ten_screenshots_show_the_same_picture():
    tarn("show", os.path.join(SOURCE, "examples/graphs/bert_base_b1_adam.ddp.json.gz"), "-o", "bert.html")
    taken = {chromium.screenshot("bert.html", f"bert{i}.png", 1400, 900, "#theme=light") for i in range(10)}
    assert len(taken) == 1, [len(one) for one in taken]
    page = browser.open("bert.html", 1400, 900, "#theme=light")
    page.screenshot("settled.png")
    with open("settled.png", "rb") as file:
        assert len(file.read()) * 0.8 < len(*taken)  # the whole picture, not an empty page


def paper_gets_the_whole_picture_in_light_colours():
    page = opened(GOOGLENET, fragment="#theme=dark")
    before, theme = ink(page), "document.documentElement.dataset.theme"
    page.run("dispatchEvent(new Event('beforeprint'))")
    assert page.run(theme) == "light" and ink(page) != before
    strip = "new Set(COPY.getImageData(tarn.layout.strip.x, tarn.layout.map.y, tarn.layout.strip.width, tarn.layout.map.height).data).size".replace("COPY", COPY)
    assert page.run(strip) > 2, "the strip is not on the canvas that is printed"
    assert page.run("getComputedStyle(document.getElementById('toolbar')).display + getComputedStyle(document.getElementById('over')).display") == "nonenone"
    page.run("dispatchEvent(new Event('afterprint'))")
    page.settle()
    assert page.run(theme) == "dark" and ink(page) == before
    assert page.pdf().startswith(b"%PDF") and ink(page) == before


def panel_of(page, name):
    page.run(f"tarn.choose({{ holder: tarn.plan.holder.name.indexOf({json.dumps(name)}) }})")
    return page.run("document.getElementById('panel').textContent")


def words_of_the_graph_are_told():
    data = os.path.join(SOURCE, "tests/data/valid")
    page = opened(os.path.join(data, "conditional.json"))
    panel = panel_of(page, "a")
    assert "There only where conditional 0 takes arm 0." in panel and "Same bytes where another arm is taken" in panel, panel
    assert "where conditional 0 takes arm 1" in panel and "There is no way" not in panel, panel
    certified = page.run("[...tarn.plan.holder.certified].reduce((sum, one, h) => sum + one * (tarn.plan.holder.size[h] + tarn.plan.holder.padding[h]), 0)")
    assert certified == page.run("tarn.plan.bound")
    page.run("tarn.choose(null)")
    assert "all arms are drawn" in page.run("document.getElementById('panel').textContent")
    panel = panel_of(opened(os.path.join(data, "slices.json")), "both")
    assert "Slices" in panel and "both.right32 – 96" in panel, panel
    panel = panel_of(opened(os.path.join(data, "fixed_offsets.json")), "x")
    assert "fixed by the graph" in panel or "preferred by the graph" in panel or "the graph prefers" in panel, panel


def gaps_and_moves_are_joined_by_lines():
    with open("gaps.csv", "w", encoding="utf-8") as file:
        file.write("id,lower,upper,size,gaps\na,0,9,4096,3-5\nb,3,5,4096,\n")
    page = opened("gaps.csv")
    page.run("tarn.setAxis('order')")
    assert "contiguous group2 members" in panel_of(page, "a@5")
    moves = os.path.join(SOURCE, "examples/graphs/offload.json")
    with open(moves, encoding="utf-8") as file:
        graph = json.load(file)
    for op in graph["ops"]:  # the copies of the example, as moves
        sizes = [graph["tensors"][t]["size"] for t in op["inputs"] + op["outputs"]]
        spaces = [graph["tensors"][t].get("space", 0) for t in op["inputs"] + op["outputs"]]
        if len(op["inputs"]) == len(op["outputs"]) == 1 and sizes[0] == sizes[1] and spaces[0] != spaces[1] and not op.get("workspace"):
            op["move"] = True
    with open("moves.json", "w", encoding="utf-8") as file:
        json.dump(graph, file)
    page = opened("moves.json")
    moved = page.run("tarn.plan.moves.map(([v, from, to]) => [tarn.plan.holder.name[from], tarn.plan.holder.name[to]])")
    assert moved, "the example has no moves"
    for one, other in moved:
        assert "Moved" in panel_of(page, one) and other in panel_of(page, one)
        assert one in panel_of(page, other)


def no_page_complains_or_loads_anything():
    assert len(pages) >= 10
    for page in pages:
        assert not page.complaints, page.complaints
        assert len(page.requests) == 1 and page.requests[0].startswith("file:"), page.requests


def ask():
    global browser
    with chromium.Chromium() as browser:
        rules.run(globals(), SOURCE)


if chromium.program() is None:
    if "browser" in os.environ.get("TARN_REQUIRE", "").split(","):
        print("1..1\nnot ok 1 - a_browser_is_here: there is no Chromium, and it was asked for")
        raise SystemExit(1)
    print("1..0 # SKIP there is no Chromium")
else:
    ask()
