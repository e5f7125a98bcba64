// Fills the panel, which describes the selection in words. Every name in it is a link to the thing named.

const heading = (text) => element("h3", null, text);
const note = (...children) => element("p", { className: "soft" }, ...children);
const row = (left, right) => element("tr", null, element("td", null, left), element("td", null, right));
const table = (...rows) => element("table", null, ...rows);
const amount = (bytes) => element("span", { className: "whole" }, bytesText(bytes));
const fact = (name, value) => row(element("span", { className: "soft" }, name), value);

function link(text, what) {
  return element("a", { href: "#", data: { what: JSON.stringify(what) } }, text);
}
const launchLink = (v) => [link(launchName(v), { launch: v }), " ", element("span", { className: "faint" }, placeText(v))];
const holderLink = (h) => element("span", { className: "named" }, swatch(fills[classOf(h)].plain), link(holderName(h), { holder: h }));

// The first `limit` of them, and how many more there are.
function someOf(items, limit, draw) {
  const more = items.length - limit;
  return [items.slice(0, limit).map(draw), more > 0 ? element("p", { className: "faint" }, "and " + countText(more) + " more") : null];
}

function holderTable(holders, limit, moment) {
  const [rows, more] = someOf(holders, limit, (h) =>
    row([holderLink(h), moment !== undefined && moment >= axis.to[h] ? element("span", { className: "faint" }, " held") : null], amount(plan.holder.size[h])));
  return [table(rows), more];
}

function drawPanel() {
  const { chosen } = state;
  state.ways = [];
  state.near = { before: [], after: [] };
  state.meanwhile = null;
  let parts;
  if (chosen && chosen.holder !== undefined) parts = holderPanel(chosen.holder);
  else if (chosen && chosen.launch !== undefined) parts = launchPanel(chosen.launch);
  else if (chosen && chosen.range) parts = rangePanel(...chosen.range);
  else if (chosen && chosen.persistent !== undefined) parts = persistentPanel(chosen.persistent);
  else if (chosen && chosen.violation !== undefined) parts = violationPanel(chosen.violation);
  else parts = momentPanel(chosen ? chosen.moment : undefined);
  byId("panel").replaceChildren(...parts.flat(3).filter(Boolean));
  byId("panel").scrollTop = 0;
}

function choose(what, reveals) {
  if (what && what.holder !== undefined && !isShown(what.holder)) setSpace(null);
  state.chosen = what;
  if (what && what.violation !== undefined) goToViolation(what.violation);
  drawPanel();
  if (what && reveals && (what.holder !== undefined || what.launch !== undefined)) reveal(what);
  redraw();
}

// ---- Ways ----

const HOW_TEXT = { order: " → ", wait: " ⇢ wait ⇢ ", boundary: " ⇢ wait, into the next iteration ⇢ ", next: " → next iteration → " };

function wayText(way) {
  if (!way) return element("div", { className: "warn" }, "There is no way: this plan is not safe here.");
  return element("div", null, way.map((step, i) => [i > 0 ? element(step.how.length > 5 || step.how === "wait" ? "b" : "span", null, HOW_TEXT[step.how]) : null, launchLink(step.launch)]));
}

// One neighbour with its ways; they are drawn over the streams while the pointer is on them.
function nearItem(near, earlier, later) {
  const ways = waysBetween(earlier, near.isOther, later);
  const where = near.isOther ? (earlier === near.holder ? ", in the iteration before" : ", in the iteration after") : "";
  const node = element("div", { className: "way", data: { earlier, later, previous: near.isOther ? 1 : "" } }, ways.map(wayText));
  return { ways, nodes: [element("div", null, holderLink(near.holder), " ", element("span", { className: "faint" }, bytesText(near.bytes) + where)), node] };
}

// ---- A storage ----

