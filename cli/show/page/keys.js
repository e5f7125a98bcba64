// Keys: everything that the pointer can do.

// The next storage in a direction from the selection.
function chooseNear(near) {
  const there = near.find((one) => !one.isOther) || near[0];
  if (there) choose({ holder: there.holder }, true);
}

function chooseWritten(step) {
  if (plan.holders === 0) return;
  const now = state.chosen && state.chosen.holder;
  choose({ holder: now === undefined || now === null ? 0 : Math.max(0, Math.min(plan.holders - 1, now + step)) }, true);
}

function goBackOrOut() {
  state.focus = null;
  choose(null);
}

const middleX = () => (state.hover && state.hover.x !== null ? toX(state.hover.x) : layout.x + layout.width / 2);
const middleY = () => layout.map.y + layout.map.height / 2;

const ACTIONS = {
  w: () => zoom(0.75, middleX(), null),
  s: () => zoom(1 / 0.75, middleX(), null),
  "+": () => zoom(0.75, middleX(), middleY()),
  "=": () => zoom(0.75, middleX(), middleY()),
  "-": () => zoom(1 / 0.75, middleX(), middleY()),
  a: () => move(-0.15, 0),
  d: () => move(0.15, 0),
  ArrowLeft: () => move(-0.15, 0),
  ArrowRight: () => move(0.15, 0),
  ArrowUp: () => move(0, 0.15),
  ArrowDown: () => move(0, -0.15),
  0: showAll,
  Home: showAll,
  z: () => zoomTo(state.chosen),
  m: nextSpace,
  t: toggleTheme,
  c: () => setColour(state.colour === "kind" ? "stream" : "kind"),
  "/": () => byId("search").focus(),
  n: () => nextMatch(1),
  N: () => nextMatch(-1),
  "[": () => chooseNear(state.near.before),
  "]": () => chooseNear(state.near.after),
  ",": () => chooseWritten(-1),
  ".": () => chooseWritten(1),
  Escape: goBackOrOut,
};

function searchKey(event) {
  if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
  if (event.key !== "Escape") return;
  event.target.value = "";
  find("");
  chart.focus();
}

addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT") return searchKey(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isNumber = event.key >= "1" && event.key <= "5";
  const action = isNumber ? () => plan.axes[event.key - 1] && setAxis(plan.axes[event.key - 1].key) : ACTIONS[event.key] || ACTIONS[event.key.toLowerCase()];
  const isButton = event.target.tagName === "BUTTON" || event.target.tagName === "A";
  if (!action || (isButton && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  action();
});
