// Memory spaces: their arenas lie one after the other along the map's offsets. One of them can be
// looked at alone; then bytes in use, the strip and the figures are its own.

const hasSpaces = () => plan.spaces.length > 1;
const spaceOf = (h) => (plan.holder.space ? plan.holder.space[h] : 0);
const spaceName = (s) => plan.spaces[s].name || "space " + s;
const isSpaceShown = (s) => state.space === null || s === state.space;
const isShown = (h) => isSpaceShown(spaceOf(h));
const shownSpaces = () => (state.space === null ? plan.spaces : [plan.spaces[state.space]]);

// The range of offsets that is looked at.
const bottom = () => shownSpaces()[0].begin;
const summit = () => Math.max(bottom() + 1, shownSpaces().at(-1).begin + shownSpaces().at(-1).footprint);

function spaceAt(offset) {
  let s = 0;
  while (s + 1 < plan.spaces.length && plan.spaces[s + 1].begin <= offset) s++;
  return s;
}

// Its offset in its own space.
const offsetOf = (h) => plan.holder.offset[h] - plan.spaces[spaceOf(h)].begin;

// Footprint, bound (0: unknown) and serial peak of the shown spaces.
function shownFigures() {
  if (state.space === null) return plan;
  return plan.spaces[state.space];
}

function setSpace(s) {
  state.space = s;
  axis = prepareAxis(axis);
  showAll();
  drawFigures();
  drawToolbar();
  drawPanel();
}

function nextSpace() {
  if (hasSpaces()) setSpace(state.space === null ? 0 : state.space + 1 < plan.spaces.length ? state.space + 1 : null);
}

const spaceChoices = () => [[null, "all", state.space === null], ...plan.spaces.map((_, s) => [s, spaceName(s), state.space === s])];

// ---- In the map ----

// [offset, text] along the map: in each space from its own zero on; with several spaces the name replaces the zero.
function offsetTicks(part) {
  const ticks = [], perByte = part.height / (view.y1 - view.y0);
  for (const [s, space] of plan.spaces.entries()) {
    const low = Math.max(view.y0, space.begin), high = Math.min(view.y1, space.begin + space.footprint);
    if (low >= high || !shownSpaces().includes(space)) continue;
    const inSpace = ticksBetween(low - space.begin, high - space.begin, Math.max(2, ((high - low) * perByte) / 60), true);
    for (const bytes of inSpace) {
      const isNearEnd = s + 1 < plan.spaces.length && (space.footprint - bytes) * perByte < 13;
      if (bytes === 0 && hasSpaces()) ticks.push([space.begin, spaceName(s)]);
      else if (!isNearEnd || state.space !== null) ticks.push([space.begin + bytes, exactBytesText(bytes, inSpace.length > 1 ? inSpace[1] - inSpace[0] : 1)]);
    }
  }
  return ticks;
}

// A line at the border of two spaces.
function drawSpaceEnds(g, x, width) {
  g.fillStyle = colours.ink;
  for (const space of plan.spaces.slice(1)) {
    const y = snapped(toY(space.begin));
    if (y > layout.map.y && y < layout.map.y + layout.map.height) g.fillRect(x, y - 1, width, 2);
  }
}
