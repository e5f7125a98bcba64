// Handles the pointer: finds the object under it, and moves the view.

let pressed = null; // the point at which it went down, and its action there

// The object at a point of the chart: { holder }, { launch }, or null.
function whatIsAt(px, py) {
  if (px >= layout.strip.x) return isInside(py, layout.map) ? holderInStrip(fromY(py)) : null;
  if (px < layout.x || px > layout.x + layout.width) return null;
  if (isInside(py, layout.map)) return holderAt(fromX(px), fromY(py));
  return isInside(py, layout.rows) ? launchAt(fromX(px), Math.floor((py - layout.rows.y) / layout.rows.row)) : null;
}

function holderInStrip(bytes) {
  const h = holdersAt(stripMoment()).find((one) => plan.holder.offset[one] <= bytes && bytes < endOf(one));
  return h === undefined ? null : { holder: h };
}

// The nearest holder within two pixels; alive before held, small before large.
function holderAt(x, bytes) {
  const { offset, size } = plan.holder, perX = (view.x1 - view.x0) / layout.width, perY = (view.y1 - view.y0) / layout.map.height;
  let best = null, least = Infinity;
  for (let h = 0; h < plan.holders; h++) {
    const dx = Math.max(axis.from[h] - x, 0, x - axis.free[h]) / perX, dy = Math.max(offset[h] - bytes, 0, bytes - offset[h] - size[h]) / perY;
    if (dx > 2 || dy > 2) continue;
    const distance = dx + dy + (x > axis.to[h] ? 0.5 : 0) + (size[h] / footprint()) * 0.01;
    if (distance < least) [least, best] = [distance, { holder: h }];
  }
  return best;
}

function launchAt(x, s) {
  const list = plan.lists[Math.min(s, plan.lists.length - 1)], near = ((view.x1 - view.x0) / layout.width) * 3;
  let low = 0;
  for (let high = list.length; low < high;) {
    const middle = (low + high) >> 1;
    if (axis.end[list[middle]] <= x) low = middle + 1;
    else high = middle;
  }
  for (const place of [low, low - 1]) {
    const v = list[place];
    if (v !== undefined && axis.begin[v] - near <= x && x <= axis.end[v] + near) return { launch: v };
  }
  return null;
}

// ---- The tip ----

function tipText(px, py) {
  const { x, what } = state.hover;
  if (what && what.holder !== undefined) {
    const h = what.holder, v = plan.holder.writer[h];
    return [holderName(h), bytesText(plan.holder.size[h]), KINDS[plan.holder.kind[h]], hasSpaces() ? "in " + spaceName(spaceOf(h)) : "", "by " + launchName(v) + " in " + streamName(plan.launch.stream[v]),
      x !== null && x >= axis.to[h] ? "held" : "", plan.holder.certified[h] ? "certificate" : ""].filter(Boolean).join(" · ");
  }
  if (what && what.launch !== undefined) {
    const v = what.launch;
    return [launchName(v), plan.launch.kind[v], placeText(v), plan.again.has(v) ? "done again" : ""].filter(Boolean).join(" · ");
  }
  if (x === null || !isInside(py, layout.curve)) return "";
  const k = Math.max(0, lastNotAbove(axis.levelAt, x));
  return [timeText(x), bytesText(axis.levelAlive[k]) + " alive", bytesText(axis.levelTaken[k]) + " reserved"].join(" · ");
}

function showTip(px, py) {
  const text = state.hover ? tipText(px, py) : "";
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(layout.whole.width - tip.offsetWidth - 6, px + 14)) + "px";
  tip.style.top = (py > layout.whole.height - 60 ? py - 38 : py + 16) + "px";
}

// ---- Moving, choosing ----

function pointOf(event) {
  const { left, top } = chart.getBoundingClientRect();
  return [event.clientX - left, event.clientY - top];
}

// The action of a drag that begins there.
function dragOf(px, py, event) {
  if (py < layout.curve.y - 4) return "overview";
  if (isInside(py, layout.map) && (px < layout.x || px >= layout.strip.x)) return "range";
  return event.shiftKey ? "box" : "move";
}

chart.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  const [px, py] = pointOf(event);
  pressed = { px, py, view: { ...view }, moved: false, does: dragOf(px, py, event) };
  chart.setPointerCapture(event.pointerId);
});

