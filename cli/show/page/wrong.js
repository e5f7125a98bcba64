// Shows the violations of a refused plan: each violation with an order in which an op reads a wrong byte,
// which is an axis of its own.

// The axis of violation i; undefined: no such order is known. Launches of the next iteration are in
// `next`, by launch, with their steps; those that the order does not come to follow it.
function wrongAxis(violation, launches) {
  const { witness } = violation, begin = new Float64Array(launches).fill(-1), next = new Map();
  let step = 0;
  for (let i = 0; i < witness.length; i += 2, step++) {
    if (witness[i + 1] === 0) begin[witness[i]] = step;
    else next.set(witness[i], step);
  }
  if (step === 0) return undefined;
  const mark = [step - 1, step];
  for (let v = 0; v < launches; v++) if (begin[v] < 0) begin[v] = step++;
  return { key: "wrong", isTime: 0, mark, begin, end: begin.map((at) => at + 1), next, violation, reader: witness.at(-2) };
}

// One such axis at a time: the axis of the shown violation.
function takeAxisOf(violation) {
  const taken = wrongAxis(violation, plan.launches);
  if (taken) plan.axes = plan.axes.filter((one) => one.key !== "wrong").concat(taken);
  return taken;
}

const definedOf = (...values) => values.filter((value) => value !== undefined);
const launchesOf = (violation) => definedOf(violation.launch, violation.otherLaunch);
const storagesOf = (violation) => definedOf(violation.holder, violation.otherHolder);

// A storage's time on the axis of its violation: that in the next iteration, if its writer is of it.
const wrongSpan = (h) => (axis.next.has(plan.holder.writer[h]) ? [axis.next.get(plan.holder.writer[h]), axis.mark[1]] : [axis.from[h], axis.to[h]]);

function goToViolation(i) {
  const violation = plan.violations[i], taken = takeAxisOf(violation);
  if (!taken) return;
  axis = prepareAxis(taken);
  const starts = [...storagesOf(violation).map((h) => wrongSpan(h)[0]), ...launchesOf(violation).map((v) => axis.next.get(v) ?? axis.begin[v])];
  const from = Math.min(axis.mark[0], ...starts), room = Math.max(4, (axis.mark[1] - from) * 0.2);
  Object.assign(view, { x0: from - room, x1: axis.mark[1] + room, y0: bottom(), y1: summit() });
  limitView();
  drawToolbar();
}

// The bytes and the time that two storages should not have both.
function drawWrongBytes(g, violation) {
  const storages = storagesOf(violation), { offset } = plan.holder;
  if (axis.key !== "wrong" || storages.length < 2) return;
  const spans = storages.map(wrongSpan);
  const [low, high] = [Math.max(...storages.map((h) => offset[h])), Math.min(...storages.map(endOf))];
  const [from, to] = [Math.max(...spans.map(([begin]) => begin)), Math.min(...spans.map(([, end]) => end))];
  if (low >= high || from >= to) return;
  g.globalAlpha = 0.55;
  g.fillStyle = colours.warn;
  g.fillRect(toX(from), toY(high), Math.max(3, toX(to) - toX(from)), Math.max(3, toY(low) - toY(high)));
  g.globalAlpha = 1;
}

// Hollow: launches of the next iteration.
function drawNextIteration(g) {
  const { row } = layout.rows;
  g.strokeStyle = colours.soft;
  g.lineWidth = 1;
  for (const [v, at] of axis.next) {
    const x = toX(at), width = Math.max(1.5, toX(at + 1) - x);
    if (x < layout.x + layout.width && x + width > layout.x) g.strokeRect(x + 0.5, rowY(plan.launch.stream[v]) + 2.5, width - 1, Math.max(1, row - 5));
  }
}
