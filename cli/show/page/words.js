// Amounts and names for people.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function bytesText(bytes) {
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < UNITS.length; unit++) bytes /= 1024;
  return (unit === 0 ? bytes : bytes.toFixed(bytes < 100 ? 2 : 1)) + " " + UNITS[unit];
}

const countText = (number) => number.toLocaleString("en-US");
const plural = (count, noun) => countText(count) + " " + noun + (count === 1 ? "" : "s");

// A moment, or a length, of the axis that is drawn.
function timeText(x) {
  if (!axis.isTime) return "step " + countText(Math.floor(x));
  if (axis.top > 1e6) return +(x / 1e6).toFixed(4) + " ms";
  return +(x / 1e3).toFixed(3) + " µs";
}

// Of the moment between the dashed lines.
const markWords = () => (axis.key === "wrong" ? { name: launchName(axis.reader) + " reads a wrong byte", at: "at the read" } : { name: "the cut", at: "at the cut" });

const shortened = (text, room) => (text.length <= room ? text : text.slice(0, Math.max(1, room - 1)) + "…");
const launchName = (v) => plan.launch.name[v] || "op " + plan.launch.op[v];
const streamName = (s) => plan.streams[s] || "stream " + s;
const placeText = (v) => streamName(plan.launch.stream[v]) + " #" + plan.launch.place[v];
const holderName = (h) => (plan.holder.name[h] || "storage " + h) + (plan.holder.kind[h] === WORKSPACE ? " workspace" : "");