function dragTo(px, py) {
  if (Math.abs(px - pressed.px) + Math.abs(py - pressed.py) > 3) pressed.moved = true;
  if (pressed.does === "overview") return showAround(((px - layout.x) / layout.width) * axis.top);
  if (!pressed.moved) return;
  if (pressed.does === "range") {
    state.chosen = { range: rangeTo(py) };
    return redrawOver();
  }
  if (pressed.does === "box") {
    state.hover = { x: null, what: null, box: [pressed.px, pressed.py, px - pressed.px, py - pressed.py] };
    return redrawOver();
  }
  chart.classList.add("dragged");
  const dx = ((pressed.px - px) / layout.width) * (pressed.view.x1 - pressed.view.x0);
  const dy = isInside(pressed.py, layout.map) ? ((py - pressed.py) / layout.map.height) * (pressed.view.y1 - pressed.view.y0) : 0;
  Object.assign(view, { x0: pressed.view.x0 + dx, x1: pressed.view.x1 + dx, y0: pressed.view.y0 + dy, y1: pressed.view.y1 + dy });
  limitView();
  redraw();
}

function rangeTo(py) {
  const clamp = (bytes) => Math.round(Math.max(bottom(), Math.min(summit(), bytes)));
  const ends = [clamp(fromY(pressed.py)), clamp(fromY(py))].sort((a, b) => a - b);
  return [ends[0], Math.max(ends[1], ends[0] + 1)];
}

function showAround(x) {
  const width = view.x1 - view.x0;
  view.x0 = x - width / 2;
  view.x1 = x + width / 2;
  limitView();
  redraw();
}

function zoomToBox(px, py) {
  const [left, right] = [fromX(Math.min(px, pressed.px)), fromX(Math.max(px, pressed.px))];
  if (isInside(pressed.py, layout.map)) [view.y0, view.y1] = [fromY(Math.max(py, pressed.py)), fromY(Math.min(py, pressed.py))];
  [view.x0, view.x1] = [left, right];
  state.hover = null;
  limitView();
  redraw();
}

chart.addEventListener("pointermove", (event) => {
  const [px, py] = pointOf(event);
  if (pressed) return dragTo(px, py);
  const isOnAxis = px >= layout.x && px <= layout.x + layout.width;
  state.hover = { x: isOnAxis ? Math.max(0, Math.min(axis.top - 1e-9, fromX(px))) : null, what: whatIsAt(px, py) };
  showTip(px, py);
  redrawOver();
});

function clickAt(px, py) {
  if (px < layout.x && isInside(py, layout.rows)) {
    const s = Math.floor((py - layout.rows.y) / layout.rows.row);
    state.focus = state.focus === s ? null : s;
    return redraw();
  }
  const what = whatIsAt(px, py), isOnAxis = px >= layout.x && px <= layout.x + layout.width;
  choose(what || (isOnAxis ? { moment: Math.max(0, Math.min(axis.top - 1e-9, fromX(px))) } : null));
}

chart.addEventListener("pointerup", (event) => {
  const was = pressed, [px, py] = pointOf(event);
  chart.classList.remove("dragged");
  if (!was) return;
  if (was.moved && was.does === "box") zoomToBox(px, py);
  else if (was.moved && was.does === "range") choose({ range: rangeTo(py) });
  else if (!was.moved && was.does !== "overview") clickAt(px, py);
  pressed = null;
});

chart.addEventListener("pointerleave", () => {
  if (pressed) return;
  state.hover = null;
  tip.hidden = true;
  redrawOver();
});

chart.addEventListener("dblclick", (event) => zoomTo(whatIsAt(...pointOf(event))));

chart.addEventListener("wheel", (event) => {
  event.preventDefault();
  const [px, py] = pointOf(event), unit = event.deltaMode ? 16 : 1;
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.shiftKey) return move((event.deltaX * unit) / layout.width, 0);
  const factor = Math.exp((event.deltaY || event.deltaX) * unit * 0.0016);
  zoom(factor, event.shiftKey ? null : px, event.shiftKey || event.ctrlKey ? py : null);
}, { passive: false });

// ---- In the panel ----

const linkIn = (event) => event.target.closest("a[data-what]");

byId("panel").addEventListener("click", (event) => {
  const to = linkIn(event);
  if (!to) return;
  event.preventDefault();
  choose(JSON.parse(to.dataset.what), true);
});

byId("panel").addEventListener("mouseover", (event) => {
  const to = linkIn(event), way = event.target.closest(".way");
  state.hover = null;
  if (to) {
    const what = JSON.parse(to.dataset.what);
    if (what.persistent === undefined) state.hover = { x: null, what };
  }
  if (way) {
    state.ways = waysBetween(+way.dataset.earlier, way.dataset.previous !== "", +way.dataset.later);
    for (const other of document.querySelectorAll(".way")) other.classList.toggle("shown", other === way);
  }
  redrawOver();
});
