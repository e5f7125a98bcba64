// Bytes in use over the axis, and the whole of it above as an overview.

// The greatest value in every pixel of [low, high]: no peak is lost.
function envelope(low, high, width, values) {
  const at = axis.levelAt, most = new Float64Array(width);
  let k = Math.max(0, lastNotAbove(at, low));
  for (let pixel = 0; pixel < width; pixel++) {
    const edge = low + ((high - low) * (pixel + 1)) / width;
    let best = values[k];
    while (k + 1 < at.length && at[k + 1] < edge) best = Math.max(best, values[++k]);
    most[pixel] = best;
  }
  return most;
}

function fillArea(g, values, part, top, fill) {
  const floor = part.y + part.height;
  g.beginPath();
  g.moveTo(layout.x, floor);
  values.forEach((value, pixel) => {
    const y = floor - Math.min(1, value / top) * part.height;
    g.lineTo(layout.x + pixel, y);
    g.lineTo(layout.x + pixel + 1, y);
  });
  g.lineTo(layout.x + values.length, floor);
  g.fillStyle = fill;
  g.fill();
}

function drawOverview(g) {
  const part = layout.overview, { x, width } = layout;
  g.fillStyle = colours.row;
  g.fillRect(x, part.y, width, part.height);
  fillArea(g, envelope(0, axis.top, Math.round(width), axis.levelTaken), part, footprint() * 1.05, colours.op2);
  write(g, "whole step", x - 10, part.y + 11, colours.faint, "right");
  const from = x + (view.x0 / axis.top) * width, to = x + (view.x1 / axis.top) * width;
  if (to - from > width - 1) return;
  g.globalAlpha = 0.7;
  g.fillStyle = colours.bg;
  g.fillRect(x, part.y, from - x, part.height);
  g.fillRect(to, part.y, x + width - to, part.height);
  g.globalAlpha = 1;
  g.strokeStyle = colours.accent;
  g.lineWidth = 1.5;
  g.strokeRect(from, part.y - 0.5, Math.max(3, to - from), part.height + 1);
}

// Footprint, bound and serial peak; labels are pushed down if they would touch.
function drawLevels(g, part, top) {
  const { footprint: most, bound, serialPeak } = shownFigures();
  const met = bound === most, levels = [[most, met ? "footprint = bound" : "footprint", [], colours.ink]];
  if (bound > 0 && !met) levels.push([bound, "bound", [6, 3], colours.ink]);
  levels.push([serialPeak, "serial peak", [2, 3], colours.soft]);
  let free = -Infinity;
  for (const [bytes, name, dashes, colour] of levels) {
    const y = snapped(part.y + part.height - (bytes / top) * part.height) + 0.5;
    g.setLineDash(dashes);
    g.strokeStyle = colour;
    g.lineWidth = 1;
    g.beginPath();
    g.moveTo(layout.x, y);
    g.lineTo(layout.x + layout.width, y);
    g.stroke();
    g.setLineDash([]);
    free = Math.max(y + 4, free + 13);
    write(g, name, layout.x - 10, free, colour, "right");
    write(g, bytesText(bytes), layout.x + layout.width + 14, free, colour);
  }
}

function drawCurve(g) {
  const part = layout.curve, width = Math.round(layout.width);
  const top = Math.max(footprint(), shownFigures().serialPeak) * 1.08, floor = part.y + part.height;
  if (state.show.held) fillArea(g, envelope(view.x0, view.x1, width, axis.levelTaken), part, top, colours.hatch);
  fillArea(g, envelope(view.x0, view.x1, width, axis.levelAlive), part, top, colours.op);
  g.fillStyle = colours.line;
  g.fillRect(layout.x, floor, layout.width, 1);
  drawLevels(g, part, top);
  write(g, "bytes in use", layout.x - 10, floor, colours.faint, "right");
}
