// Colours. Kinds, and the first eight streams, differ in lightness in every kind of colour vision;
// further streams take the eight again, lighter and then darker. Words repeat what a colour shows.

const KIND_COLOURS = { light: ["#6f9fd0", "#f0b04a", "#1d8a66", "#7d3f92"], dark: ["#4d7fb5", "#d0922f", "#1f7d5a", "#d3aee0"] };
const STREAM_COLOURS = {
  light: ["#3f7fc4", "#f0a830", "#1f9c78", "#d99ac6", "#a8481c", "#93d3f7", "#f3e55e", "#6e7480"],
  dark: ["#4179bb", "#d89428", "#157a5a", "#c98fb9", "#93401b", "#8fcdf2", "#e6d75a", "#555b66"],
};

let colours; // of the theme: the colours of page.css by name, and .kinds, .streams
let fills; // of the holders' classes: { plain, shades, hatch, ink, rgb }

const partsOf = (colour) => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
const mixed = (colour, other, share) =>
  "#" + partsOf(colour).map((part, i) => Math.round(part + (other[i] - part) * share).toString(16).padStart(2, "0")).join("");
const lighter = (colour, share) => mixed(colour, [255, 255, 255], share);
const darker = (colour, share) => mixed(colour, [0, 0, 0], share);

// Black or white, for text on a colour.
function inkOn(colour) {
  const [r, g, b] = partsOf(colour);
  return 0.3 * r + 0.59 * g + 0.11 * b > 112 ? "#10141b" : "#ffffff";
}

function streamColours(theme) {
  return plan.streams.map((_, s) => {
    const colour = STREAM_COLOURS[theme][s % 8], round = Math.floor(s / 8) % 3;
    return round === 0 ? colour : round === 1 ? lighter(colour, 0.45) : darker(colour, 0.35);
  });
}

// Diagonal lines of a colour, for held storages.
function hatching(colour) {
  const scale = Math.max(1, Math.round(devicePixelRatio)), tile = element("canvas", { width: 6 * scale, height: 6 * scale });
  const g = tile.getContext("2d");
  g.scale(scale, scale);
  g.globalAlpha = 0.65;
  g.strokeStyle = colour;
  g.lineWidth = 1.3;
  g.beginPath();
  for (const shift of [-6, 0, 6]) {
    g.moveTo(shift - 1, 7);
    g.lineTo(shift + 7, -1);
  }
  g.stroke();
  const pattern = base.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}

const classOf = (h) => (state.colour === "kind" ? plan.holder.kind[h] : plan.launch.stream[plan.holder.writer[h]]);

// Neighbours differ a little, so that they can be distinguished.
const shadeOf = (h) => fills[classOf(h)].shades[(h * 7 + 3) % 3];

function setTheme(theme) {
  document.documentElement.dataset.theme = state.theme = theme;
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of ["bg", "panel", "ink", "soft", "faint", "line", "grid", "hole", "row", "op", "op2", "accent", "warn", "group"])
    colours[name] = style.getPropertyValue("--" + name).trim();
  colours.kinds = KIND_COLOURS[theme];
  colours.streams = streamColours(theme);
  colours.hatch = hatching(colours.op);
  setFills();
}

function setFills() {
  fills = (state.colour === "kind" ? colours.kinds : colours.streams).map((colour) => ({
    plain: colour,
    shades: [lighter(colour, 0.07), colour, darker(colour, 0.07)],
    hatch: hatching(colour),
    ink: inkOn(colour),
    rgb: partsOf(colour),
  }));
}
