// Draws what depends on the pointer and the selection: outlines, ways, the cursor, and the arena's strip.

function drawOver() {
  const g = over;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, layout.whole.width, layout.whole.height);
  clipTo(g, layout.map, () => outlineInMap(g));
  clipTo(g, layout.rows, () => outlineInRows(g));
  if (state.chosen && state.chosen.range) drawRange(g, state.chosen.range);
  drawStrip(g);
  drawCursor(g);
  if (state.hover && state.hover.box) {
    const [x, y, width, height] = state.hover.box;
    g.strokeStyle = colours.accent;
    g.strokeRect(x, y, width, height);
  }
}

function drawBase() {
  base.setTransform(ratio, 0, 0, ratio, 0, 0);
  base.fillStyle = colours.bg;
  base.fillRect(0, 0, layout.whole.width + 1, layout.whole.height + 1);
  drawOverview(base);
  drawCurve(base);
  drawMap(base);
  drawRows(base);
}

// ---- In the map ----

function outlineHolder(g, h, colour, dashes, width) {
  const { offset, size } = plan.holder;
  const x = toX(axis.from[h]), right = toX(axis.to[h]), y = toY(offset[h] + size[h]), bottom = toY(offset[h]);
  g.strokeStyle = g.fillStyle = colour;
  if (bottom - y < 7) {
    g.globalAlpha = width > 2 ? 0.9 : 0.45;
    g.fillRect(x, y, Math.max(2, right - x), Math.max(1.5, bottom - y));
    g.globalAlpha = 1;
    return;
  }
  g.setLineDash(dashes);
  g.lineWidth = width;
  g.strokeRect(x - 1, y - 1, Math.max(3, right - x + 1), bottom - y + 1);
  g.setLineDash([]);
}

function outlineInMap(g) {
  const { chosen, hover } = state, what = hover && hover.what;
  if (chosen && chosen.holder !== undefined) {
    for (const near of state.near.before) if (!near.isOther) outlineHolder(g, near.holder, colours.ink, [3, 3], 1.25);
    for (const near of state.near.after) if (!near.isOther) outlineHolder(g, near.holder, colours.ink, [1, 3], 1.25);
    outlineHolder(g, chosen.holder, colours.accent, [], 2.5);
  }
  if (chosen && chosen.launch !== undefined)
    for (const h of plan.holdersOf.of(chosen.launch)) outlineHolder(g, h, colours.accent, plan.holder.writer[h] === chosen.launch ? [] : [4, 2], 2);
  if (chosen && chosen.violation !== undefined) {
    const violation = plan.violations[chosen.violation];
    for (const h of storagesOf(violation)) outlineHolder(g, h, colours.warn, [], 3);
    drawWrongBytes(g, violation);
  }
  if (what && what.holder !== undefined) outlineHolder(g, what.holder, colours.ink, [], 1.5);
  if (what && what.launch !== undefined) for (const h of plan.holdersOf.of(what.launch)) outlineHolder(g, h, colours.ink, [], 1.25);
}

// A choice of bytes, across the map.
function drawRange(g, [begin, end]) {
  const y = toY(end), height = Math.max(2, toY(begin) - y);
  clipTo(g, layout.map, () => {
    g.globalAlpha = 0.12;
    g.fillStyle = colours.accent;
    g.fillRect(layout.x, y, layout.width, height);
    g.globalAlpha = 1;
    g.strokeStyle = colours.accent;
    g.lineWidth = 1.25;
    g.strokeRect(layout.x - 2, y, layout.width + 4, height);
  });
}

// ---- In the rows ----

function outlineLaunch(g, v, colour, alpha) {
  const { row } = layout.rows, x = toX(axis.begin[v]), y = rowY(plan.launch.stream[v]);
  const width = Math.max(2.5, toX(axis.end[v]) - x);
  g.globalAlpha = alpha;
  g.fillStyle = g.strokeStyle = colour;
  g.fillRect(x, y + 1, width, Math.max(1, row - 2));
  g.globalAlpha = 1;
  g.lineWidth = 1.5;
  g.strokeRect(x, y + 1, width, Math.max(1, row - 2));
  if (alpha > 0.5) nameLaunch(g, v, x, width, y, row, colour);
}

// The launches that may run while a storage lives, or beside a launch.
function shadeMeanwhile(g, intervals) {
  intervals.forEach(({ from, to }, s) => {
    if (from >= to) return;
    const list = plan.lists[s], x = toX(axis.begin[list[from]]), right = toX(axis.end[list[to - 1]]);
    g.globalAlpha = 0.22;
    g.fillStyle = colours.accent;
    g.fillRect(x, rowY(s), Math.max(1, right - x), layout.rows.row);
    g.globalAlpha = 1;
    g.fillRect(x, rowY(s), 1.5, layout.rows.row);
    g.fillRect(right - 1.5, rowY(s), 1.5, layout.rows.row);
  });
}

function outlineInRows(g) {
  const { chosen, hover } = state, what = hover && hover.what;
  if (chosen && state.meanwhile) shadeMeanwhile(g, state.meanwhile);
  if (chosen && chosen.holder !== undefined)
    for (const touch of touchesOf(chosen.holder)) outlineLaunch(g, touch.launch, colours.accent, touch.writes ? 0.6 : 0.3);
  if (chosen && chosen.launch !== undefined) {
    outlineLaunch(g, chosen.launch, colours.accent, 0.9);
    for (const on of plan.waits.of(chosen.launch)) drawArrow(g, on, chosen.launch, colours.accent, true);
    for (const waiter of plan.waiters.of(chosen.launch)) drawArrow(g, chosen.launch, waiter, colours.ink, true);
  }
  if (chosen && chosen.violation !== undefined) {
    const violation = plan.violations[chosen.violation];
    for (const v of launchesOf(violation)) outlineLaunch(g, v, colours.warn, 0.9);
  }
  for (const way of state.ways) if (way) drawWay(g, way);
  if (what && what.launch !== undefined) outlineLaunch(g, what.launch, colours.ink, 0.25);
  if (what && what.holder !== undefined) for (const touch of touchesOf(what.holder)) outlineLaunch(g, touch.launch, colours.ink, touch.writes ? 0.6 : 0.15);
}

