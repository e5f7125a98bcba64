// Axes: when launches run, and from when to when storages have their bytes.

let axis; // the one that is drawn

const axisOf = (key) => plan.axes.find((one) => one.key === key);

// A holder is written at `from`, last used at `to`, and held until `free`: the first launch that may
// overwrite it. axis.top is the end of the axis.
function prepareAxis(one) {
  if (one.from) return addLevels(one);
  const { begin, end } = one, { writer, half, touchBegin, touchLaunch } = plan.holder;
  const middle = (v) => (begin[v] + end[v]) / 2;
  one.top = end.reduce((most, x) => Math.max(most, x), 1);
  one.from = Float64Array.from(writer, (v, h) => (half[h] === SECOND_HALF ? middle(v) : begin[v]));
  one.to = new Float64Array(plan.holders);
  one.free = new Float64Array(plan.holders).fill(one.top);
  for (let h = 0; h < plan.holders; h++) {
    for (let t = touchBegin[h]; t < touchBegin[h + 1]; t++) {
      const v = touchLaunch[t];
      one.to[h] = Math.max(one.to[h], end[v]);
      if (v !== writer[h]) one.from[h] = Math.min(one.from[h], begin[v]); // a use before the write: only of a refused plan
    }
    if (isPinned(h)) one.to[h] = one.top;
    if (half[h] === FIRST_HALF) one.to[h] = middle(writer[h]);
  }
  plan.lists.forEach((list, s) => {
    const first = firstPlaces(s);
    for (let h = 0; h < plan.holders; h++)
      if (first[h] < list.length) one.free[h] = Math.min(one.free[h], begin[list[first[h]]]);
  });
  for (let h = 0; h < plan.holders; h++) one.free[h] = half[h] === FIRST_HALF ? one.to[h] : Math.max(one.free[h], one.to[h]);
  return addLevels(one);
}

// From levelAt[k] on, levelAlive[k] exact bytes are alive and levelTaken[k] reserved ones in use, of the shown holders.
function addLevels(one) {
  if (one.levelsOf === state.space) return one;
  one.levelsOf = state.space;
  const times = new Float64Array(3 * plan.holders + 1); // with 0, when nothing is in use
  times.set(one.from, 1);
  times.set(one.to, plan.holders + 1);
  times.set(one.free, 2 * plan.holders + 1);
  one.levelAt = times.sort().filter((x, k) => k === 0 || x !== times[k - 1]);
  one.levelAlive = new Float64Array(one.levelAt.length);
  one.levelTaken = new Float64Array(one.levelAt.length);
  for (let h = 0; h < plan.holders; h++) {
    if (!isShown(h)) continue;
    const from = lastNotAbove(one.levelAt, one.from[h]);
    one.levelAlive[from] += plan.holder.size[h];
    one.levelTaken[from] += reservedOf(h);
    one.levelAlive[lastNotAbove(one.levelAt, one.to[h])] -= plan.holder.size[h];
    one.levelTaken[lastNotAbove(one.levelAt, one.free[h])] -= reservedOf(h);
  }
  one.peak = one.peakAt = 0;
  for (let k = 0, most = -1; k < one.levelAt.length; k++) {
    if (k > 0) one.levelAlive[k] += one.levelAlive[k - 1];
    if (k > 0) one.levelTaken[k] += one.levelTaken[k - 1];
    one.peak = Math.max(one.peak, one.levelAlive[k]);
    if (one.levelTaken[k] > most) [most, one.peakAt] = [one.levelTaken[k], one.levelAt[k]];
  }
  return one;
}

// The last k with sorted[k] <= x; -1: none.
function lastNotAbove(sorted, x) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function holdersAt(x) {
  const found = [];
  for (let h = 0; h < plan.holders; h++) if (isShown(h) && axis.from[h] <= x && x < axis.free[h]) found.push(h);
  return found.sort((a, b) => plan.holder.offset[a] - plan.holder.offset[b]);
}

// The time at which the strip is drawn by default.
const restingMoment = () => (axis.mark ? axis.mark[0] : axis.peakAt);
