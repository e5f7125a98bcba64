// Amounts and names for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytesText(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < UNITS.length; unit++) bytes /= 1024;
  return (unit === 0 ? bytes : bytes.toFixed(bytes < 100 ? 2 : 1)) + " " + UNITS[unit];
}

const countText = (number) => number.toLocaleString("en-US");
const plural = (count, noun) => countText(count) + " " + noun + (count === 1 ? "" : "s");

// With as many digits as tell it from its neighbour `step` bytes away.
function exactBytesText(bytes, step) {
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < UNITS.length; unit++, step /= 1024) bytes /= 1024;
  return +bytes.toFixed(Math.max(2, Math.ceil(-Math.log10(step)))) + " " + UNITS[unit];
}

// A moment, or a length, of the axis that is drawn.
function timeText(x) {
  if (!axis.isTime) return "step " + countText(Math.floor(x));
  if (axis.top >= 1e9) return +(x / 1e9).toFixed(5) + " s";
  if (axis.top > 1e6) return +(x / 1e6).toFixed(4) + " ms";
  return +(x / 1e3).toFixed(3) + " µs";
}

// Of the moment between the dashed lines.
const markWords = () => (axis.key === "wrong" ? { name: launchName(axis.reader) + " reads a wrong byte", at: "at the read" } : { name: "the cut", at: "at the cut" });

const shortened = (text, letters) => (text.length <= letters ? text : text.slice(0, Math.max(1, letters - 1)) + "…");

// As much of it as `room` pixels take.
function fitted(g, text, room) {
  g.font = FONT;
  if (g.measureText(text).width <= room) return text;
  let fits = 0;
  for (let low = 0, high = text.length; low < high;) {
    const middle = (low + high + 1) >> 1;
    if (g.measureText(text.slice(0, middle) + "…").width <= room) fits = low = middle;
    else high = middle - 1;
  }
  return fits > 1 ? text.slice(0, fits) + "…" : "";
}
const launchName = (v) => plan.launch.name[v] || "op " + plan.launch.op[v];
const streamName = (s) => plan.streams[s] || "stream " + s;
const placeText = (v) => streamName(plan.launch.stream[v]) + " #" + plan.launch.place[v];
const holderName = (h) => (plan.holder.name[h] || "storage " + h) + (plan.holder.kind[h] === WORKSPACE ? " workspace" : "");