// Along streams and waits; steps in the previous iteration come in from the left edge.
function drawWay(g, way) {
  const middle = (v) => rowY(plan.launch.stream[v]) + layout.rows.row / 2;
  const crossing = way.findIndex((step) => step.how === "boundary" || step.how === "next");
  g.strokeStyle = g.fillStyle = colours.ink;
  g.lineWidth = 2;
  g.beginPath();
  for (let i = Math.max(1, crossing); i < way.length; i++) {
    const from = way[i - 1].launch, to = way[i].launch, x = toX(axis.begin[to]);
    if (i === crossing) {
      g.moveTo(layout.x, middle(from));
      g.lineTo(x, middle(to));
    } else {
      g.moveTo(toX(axis.end[from]), middle(from));
      g.lineTo(x, middle(to));
    }
  }
  g.stroke();
  const last = way.at(-1).launch;
  g.beginPath();
  g.arc(toX(axis.begin[last]), middle(last), 3.5, 0, 7);
  g.fill();
}

// ---- The strip ----

function stripMoment() {
  if (state.hover && state.hover.x !== null) return state.hover.x;
  return state.chosen && state.chosen.moment !== undefined ? state.chosen.moment : restingMoment();
}

function drawHole(g, begin, end) {
  const { x, width } = layout.strip, y = toY(end), bottom = toY(begin);
  if (bottom < layout.map.y || y > layout.map.y + layout.map.height || bottom - y < 1) return;
  g.strokeStyle = colours.warn;
  g.lineWidth = 1;
  g.strokeRect(x + 0.5, y + 0.5, width - 1, Math.max(1, bottom - y - 1));
  if (bottom - y < 6) return;
  g.beginPath();
  g.moveTo(x, y);
  g.lineTo(x + width, bottom);
  g.moveTo(x, bottom);
  g.lineTo(x + width, y);
  g.stroke();
}

function drawStripHolder(g, h, moment) {
  const { x, width } = layout.strip, { offset, size } = plan.holder;
  const y = snapped(toY(offset[h] + size[h])), height = snapped(toY(offset[h])) - y;
  g.fillStyle = moment < axis.to[h] ? shadeOf(h) : fills[classOf(h)].hatch;
  g.fillRect(x, y, width, Math.max(1 / ratio, height - (height > 3 ? 1 : 0)));
  const isChosen = state.chosen && state.chosen.holder === h;
  if (!isChosen) return;
  g.strokeStyle = colours.accent;
  g.lineWidth = 2;
  g.strokeRect(x + 1, y, width - 2, Math.max(2, height));
}

function drawStrip(g) {
  const { x, width } = layout.strip, part = layout.map, moment = stripMoment();
  let end = bottom(), free = 0;
  g.save();
  g.beginPath();
  g.rect(x, part.y, width, part.height);
  g.clip();
  g.fillStyle = colours.hole;
  g.fillRect(x, part.y, width, part.height);
  const hole = (from, to) => {
    free += to - from;
    drawHole(g, from, to);
  };
  const holders = holdersAt(moment);
  for (const space of shownSpaces()) {
    for (const h of holders.filter((one) => plan.spaces[spaceOf(one)] === space)) {
      if (plan.holder.offset[h] > end) hole(end, plan.holder.offset[h]);
      drawStripHolder(g, h, moment);
      end = Math.max(end, endOf(h));
    }
    if (end < space.begin + space.footprint) hole(end, space.begin + space.footprint);
    end = space.begin + space.footprint;
  }
  drawSpaceEnds(g, x, width);
  g.restore();
  g.strokeStyle = colours.line;
  g.lineWidth = 1;
  g.strokeRect(x - 0.5, part.y - 0.5, width + 1, part.height + 1);
  const isElsewhere = (state.hover && state.hover.x !== null) || (state.chosen && state.chosen.moment !== undefined);
  write(g, isElsewhere ? "here" : axis.mark ? markWords().at : "at the peak", x + width / 2, part.y - 7, colours.soft, "center");
  const colour = free ? colours.warn : colours.soft;
  write(g, free ? bytesText(free) : "nothing", x + width / 2, part.y + part.height + 14, colour, "center");
  write(g, "free", x + width / 2, part.y + part.height + 27, colour, "center");
}

function drawCursor(g) {
  const { chosen, hover } = state;
  const lines = [];
  if (chosen && chosen.moment !== undefined) lines.push([chosen.moment, [], colours.accent]);
  if (hover && hover.x !== null) lines.push([hover.x, [2, 3], colours.soft]);
  for (const [moment, dashes, colour] of lines) {
    const x = snapped(toX(moment)) + 0.5;
    if (x < layout.x || x > layout.x + layout.width) continue;
    g.strokeStyle = colour;
    g.lineWidth = 1;
    g.setLineDash(dashes);
    g.beginPath();
    g.moveTo(x, layout.curve.y);
    g.lineTo(x, layout.rows.y + layout.rows.height);
    g.stroke();
    g.setLineDash([]);
  }
}
