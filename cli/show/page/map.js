// The map of the arena: every storage a rectangle of its bytes and its time. Storages that are low
// are mixed pixel by pixel (raster.js), the others drawn one by one.

// The holders that are drawn pale; null: none.
function paleness() {
  if (state.found) return (h) => !state.found[h];
  if (state.focus !== null) return (h) => plan.launch.stream[plan.holder.writer[h]] !== state.focus;
  if (axis.key === "wrong") return (h) => !storagesOf(axis.violation).includes(h);
  if (state.show.certificate && axis.key === "cut") return (h) => !plan.holder.certified[h] && spaceOf(h) === 0;
  return null;
}

function drawMap(g) {
  const part = layout.map;
  g.fillStyle = colours.hole;
  g.fillRect(layout.x, part.y, layout.width, part.height);
  const ticks = offsetTicks(part);
  g.fillStyle = colours.grid;
  for (const [offset] of ticks) g.fillRect(layout.x, snapped(toY(offset)), layout.width, 1);
  clipTo(g, part, () => {
    const pale = paleness(), strength = state.found || state.focus !== null ? 0.16 : 0.42;
    if (pale) drawHolders(g, strength, (h) => pale(h));
    drawHolders(g, 1, pale ? (h) => !pale(h) : () => true);
    if (state.show.groups) for (const members of plan.groups.values()) outlineGroup(g, members);
    for (const [, from, to] of plan.moves) joinHolders(g, from, to, colours.ink, 1);
    drawSpaceEnds(g, layout.x, layout.width);
    if (axis.mark) drawMarkBand(g, part);
  });
  for (const [offset, text] of ticks) write(g, shortened(text, 16), layout.x - 10, toY(offset) + 4, colours.soft, "right");
  write(g, "arena offset", layout.x, part.y - 7, colours.soft);
  if (axis.mark) {
    const x = (toX(axis.mark[0]) + toX(axis.mark[1])) / 2;
    if (x > layout.x + 90 && x < layout.x + layout.width - 20) write(g, markWords().name, x, part.y - 7, colours.ink, "center");
  }
}

// One pass over the holders that `picks` picks.
function drawHolders(g, alpha, picks) {
  const { offset, size } = plan.holder, part = layout.map, scale = part.height / (view.y1 - view.y0);
  const large = [];
  clearRaster();
  g.globalAlpha = alpha;
  for (let h = 0; h < plan.holders; h++) {
    if (axis.from[h] > view.x1 || axis.free[h] < view.x0 || offset[h] > view.y1 || offset[h] + size[h] < view.y0) continue;
    if (!picks(h)) continue;
    if (state.show.held && axis.free[h] > axis.to[h]) drawHeld(g, h, size[h] * scale, alpha);
    if (size[h] * scale * ratio >= 1.5) large.push(h);
    else addLow(h, axis.from[h], axis.to[h], alpha);
  }
  g.globalAlpha = 1;
  drawRaster(g);
  g.globalAlpha = alpha;
  const boxes = large.map((h) => drawLarge(g, h));
  g.globalAlpha = 1;
  if (alpha < 1) return;
  if (state.show.certificate && !state.found) outlineCertificate(g, large, boxes);
  large.forEach((h, i) => writeLabel(g, h, boxes[i]));
}

function addLow(h, from, to, weight) {
  const { offset, size } = plan.holder;
  const x0 = (toX(from) - layout.x) * ratio, x1 = (toX(to) - layout.x) * ratio;
  if (x1 < 0 || x0 > raster.width) return;
  const y0 = (toY(offset[h] + size[h]) - layout.map.y) * ratio, y1 = (toY(offset[h]) - layout.map.y) * ratio;
  addToRaster(x0, x1, y0, y1, fills[classOf(h)].rgb, weight);
}

function drawHeld(g, h, height, alpha) {
  if (height * ratio < 1.5) return addLow(h, axis.to[h], axis.free[h], alpha * 0.3);
  const x = snapped(toX(axis.to[h])), width = snapped(toX(axis.free[h])) - x;
  if (width < 1) return;
  const y = snapped(toY(plan.holder.offset[h] + plan.holder.size[h]));
  g.fillStyle = fills[classOf(h)].hatch;
  g.fillRect(x, y, width, Math.max(1, snapped(toY(plan.holder.offset[h])) - y));
}