function holderPanel(h) {
  const { size, padding, group, kind, certified, writer } = plan.holder, touches = touchesOf(h);
  state.near.before = neighbours(h, -1);
  state.near.after = isPinned(h) ? [] : neighbours(h, 1);
  state.meanwhile = meanwhile(h);
  const before = state.near.before.slice(0, 5).map((near) => nearItem(near, near.holder, h));
  const after = state.near.after.slice(0, 5).map((near) => nearItem(near, h, near.holder));
  if (before.length) state.ways = before[0].ways;
  return [
    element("h2", null, swatch(fills[classOf(h)].plain), holderName(h)),
    note(KINDS[kind[h]] + (kind[h] === WORKSPACE ? "" : " storage"), certified[h] ? element("b", null, ", in the certificate") : null),
    table(
      fact("size", [bytesText(size[h]), element("span", { className: "faint" }, " " + countText(size[h]))]),
      padding[h] ? fact("padding behind it", countText(padding[h])) : "",
      hasSpaces() ? fact("memory space", spaceName(spaceOf(h))) : "",
      fact("offset", [countText(offsetOf(h)), element("span", { className: "faint" }, ruleText(h))]),
      group[h] ? fact("contiguous group", plural(plan.groups.get(group[h]).length, "member")) : "",
      fact("drawn", timeText(axis.from[h]) + " – " + timeText(axis.to[h])),
      axis.free[h] > axis.to[h] ? fact("then held until", timeText(axis.free[h])) : "",
    ),
    armsNote(writer[h], "There"),
    slicesPart(h),
    movesPart(h),
    heading("Written and read by"),
    someOf(touches, 12, (touch) => table(row(launchLink(touch.launch), touch.writes ? (touch.launch === writer[h] ? "writes" : "writes again") : "reads"))),
    isPinned(h) ? note("An output: nobody in this iteration has its bytes after it.") : null,
    insteadPart(h),
    heading("Same bytes before, and why its users are done"),
    before.map((item) => item.nodes),
    heading("Same bytes after"),
    after.length ? after.map((item) => item.nodes) : note("Nobody."),
    plan.streams.length > 1 ? [heading("In each stream, launches that may run while it lives"), meanwhileTable(state.meanwhile)] : null,
  ];
}

function ruleText(h) {
  const rule = plan.rules.get(h);
  if (!rule) return "";
  return rule.fixed ? " fixed by the graph" : rule.wanted === offsetOf(h) ? " preferred by the graph" : " the graph prefers " + countText(rule.wanted);
}

function armsNote(v, what) {
  const arms = plan.arms.get(v);
  return arms ? note(what + " only where " + arms.map(([conditional, arm]) => "conditional " + conditional + " takes arm " + arm).join(" and ") + ".") : null;
}

function slicesPart(h) {
  const slices = plan.slices.get(h);
  return slices ? [heading("Slices"), someOf(slices, 12, ([name, offset, size]) => table(row(name, countText(offset) + " – " + countText(offset + size))))] : null;
}

// Copies of it that are moves: the same contents in other bytes.
function movesPart(h) {
  const moves = plan.moves.filter(([, from, to]) => from === h || to === h);
  if (!moves.length) return null;
  return [heading("Moved"), moves.map(([v, from, to]) => element("div", null, from === h ? "to " : "from ", holderLink(from === h ? to : from), " by ", launchLink(v)))];
}

function insteadPart(h) {
  const others = instead(h);
  if (!others.length) return null;
  return [
    heading("Same bytes where another arm is taken"),
    someOf(others, 8, ({ holder, bytes, conditional, other }) =>
      element("div", null, holderLink(holder), " ", element("span", { className: "faint" }, bytesText(bytes) + ", where conditional " + conditional + " takes arm " + other))),
  ];
}

function meanwhileTable(intervals, own) {
  const shown = intervals.map((interval, s) => ({ ...interval, s })).filter(({ s }) => s !== own);
  return someOf(shown, 24, ({ from, to, s }) =>
    table(row(streamName(s), from < to ? "#" + from + " – #" + (to - 1) + (to === plan.lists[s].length ? " (end)" : "") : element("span", { className: "faint" }, "none"))));
}

// ---- A launch ----

function launchPanel(v) {
  const { stream, place, kind, cost, op } = plan.launch, holders = [...plan.holdersOf.of(v)];
  const writes = (h) => touchesOf(h).some((touch) => touch.launch === v && touch.writes);
  const written = holders.filter(writes), read = holders.filter((h) => !writes(h));
  const lists = (title, launches, how) => launches.length ? [heading(title), someOf([...launches], 10, (u) => element("div", null, launchLink(u), how || ""))] : null;
  state.meanwhile = besides(v);
  return [
    element("h2", null, launchName(v)),
    note(kind[v]),
    table(
      fact("stream", streamName(stream[v])),
      fact("launch", "#" + place[v] + " of " + plan.lists[stream[v]].length),
      fact("op in the graph", op[v]),
      plan.hasCosts ? fact("modelled cost", countText(cost[v]) + " ns") : "",
      fact("drawn", timeText(axis.begin[v]) + " – " + timeText(axis.end[v])),
    ),
    armsNote(v, "Runs"),
    plan.again.has(v) ? againPart(v, written) : null,
    lists("Waits for", plan.waits.of(v)),
    lists("Waits for, of the iteration before", plan.previous.of(v)),
    lists("Is waited for by", plan.waiters.of(v)),
    lists("Is waited for in the next iteration by", plan.nextWaiters.of(v)),
    written.length ? [heading("Writes"), holderTable(written, 20)] : null,
    read.length ? [heading("Reads, in the arena"), holderTable(read, 20)] : null,
    plan.streams.length > 1 ? [heading("In each other stream, launches that may run beside it"), meanwhileTable(state.meanwhile, stream[v])] : null,
  ];
}

