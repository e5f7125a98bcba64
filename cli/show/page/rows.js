// The streams, a row each, with their launches, the waits between them and the cut.

const WAITS_MAX = 400; // arrows; more would cover everything

function drawRows(g) {
  const part = layout.rows;
  plan.lists.forEach((list, s) => drawRowHead(g, s));
  clipTo(g, part, () => {
    plan.lists.forEach((list, s) => drawLaunches(g, list, s));
    if (axis.next) drawNextIteration(g);
    if (state.found) markFoundLaunches(g);
    if (axis.mark) drawMarkBand(g, part);
    else if (plan.cut && state.show.certificate) drawStaircase(g);
  });
  if (state.show.waits) drawWaits(g);
  drawAxis(g);
}

function drawRowHead(g, s) {
  const { row } = layout.rows, y = rowY(s), gap = row > 8 ? 2 : row > 3 ? 1 : 0;
  g.fillStyle = colours.row;
  g.fillRect(layout.x, y + gap / 2, layout.width, row - gap);
  g.fillStyle = colours.streams[s];
  g.fillRect(layout.x - 6, y + gap / 2, 3, row - gap);
  if (s % Math.ceil(12 / row) !== 0) return;
  const colour = state.focus === s ? colours.accent : colours.soft;
  write(g, shortened(streamName(s), 14), layout.x - 12, y + row / 2 + 4, colour, "right");
}

// Launches too narrow to be drawn darken their pixels by how much of them they cover.
function drawLaunches(g, list, s) {
  const { row } = layout.rows, y = rowY(s) + (row > 8 ? 2 : 0), height = Math.max(row - (row > 8 ? 4 : row > 3 ? 1 : 0), 0.2);
  const cover = new Float32Array(Math.ceil(layout.width) + 2), byStream = state.colour === "stream";
  const colour = byStream ? colours.streams[s] : colours.op, wide = [];
  let first = 0;
  for (let low = 0, high = list.length; low < high;) {
    const middle = (low + high) >> 1;
    if (axis.end[list[middle]] < view.x0) low = middle + 1;
    else high = middle;
    first = low;
  }
  for (let place = first; place < list.length && axis.begin[list[place]] <= view.x1; place++) {
    const v = list[place], x = toX(axis.begin[v]), width = toX(axis.end[v]) - x;
    if (width >= 3) wide.push([v, x, width, place]);
    else addCover(cover, x - layout.x, width);
  }
  g.fillStyle = colour;
  drawCover(g, cover, y, height);
  for (const [v, x, width, place] of wide) {
    g.fillStyle = byStream ? colour : place & 1 ? colours.op : colours.op2;
    g.fillRect(x, y, width - 1, height);
    writeLaunch(g, v, x, width, y, height, byStream ? colour : place & 1 ? colours.op : colours.op2);
  }
}

function addCover(cover, from, width) {
  const begin = Math.max(0, from), end = Math.max(begin, from + Math.max(width, 0.02));
  for (let pixel = Math.floor(begin); pixel < end && pixel < cover.length; pixel++)
    cover[pixel] += Math.min(end, pixel + 1) - Math.max(begin, pixel);
}

function drawCover(g, cover, y, height) {
  const level = (pixel) => Math.min(8, Math.ceil(cover[pixel] * 8));
  for (let pixel = 0, next; pixel < cover.length; pixel = next) {
    for (next = pixel + 1; next < cover.length && level(next) === level(pixel);) next++;
    if (level(pixel) === 0) continue;
    g.globalAlpha = 0.25 + (0.75 * level(pixel)) / 8;
    g.fillRect(layout.x + pixel, y, next - pixel, height);
  }
  g.globalAlpha = 1;
}

function writeLaunch(g, v, x, width, y, height, colour) {
  if (plan.again.has(v) && height > 5) { // done again: a corner
    g.fillStyle = colours.ink;
    g.beginPath();
    g.moveTo(x, y);
    g.lineTo(x + Math.min(7, width), y);
    g.lineTo(x, y + Math.min(7, height));
    g.fill();
  }
  nameLaunch(g, v, x, width, y, height, colour);
}

