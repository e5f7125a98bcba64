// Unpacks the plan and draws it. The text after the # of the address sets the page's first view:
// axis=time, theme=dark, colour=stream, hide=waits,held, space=NAME, find=TEXT, holder=NAME, launch=NAME,
// violation=0, zoom=FROM,TO[,LOW,HIGH] in shares of the whole.

function beginAsAsked() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  state.colour = asked.get("colour") === "stream" ? "stream" : "kind";
  for (const key of (asked.get("hide") || "").split(",")) if (key) state.show[key] = false;
  setTheme(asked.get("theme") || (isDark ? "dark" : "light"));
  plan.violations.some(takeAxisOf);
  if (asked.has("space") && hasSpaces()) state.space = Math.max(0, indexOf(plan.spaces.map(({ name }) => name), asked.get("space")));
  axis = prepareAxis(axisOf(asked.get("axis")) || axisOf(plan.axis));
  showAll();
  drawFigures();
  drawViolations();
  drawToolbar();
  drawPanel();
  return asked;
}

// An id, or else a name.
function indexOf(names, text) {
  return /^\d+$/.test(text) ? Math.min(+text, names.length - 1) : names.indexOf(text);
}

function chooseAsAsked(asked) {
  if (asked.has("find")) {
    byId("search").value = asked.get("find");
    find(asked.get("find"));
  }
  const holder = asked.has("holder") ? indexOf(plan.holder.name, asked.get("holder")) : -1;
  const launch = asked.has("launch") ? indexOf(plan.launch.name, asked.get("launch")) : -1;
  if (holder >= 0) choose({ holder });
  else if (launch >= 0) choose({ launch });
  else if (plan.violations.length && (!asked.has("axis") || asked.has("violation"))) choose({ violation: Math.min(+asked.get("violation") || 0, plan.violations.length - 1) });
  if (!asked.has("zoom")) return;
  const [x0, x1, y0, y1] = asked.get("zoom").split(",").map(Number);
  Object.assign(view, { x0: x0 * axis.top, x1: x1 * axis.top });
  if (y1 !== undefined) Object.assign(view, { y0: bottom() + y0 * footprint(), y1: bottom() + y1 * footprint() });
  limitView();
}

// In the call that resizes: between it and the next frame the browser may show the page.
function fitToPage() {
  layOut();
  drawBase();
  drawOver();
  if (document.documentElement.dataset.printed === undefined) return;
  base.setTransform(1, 0, 0, 1, 0, 0);
  base.drawImage(over.canvas, 0, 0); // a canvas above it would be printed white where nothing is drawn
}

// Paper is white, and as large as page.css says.
let themeOnScreen = null;

function beginPrint() {
  themeOnScreen ??= state.theme;
  document.documentElement.dataset.printed = "";
  setTheme("light");
  drawPanel();
  fitToPage();
}

function endPrint() {
  delete document.documentElement.dataset.printed;
  if (themeOnScreen) setTheme(themeOnScreen);
  themeOnScreen = null;
  drawPanel();
  fitToPage();
}

async function start() {
  plan = preparePlan(await unpack(byId("data").textContent.trim()));
  layOut();
  chooseAsAsked(beginAsAsked());
  drawBase();
  drawOver();
  new ResizeObserver(fitToPage).observe(chart);
  addEventListener("beforeprint", beginPrint);
  addEventListener("afterprint", endPrint);
  // For tests, and for questions of one's own at the console.
  window.tarn = {
    plan, state, view, search, zoom, choose, setAxis, find, neighbours, findWay, setSpace, waysBetween, meanwhile, besides, axisOf, prepareAxis, drawBase, drawOver, toX, toY, rowY, offsetTicks, launchesOf,
    get axis() { return axis; },
    get layout() { return layout; },
    loaded: performance.now(),
  };
}

// The page has loaded when it is drawn, for programs that take a picture of it then: a document that
// is still open in a frame holds up the event `load`, which would not wait for the unpacking.
function holdLoad() {
  const frame = element("iframe");
  frame.hidden = true;
  document.body.append(frame);
  frame.contentDocument.open();
  return () => {
    frame.contentDocument.close();
    frame.remove();
  };
}

start().finally(holdLoad());