// Work that is done again so that its results need not be kept.
function againPart(v, written) {
  const first = plan.again.get(v), kept = [...plan.holdersOf.of(first)].filter((h) => plan.holder.writer[h] === first);
  const done = kept.reduce((last, h) => Math.max(last, axis.to[h]), axis.end[first]);
  const bytes = written.reduce((sum, h) => sum + (plan.holder.writer[h] === v ? plan.holder.size[h] : 0), 0);
  return [
    heading("Done again"),
    note("It repeats ", launchLink(first), ", so that ", element("b", null, bytesText(bytes)), " need not be kept: from ", timeText(done), " to ", timeText(axis.begin[v]), " others may have these bytes."),
  ];
}

// ---- A range of bytes ----

function rangePanel(begin, end) {
  const { offset, writer } = plan.holder, inside = [], zero = plan.spaces[spaceAt(begin)].begin;
  for (let h = 0; h < plan.holders; h++) if (offset[h] < end && endOf(h) > begin) inside.push(h);
  inside.sort((a, b) => writer[a] - writer[b]);
  return [
    element("h2", null, "Bytes " + countText(Math.round(begin - zero)) + " – " + countText(Math.round(end - zero)) + (hasSpaces() ? " of " + spaceName(spaceAt(begin)) : "")),
    note(bytesText(Math.round(end - begin)) + " of the arena, which " + plural(inside.length, "storage") + " have, one after the other:"),
    someOf(inside, 60, (h) => table(row([holderLink(h), " ", element("span", { className: "faint whole" }, timeText(axis.from[h]))], amount(plan.holder.size[h])))),
    note("Choose one to see who has its bytes before and after, and why that is safe."),
  ];
}

// ---- Persistent storages ----

function persistentPanel(i) {
  const [name, kind, offset, size, space] = plan.persistent[i];
  return [
    element("h2", null, name),
    note(kind + ": lives for ever, in a part of its own beside the arena"),
    table(fact("size", [bytesText(size), element("span", { className: "faint" }, " " + countText(size))]), hasSpaces() ? fact("memory space", spaceName(space)) : "", fact("offset in that part", countText(offset))),
  ];
}

function persistentPart() {
  const isHere = ([, , , , space]) => isSpaceShown(space);
  const largest = plan.persistent.map((one, i) => i).filter((i) => isHere(plan.persistent[i])).sort((a, b) => plan.persistent[b][3] - plan.persistent[a][3]);
  if (!largest.length) return null;
  return [
    heading("Lives for ever: " + plural(largest.length, "storage") + ", " + bytesText(shownFigures().persistentBytes)),
    someOf(largest, 5, (i) => table(row(link(plan.persistent[i][0] || plan.persistent[i][1], { persistent: i }), amount(plan.persistent[i][3])))),
  ];
}

// ---- Violations ----

function violationPanel(i) {
  const violation = plan.violations[i], { kind, text, witness } = violation, steps = [];
  for (let k = 0; k < witness.length; k += 2) steps.push({ launch: witness[k], iteration: witness[k + 1] });
  const concerned = launchesOf(violation), storages = storagesOf(violation);
  return [
    element("h2", { className: "warn" }, kind),
    note(text),
    concerned.length ? [heading("Launches"), concerned.map((v) => element("div", null, launchLink(v)))] : null,
    storages.length ? [heading("Storages"), holderTable(storages, 4)] : null,
    steps.length
      ? [heading("An order that corrupts" + (steps.length > 16 ? ": the last 16 of its " + countText(steps.length) + " steps" : "")),
        note("It is the x axis. All waits are kept; the last of these launches reads a wrong byte" + (steps.some((step) => step.iteration) ? "; hollow ones are of the next iteration." : ".")),
        witness.length && !concerned.includes(witness.at(-2)) ? note("It does not come to the launches above: what they do is wrong only after a first wrong read.") : null,
        steps.slice(-16).map((step) => element("div", null, launchLink(step.launch), step.iteration ? " of the next iteration" : ""))]
      : note("No order is known in which this corrupts a byte that is read."),
  ];
}

// ---- A moment ----

function axisText() {
  const others = " The streams may interleave otherwise; offsets are safe in all of those ways.";
  if (axis.key === "order") return "Launches one after another, in list order." + others;
  if (axis.key === "real") return "When launches really ran, by a trace of “tarn run --trace”.";
  if (axis.key === "wrong") return "A legal order, by this plan’s waits, at whose dashed lines a launch reads a wrong byte; behind them, what the order does not come to.";
  if (axis.key === "cut")
    return "One legal interleaving that runs into the bound’s certificate: between the dashed lines " + plural(axis.flight, "launch").replace(/launchs/, "launches") +
      (axis.flight === 1 ? " is" : " are") + " in flight at once, and no two of the outlined storages may share a byte." + others;
  return (plan.hasCosts ? "Every op takes its modelled cost and starts as soon as program order and waits allow; a wait takes 3 µs."
    : "The graph has no costs: every op takes one step, and starts as soon as program order and waits allow.") + others;
}