function nameLaunch(g, v, x, width, y, height, colour) {
  if (width < 36 || height < 10) return;
  const left = Math.max(x, layout.x), right = Math.min(x + width, layout.x + layout.width);
  if (right - left > 30) write(g, fitted(g, launchName(v), right - left - 7), left + 4, y + height / 2 + 4, inkOn(colour));
}

function markFoundLaunches(g) {
  const { row } = layout.rows;
  g.fillStyle = colours.accent;
  for (const { launch } of search.matches) {
    if (launch === undefined || axis.end[launch] < view.x0 || axis.begin[launch] > view.x1) continue;
    const x = toX(axis.begin[launch]), height = Math.min(4, row);
    g.fillRect(x, rowY(plan.launch.stream[launch]) + row - height, Math.max(1.5, toX(axis.end[launch]) - x), height);
  }
}

function drawWaits(g) {
  const shown = [];
  for (let v = 0; v < plan.launches; v++)
    for (const on of plan.waits.of(v)) {
      if (axis.begin[v] < view.x0 || axis.end[on] > view.x1) continue;
      if (shown.length === WAITS_MAX) return write(g, "more than " + WAITS_MAX + " waits: zoom in to see them", layout.x, layout.rows.y + layout.rows.height + 31, colours.soft);
      shown.push([on, v]);
    }
  clipTo(g, layout.rows, () => {
    g.globalAlpha = shown.length > 60 ? 0.3 : 0.6;
    for (const [from, to] of shown) drawArrow(g, from, to, colours.ink, shown.length <= 60);
  });
}

// From the end of one launch to the start of another.
function drawArrow(g, from, to, colour, hasHead) {
  const { row } = layout.rows, a = plan.launch.stream[from], b = plan.launch.stream[to], down = b > a ? 1 : -1;
  const x = toX(axis.end[from]), x2 = toX(axis.begin[to]), bend = Math.min(40, 6 + Math.abs(x2 - x) / 2) * 0.3;
  const y = rowY(a) + (down > 0 ? row * 0.85 : row * 0.15), y2 = rowY(b) + (down > 0 ? row * 0.1 : row * 0.9);
  g.strokeStyle = g.fillStyle = colour;
  g.lineWidth = 1;
  g.beginPath();
  g.moveTo(x, y);
  g.bezierCurveTo(x + bend, y + down * 8, x2 - bend, y2 - down * 10, x2, y2 - (hasHead ? down * 3 : 0));
  g.stroke();
  if (!hasHead) return;
  g.beginPath();
  g.moveTo(x2, y2 + down * 0.5);
  g.lineTo(x2 - 2.6, y2 - down * 4.5);
  g.lineTo(x2 + 2.6, y2 - down * 4.5);
  g.fill();
}

// On axes that do not go through it the cut lies between two launches of each stream, as straight
// as it can be.
function drawStaircase(g) {
  const low = plan.cut.map((count, s) => (count ? axis.end[plan.lists[s][count - 1]] : 0));
  const high = plan.cut.map((count, s) => (count < plan.lists[s].length ? axis.begin[plan.lists[s][count]] : axis.top));
  // Rows that are low have the upright parts alone: dashes across all of them would cover the launches.
  const isLow = layout.rows.row < 10, middle = low.slice().sort((a, b) => a - b)[low.length >> 1];
  g.strokeStyle = colours.ink;
  g.lineWidth = 1.75;
  if (!isLow) g.setLineDash([5, 3]);
  g.beginPath();
  low.forEach((at, s) => {
    const x = Math.max(layout.x - 9, Math.min(layout.x + layout.width + 9, toX(Math.max(at, Math.min(high[s], middle)))));
    if (isLow) g.moveTo(x, rowY(s));
    g.lineTo(x, rowY(s));
    g.lineTo(x, rowY(s + 1));
  });
  g.stroke();
  g.setLineDash([]);
}

function drawAxis(g) {
  const y = layout.rows.y + layout.rows.height;
  for (const at of ticksBetween(view.x0, view.x1, layout.width / 110, false)) {
    const x = snapped(toX(at));
    g.fillStyle = colours.line;
    g.fillRect(x, y, 1, 4);
    if (axis.isTime || at % 1 === 0) write(g, timeText(at).replace("step ", ""), x, y + 16, colours.soft, "center");
  }
  write(g, axis.isTime ? "time" : "step", layout.x - 26, y + 16, colours.faint, "right");
}