// Returns its rectangle: [x, y, width, height], cut to what can be seen from left to right.
function drawLarge(g, h) {
  const { offset, size, padding } = plan.holder, pixel = 1 / ratio;
  const x = Math.max(snapped(toX(axis.from[h])), layout.x - 9), right = Math.min(snapped(toX(axis.to[h])), layout.x + layout.width + 9);
  const y = snapped(toY(offset[h] + size[h])), bottom = snapped(toY(offset[h]));
  const width = Math.max(pixel, right - x - (right - x > 4 ? 1 : 0)), height = Math.max(pixel, bottom - y - (bottom - y > 4 ? 1 : 0));
  g.fillStyle = shadeOf(h);
  g.fillRect(x, y, width, height);
  const padded = padding[h] > 0 ? y - toY(offset[h] + size[h] + padding[h]) : 0;
  if (padded > 2) {
    const alpha = g.globalAlpha;
    g.globalAlpha = alpha * 0.35;
    g.fillRect(x, y - padded, width, padded);
    g.globalAlpha = alpha;
  }
  return [x, y, width, height];
}

function outlineCertificate(g, holders, boxes) {
  g.strokeStyle = colours.ink;
  g.lineWidth = 1;
  g.globalAlpha = holders.length > 4000 ? 0.4 : 0.85;
  g.beginPath();
  holders.forEach((h, i) => {
    const [x, y, width, height] = boxes[i];
    if (plan.holder.certified[h] && width > 4 && height > 4) g.rect(x + 0.5, y + 0.5, width - 1, height - 1);
  });
  g.stroke();
  g.globalAlpha = 1;
}

function writeLabel(g, h, [x, y, width, height]) {
  const part = layout.map, left = Math.max(x, layout.x), right = Math.min(x + width, layout.x + layout.width);
  const top = Math.max(y, part.y), bottom = Math.min(y + height, part.y + part.height);
  if (right - left < 46 || bottom - top < 13) return;
  const room = right - left - 9, name = holderName(h), whole = name + "  " + bytesText(plan.holder.size[h]);
  write(g, fitted(g, whole, room) === whole ? whole : fitted(g, name, room), left + 5, (top + bottom) / 2 + 4, fills[classOf(h)].ink);
}

// A dashed line from the end of one to the begin of another: the same contents, or the same place.
function joinHolders(g, from, to, colour, width) {
  const middle = (h) => toY(plan.holder.offset[h] + plan.holder.size[h] / 2), x = toX(axis.to[from]), right = toX(axis.from[to]);
  if (!isShown(from) || !isShown(to) || Math.max(x, right) < layout.x || Math.min(x, right) > layout.x + layout.width) return;
  g.strokeStyle = colour;
  g.lineWidth = width;
  g.setLineDash([4, 3]);
  g.beginPath();
  g.moveTo(x, middle(from));
  g.lineTo(right, middle(to));
  g.stroke();
  g.setLineDash([]);
}

// Members that are not back to back: each by itself, joined in the order in which they live.
function outlineApart(g, members) {
  const ordered = members.slice().sort((a, b) => axis.from[a] - axis.from[b]);
  ordered.forEach((h, i) => {
    outlineGroup(g, [h]);
    if (i > 0) joinHolders(g, ordered[i - 1], h, colours.group, 1);
  });
}

// Up the right ends of the members, down the left ones: they lie back to back.
function outlineGroup(g, members) {
  const { offset, size } = plan.holder, points = [];
  if (members.some((h, i) => i > 0 && offset[h] < endOf(members[i - 1]) - plan.holder.padding[members[i - 1]])) return outlineApart(g, members);
  if (members.every((h) => axis.from[h] > view.x1 || axis.to[h] < view.x0)) return;
  for (const h of members) points.push([toX(axis.to[h]), toY(offset[h])], [toX(axis.to[h]), toY(offset[h] + size[h])]);
  for (const h of members.slice().reverse()) points.push([toX(axis.from[h]), toY(offset[h] + size[h])], [toX(axis.from[h]), toY(offset[h])]);
  const isSmall = points[0][1] - points[members.length * 2 - 1][1] < 9;
  g.beginPath();
  for (const [x, y] of points) g.lineTo(snapped(x), snapped(y));
  g.closePath();
  g.lineJoin = "round";
  if (!isSmall) {
    g.strokeStyle = colours.bg;
    g.lineWidth = 3.5;
    g.stroke();
  }
  g.strokeStyle = colours.group;
  g.lineWidth = isSmall ? 0.6 : 1.75;
  g.stroke();
}

// The moment of the cut, through the map and through the streams.
function drawMarkBand(g, part) {
  const from = snapped(toX(axis.mark[0])), to = snapped(toX(axis.mark[1]));
  g.globalAlpha = 0.07;
  g.fillStyle = colours.ink;
  g.fillRect(from, part.y, to - from, part.height);
  g.globalAlpha = 1;
  g.strokeStyle = colours.ink;
  g.lineWidth = 1.25;
  g.setLineDash([5, 3]);
  g.beginPath();
  for (const x of [from, to]) {
    g.moveTo(x, part.y);
    g.lineTo(x, part.y + part.height);
  }
  g.stroke();
  g.setLineDash([]);
}
