// The view: the state of the page, the positions of its parts, and the window on axis and arena.

const chart = byId("chart"), tip = byId("tip");
const base = byId("base").getContext("2d"), over = byId("over").getContext("2d");
const FONT = '11px system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif';

const state = {
  theme: "light",
  colour: "kind", // or "stream"
  space: null, // the one that is looked at; null: all
  show: { certificate: true, held: true, waits: true, groups: true },
  chosen: null, // { holder }, { launch }, { range: [begin, end] }, { persistent }, { violation } or { moment }
  hover: null, // { x, what } under the pointer
  ways: [], // drawn over the streams
  focus: null, // a stream: its storages stand out
  query: "",
  found: null, // by holder: it matches the query
};

const view = { x0: 0, x1: 1, y0: 0, y1: 1 }; // axis and bytes
let layout; // in CSS pixels: x, width, and { y, height } of overview, curve, map, rows
let ratio = 1; // device pixels to a CSS pixel

function layOut() {
  const { width, height } = chart.getBoundingClientRect(), streams = plan.streams.length;
  ratio = devicePixelRatio || 1;
  for (const canvas of [base.canvas, over.canvas]) { // empty from then on: the caller draws in the same call
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const left = 122, right = 84, rowsMost = Math.max(60, height * 0.34);
  const row = Math.max(0.2, Math.min(24, rowsMost / streams)), rows = row * streams;
  const curve = Math.max(50, Math.min(118, height * 0.15)), map = Math.max(40, height - curve - rows - 114);
  layout = {
    whole: { width, height },
    x: left,
    width: Math.max(50, width - left - right),
    overview: { y: 10, height: 13 },
    curve: { y: 38, height: curve },
    map: { y: 62 + curve, height: map },
    rows: { y: 74 + curve + map, height: rows, row },
    strip: { x: width - right + 14, width: 46 },
  };
}

const footprint = () => Math.max(1, shownFigures().footprint);
const toX = (x) => layout.x + ((x - view.x0) / (view.x1 - view.x0)) * layout.width;
const toY = (bytes) => layout.map.y + layout.map.height - ((bytes - view.y0) / (view.y1 - view.y0)) * layout.map.height;
const fromX = (px) => view.x0 + ((px - layout.x) / layout.width) * (view.x1 - view.x0);
const fromY = (py) => view.y0 + ((layout.map.y + layout.map.height - py) / layout.map.height) * (view.y1 - view.y0);
const rowY = (s) => layout.rows.y + s * layout.rows.row;
const isInside = (py, part) => py >= part.y && py < part.y + part.height;
const snapped = (pixels) => Math.round(pixels * ratio) / ratio;

// Keeps the window within the data, and not too small.
function limitView() {
  const limit = (low, high, bottom, top, least) => {
    const size = Math.min(top - bottom, Math.max(least, view[high] - view[low])), middle = (view[low] + view[high]) / 2;
    view[low] = Math.max(bottom, Math.min(top - size, middle - size / 2));
    view[high] = view[low] + size;
  };
  limit("x0", "x1", 0, axis.top, Math.min(axis.top, (axis.top / Math.max(1, plan.launches)) * 3));
  limit("y0", "y1", bottom(), summit(), Math.min(footprint(), 4096));
}

function showAll() {
  Object.assign(view, { x0: 0, x1: axis.top, y0: bottom(), y1: summit() });
  redraw();
}

// factor below 1: closer. px, py: the point that stays in place; null: that direction is not zoomed.
function zoom(factor, px, py) {
  if (px !== null) {
    const x = fromX(px);
    view.x0 = x - (x - view.x0) * factor;
    view.x1 = x + (view.x1 - x) * factor;
  }
  if (py !== null) {
    const y = fromY(py);
    view.y0 = y - (y - view.y0) * factor;
    view.y1 = y + (view.y1 - y) * factor;
  }
  limitView();
  redraw();
}

// By shares of the window.
function move(dx, dy) {
  const width = view.x1 - view.x0, height = view.y1 - view.y0;
  view.x0 += dx * width;
  view.x1 += dx * width;
  view.y0 += dy * height;
  view.y1 += dy * height;
  limitView();
  redraw();
}

const spanOf = (what) => (what.holder !== undefined ? [axis.from[what.holder], axis.free[what.holder]] : [axis.begin[what.launch], axis.end[what.launch]]);

// Moves the window, at the same zoom, until a storage or launch is in it.
function reveal(what) {
  const [from, to] = spanOf(what), width = view.x1 - view.x0, height = view.y1 - view.y0;
  if (to < view.x0 || from > view.x1) {
    view.x0 = (from + to) / 2 - width / 2;
    view.x1 = view.x0 + width;
  }
  if (what.holder !== undefined) {
    const middle = plan.holder.offset[what.holder] + plan.holder.size[what.holder] / 2;
    if (middle < view.y0 || middle > view.y1) {
      view.y0 = middle - height / 2;
      view.y1 = view.y0 + height;
    }
  }
  limitView();
}

function zoomTo(what) {
  if (!what || (what.holder === undefined && what.launch === undefined)) return showAll();
  const [from, to] = spanOf(what), width = Math.max((to - from) * 1.6, (axis.top / plan.launches) * 12);
  view.x0 = (from + to) / 2 - width / 2;
  view.x1 = view.x0 + width;
  if (what.holder !== undefined) {
    const middle = plan.holder.offset[what.holder] + plan.holder.size[what.holder] / 2;
    const height = Math.max(plan.holder.size[what.holder] * 5, footprint() / 400);
    view.y0 = middle - height / 2;
    view.y1 = middle + height / 2;
  }
  limitView();
  redraw();
}

// ---- Drawing when the browser is ready ----

let pending = 0; // 1: only the layer that follows the pointer; 2: everything

function request(what) {
  if (pending === 0) requestAnimationFrame(() => {
    const everything = pending === 2;
    pending = 0;
    if (everything) drawBase();
    drawOver();
  });
  pending = Math.max(pending, what);
}
const redraw = () => request(2);
const redrawOver = () => request(1);

function clipTo(g, part, draw) {
  g.save();
  g.beginPath();
  g.rect(layout.x, part.y, layout.width, part.height);
  g.clip();
  draw();
  g.restore();
}

function write(g, text, x, y, colour, align) {
  g.font = FONT;
  g.textAlign = align || "left";
  g.fillStyle = colour;
  g.fillText(text, x, y);
}

// Round numbers between two, about `count` of them.
function ticksBetween(low, high, count, binary) {
  const raw = (high - low) / Math.max(1, count), ten = 10 ** Math.floor(Math.log10(raw));
  const step = binary ? 2 ** Math.ceil(Math.log2(Math.max(1, raw))) : ten * [1, 2, 5, 10].find((f) => f * ten >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
  return ticks;
}
