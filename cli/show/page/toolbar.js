// Fills the toolbar above the picture: figures, and switches for what is drawn.

const AXIS_WORDS = { order: "list order", time: "modelled time", cut: "through the cut", real: "real times", wrong: "what breaks" };

function setAxis(key) {
  const one = axisOf(key);
  if (!one) return;
  if (key === "wrong") return choose({ violation: plan.violations.indexOf(one.violation) });
  axis = prepareAxis(one);
  if (state.chosen && state.chosen.moment !== undefined) state.chosen = null;
  showAll();
  drawToolbar();
  drawPanel();
}

function setColour(colour) {
  state.colour = colour;
  setFills();
  drawToolbar();
  drawPanel();
  redraw();
}

function toggleTheme() {
  setTheme(state.theme === "dark" ? "light" : "dark");
  drawToolbar();
  drawPanel();
  redraw();
}

function toggleShown(what) {
  state.show[what] = !state.show[what];
  drawToolbar();
  redraw();
}

function choices(title, items, act) {
  return element("div", { className: "choice", role: "group", label: title },
    element("span", null, title),
    items.map(([key, text, isOn]) => element("button", { type: "button", pressed: isOn, data: { choice: title + " " + (title === "space" ? text : key) }, onclick: () => act(key) }, text)));
}

function shownItems() {
  const items = [];
  if (plan.cut) items.push("certificate");
  if (plan.streams.length > 1) items.push("held", "waits");
  if (plan.groups.size) items.push("groups");
  return items.map((key) => [key, key, state.show[key]]);
}

function drawToolbar() {
  const axes = plan.axes.map(({ key }) => [key, key === "time" && !plan.hasCosts ? "parallel steps" : AXIS_WORDS[key], axis.key === key]);
  const input = element("input", { id: "search", type: "search", placeholder: "Search names  /", label: "Search names", value: state.query, oninput: () => find(input.value) });
  byId("toolbar").replaceChildren(
    choices("x", axes, setAxis),
    hasSpaces() ? choices("space", spaceChoices(), setSpace) : "",
    choices("colour", ["kind", "stream"].map((key) => [key, key, state.colour === key]), setColour),
    shownItems().length ? choices("show", shownItems(), toggleShown) : "",
    element("span", { className: "space" }),
    element("span", { id: "hits", className: "faint" }),
    input,
    element("div", { className: "choice" },
      element("button", { type: "button", data: { choice: "fit" }, onclick: showAll }, "fit"),
      element("button", { type: "button", data: { choice: "theme" }, onclick: toggleTheme, label: "Light or dark" }, state.theme === "dark" ? "light" : "dark")),
  );
}

function drawFigures() {
  const figure = (name, value, title) => element("div", { title: title || "" }, element("dt", null, name), element("dd", null, value));
  const { footprint: most, bound, serialPeak } = shownFigures();
  const above = bound && bound < most ? ", " + ((most / bound - 1) * 100).toFixed(2) + " % above the bound" : "";
  byId("name").textContent = plan.name;
  byId("figures").replaceChildren(
    figure("footprint", bytesText(most) + above, countText(most) + " bytes"),
    figure("bound", bound === 0 ? "none" : bytesText(bound) + (above ? "" : ", met"), countText(bound) + " bytes"),
    figure("serial peak", bytesText(serialPeak), countText(serialPeak) + " bytes"),
    figure("storages", countText(plan.holders), bytesText(plan.sum) + " together"),
    figure("launches", countText(plan.launches)),
    plan.again.size ? figure("done again", countText(plan.again.size)) : "",
    figure("streams", countText(plan.streams.length)),
    plan.streams.length > 1 ? figure("waits", countText(plan.waitsCount), plural(plan.previousCount, "wait") + " on the iteration before") : "",
  );
}

function drawViolations() {
  if (!plan.violations.length) return;
  const bar = byId("violations");
  bar.hidden = false;
  bar.replaceChildren(
    element("b", null, "The verifier refuses this plan."),
    ...plan.violations.slice(0, 3).map(({ text }, i) => element("button", { type: "button", onclick: () => choose({ violation: i }) }, text)),
    plan.violations.length > 3 ? "and " + countText(plan.violations.length - 3) + " more" : "",
  );
}