function legend() {
  const item = (mark, text) => element("li", null, mark, text);
  const classes = state.colour === "kind"
    ? KINDS.map((kind, k) => (plan.holder.kind.includes(k) ? item(swatch(fills[k].plain), kind) : null))
    : plan.streams.slice(0, 12).map((_, s) => item(swatch(fills[s].plain), "written by " + streamName(s)));
  const certified = plan.holder.certified.reduce((sum, one) => sum + one, 0);
  const padded = plan.holder.padding.some((padding) => padding > plan.footprint / 200);
  return element("ul", null, classes,
    state.colour === "stream" && plan.streams.length > 12 ? element("li", { className: "faint" }, "and so on: click a stream’s name to see its storages alone") : null,
    plan.streams.length > 1 ? item(swatch(null, "held"), "held: its uses have ended, but no stream that may overwrite it has waited for them yet") : null,
    plan.cut && isSpaceShown(0) ? item(swatch(null, "certificate"), "certificate" + (hasSpaces() ? " of " + spaceName(0) : "") + ": " + plural(certified, "storage") + " no two of which can share a byte; the dashed line in the rows is its cut") : null,
    plan.groups.size ? item(swatch(null, "group"), "contiguous group") : null,
    hasSpaces() && state.space === null ? item("━ ", "where one memory space ends and the next begins: " + plan.spaces.map((_, s) => spaceName(s)).join(", ")) : null,
    padded ? item(swatch(colours.grid), "pale: padding to the alignment of " + plan.alignment) : null,
    plan.again.size ? item("◤ ", "work that is done again") : null,
    plan.moves.length ? item("╌ ", "a move: the same contents in other bytes") : null,
    plan.arms.size ? item("◊ ", "conditionals: all arms are drawn, and what is of different arms may lie over each other") : null,
    item(swatch(null, "free"), "free at this moment"));
}

function usePart(moment) {
  const at = moment === undefined ? restingMoment() : moment, holders = holdersAt(at).sort((a, b) => plan.holder.size[b] - plan.holder.size[a]);
  const sum = (pick, amount) => holders.filter(pick).reduce((bytes, h) => bytes + amount(h), 0), size = (h) => plan.holder.size[h];
  const alive = sum((h) => at < axis.to[h], size), held = sum((h) => at >= axis.to[h], size), taken = sum(() => true, reservedOf);
  const free = Math.max(0, footprint() - taken), proved = axis.key === "cut" && moment === undefined && plan.gaps ? plan.bound - taken : 0;
  const where = moment !== undefined ? "In use at " + timeText(at) : axis.mark ? "In use " + markWords().at : "In use at the peak, " + timeText(at);
  return [
    heading(where + ": " + countText(holders.length)),
    note(bytesText(alive) + " alive" + (held ? ", " + bytesText(held) + " held" : "") + (taken - alive - held ? ", " + bytesText(taken - alive - held) + " padding" : "") + ", " + bytesText(free) + " free"
      + (proved > 0 ? "; " + (proved >= free ? "all of that" : bytesText(proved) + " of that") + " in holes of contiguous groups, which provably nothing else here can fill: the bound counts it" : "")),
    holderTable(holders, 14, at),
  ];
}

const KEYS = [
  ["W S + −", "zoom"], ["A D ← → ↑ ↓", "move"], ["0", "all"], ["Z", "zoom to what is chosen"], ["/", "search"], ["N", "next match"],
  ["[ ]", "who has the bytes before, after"], [", .", "storage written before, after"], ["1 … 5", "axis"], ["C", "colour"], ["M", "memory space"], ["T", "light or dark"], ["Esc", "back"],
];

function momentPanel(moment) {
  const title = { order: "List order", time: plan.hasCosts ? "Modelled time" : "Parallel steps", cut: "Through the cut", real: "Real times", wrong: "What breaks" }[axis.key];
  return [
    element("h2", null, title),
    note(axisText()),
    heading("Legend"),
    legend(),
    usePart(moment),
    persistentPart(),
    heading("Keys"),
    table(KEYS.map(([keys, text]) => row(element("span", { className: "whole" }, keys.split(" ").map((key) => [element("kbd", null, key), " "])), text))),
    note("The wheel zooms time, with Shift addresses. Drag to move, Shift and drag to zoom to a box, drag along the strip or the offsets to choose bytes. Click a stream’s name to see its storages alone."),
  ];
}
