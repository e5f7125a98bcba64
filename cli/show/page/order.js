// Finds which launches must happen before others: program order and waits, in this iteration and
// from the one before.
// The same as cli/model/ways.c, where it is explained and tested.

// first[h]: the place in stream s from which on launches come after every use of holder h.
function firstPlaces(s) {
  const length = plan.lists[s].length, reach = new Uint32Array(plan.launches);
  const { stream, place } = plan.launch, { begin, ids } = plan.waiters;
  for (let v = plan.launches - 1; v >= 0; v--) {
    const own = plan.lists[stream[v]];
    let least = stream[v] === s ? place[v] + 1 : place[v] + 1 < own.length ? reach[own[place[v] + 1]] : length;
    for (let i = begin[v]; i < begin[v + 1]; i++) {
      const u = ids[i];
      least = Math.min(least, stream[u] === s ? place[u] : reach[u]);
    }
    reach[v] = least;
  }
  const first = new Uint32Array(plan.holders), { touchBegin, touchLaunch } = plan.holder;
  for (let h = 0; h < plan.holders; h++) {
    let most = isPinned(h) ? length : 0;
    for (let t = touchBegin[h]; t < touchBegin[h + 1]; t++) most = Math.max(most, reach[touchLaunch[t]]);
    first[h] = most;
  }
  return first;
}

// The last use of a holder in each stream that uses it.
function lastUses(h) {
  const last = new Map();
  for (const { launch } of touchesOf(h)) last.set(plan.launch.stream[launch], launch);
  return [...last.values()];
}

// In each stream the places [from, to) that may run while the holder's bytes are in use.
function meanwhile(h) {
  const from = placesBefore(plan.holder.writer[h]), to = plan.lists.map(() => 0);
  for (const v of lastUses(h)) placesAfter(v).forEach((place, s) => (to[s] = Math.max(to[s], place)));
  return plan.lists.map((list, s) => ({ from: from[s], to: isPinned(h) ? list.length : to[s] }));
}

// The same for a launch: launches that are ordered neither before nor after it.
function besides(v) {
  const from = placesBefore(v), to = placesAfter(v);
  return plan.lists.map((list, s) => (s === plan.launch.stream[v] ? { from: 0, to: 0 } : { from: from[s], to: to[s] }));
}

// How many launches of each stream come before v in every legal order.
function placesBefore(v) {
  const before = plan.lists.map(() => 0), goBack = [v];
  before[plan.launch.stream[v]] = plan.launch.place[v];
  const seen = plan.lists.map(() => 0);
  while (goBack.length) {
    const u = goBack.pop(), s = plan.launch.stream[u];
    for (let place = plan.launch.place[u]; place >= seen[s]; place--)
      for (const on of plan.waits.of(plan.lists[s][place])) {
        const other = plan.launch.stream[on];
        before[other] = Math.max(before[other], plan.launch.place[on] + 1);
        if (plan.launch.place[on] >= seen[other]) goBack.push(on);
      }
    seen[s] = Math.max(seen[s], plan.launch.place[u] + 1);
  }
  return before;
}

// The first place of each stream that comes after v in every legal order.
function placesAfter(v) {
  const after = plan.lists.map((list) => list.length), seen = plan.lists.map((list) => list.length), goOn = [v];
  after[plan.launch.stream[v]] = plan.launch.place[v] + 1;
  while (goOn.length) {
    const u = goOn.pop(), s = plan.launch.stream[u];
    for (let place = plan.launch.place[u]; place < seen[s]; place++)
      for (const waiter of plan.waiters.of(plan.lists[s][place])) {
        const other = plan.launch.stream[waiter];
        after[other] = Math.min(after[other], plan.launch.place[waiter]);
        if (plan.launch.place[waiter] < seen[other]) goOn.push(waiter);
      }
    seen[s] = Math.min(seen[s], plan.launch.place[u]);
  }
  return after;
}

// When a holder begins: a half launch counts one.
const momentOf = (h) => 2 * plan.holder.writer[h] + (plan.holder.half[h] === SECOND_HALF ? 1 : 0);

// For every reserved byte of a holder the nearest that has it before (direction -1) or after (+1),
// or if no holder of this iteration has it, the nearest of the next one.
function neighbours(self, direction) {
  const near = [], { offset } = plan.holder, begin = offset[self], end = endOf(self);
  const here = momentOf(self), last = 2 * plan.launches + 1;
  for (let h = 0; h < plan.holders; h++) {
    if (offset[h] >= end || endOf(h) <= begin) continue;
    const there = momentOf(h), isOther = (direction < 0 ? there >= here : there <= here) || exclusion(self, h) !== null;
    near.push({ holder: h, isOther, order: (isOther ? last : 0) + (direction < 0 ? last - there : there) });
  }
  near.sort((a, b) => a.order - b.order || a.holder - b.holder);
  let ranges = [[begin, end]];
  const found = [];
  for (const one of near) {
    const [bytes, left] = takeRange(ranges, offset[one.holder], endOf(one.holder));
    if (bytes > 0) found.push({ ...one, bytes });
    ranges = left;
    if (ranges.length === 0) break;
  }
  return found.sort((a, b) => a.isOther - b.isOther || b.bytes - a.bytes);
}

// Who has some of its bytes in other arms, where it is not there.
function instead(self) {
  const { offset } = plan.holder, found = [];
  for (let h = 0; h < plan.holders && plan.arms.size; h++) {
    const bytes = Math.min(endOf(self), endOf(h)) - Math.max(offset[self], offset[h]), arms = bytes > 0 ? exclusion(self, h) : null;
    if (arms) found.push({ holder: h, bytes, ...arms });
  }
  return found;
}

function takeRange(ranges, begin, end) {
  let bytes = 0;
  const left = [];
  for (const [from, to] of ranges) {
    const low = Math.max(from, begin), high = Math.min(to, end);
    if (low >= high) {
      left.push([from, to]);
      continue;
    }
    bytes += high - low;
    if (from < low) left.push([from, low]);
    if (high < to) left.push([high, to]);
  }
  return [bytes, left];
}

// Why the writer of `later` may overwrite `earlier`: a way of program order and waits from the last
// use in each stream, with the fewest waits. A way is a list of { launch, how }; null: there is none.
function waysBetween(earlier, ofPrevious, later) {
  const { half, writer } = plan.holder;
  if (!ofPrevious && half[earlier] === FIRST_HALF && half[later] === SECOND_HALF && writer[earlier] === writer[later])
    return [[{ launch: writer[later], how: "start" }]]; // done with its workspace, then its output
  return lastUses(earlier).map((from) => findWay(from, ofPrevious, writer[later]));
}

function findWay(from, fromPrevious, to) {
  const { stream, place } = plan.launch;
  const queue = [{ launch: to, previous: false, next: -1 }];
  const seen = [plan.lists.map(() => 0), plan.lists.map(() => 0)];
  const isThere = (at) =>
    stream[at.launch] === stream[from] && at.previous === fromPrevious &&
    (place[at.launch] > place[from] || (at.launch === from && at.next >= 0));
  for (let q = 0; q < queue.length; q++) {
    if (isThere(queue[q])) return writeWay(queue, q, from);
    goBack(queue, q, seen);
  }
  return null;
}

// Adds to the queue the launches directly before the launches of a stream, back from one of them.
function goBack(queue, q, seen) {
  const { launch, previous } = queue[q], s = plan.launch.stream[launch];
  const stop = seen[+previous][s], start = plan.launch.place[launch];
  if (start < stop) return;
  seen[+previous][s] = start + 1;
  for (let place = start; place >= stop; place--) {
    const by = plan.lists[s][place];
    for (const on of plan.waits.of(by)) queue.push({ launch: on, previous, how: "wait", by, next: q });
    if (!previous)
      for (const on of plan.previous.of(by)) queue.push({ launch: on, previous: true, how: "boundary", by, next: q });
  }
  if (!previous && stop === 0)
    queue.push({ launch: plan.lists[s].at(-1), previous: true, how: "next", by: plan.lists[s][0], next: q });
}

function writeWay(queue, q, from) {
  const steps = [{ launch: from, how: "start" }];
  const add = (launch, how) => {
    if (how !== "order" || steps.at(-1).launch !== launch) steps.push({ launch, how });
  };
  for (; q >= 0; q = queue[q].next) {
    add(queue[q].launch, "order");
    if (queue[q].next >= 0) add(queue[q].by, queue[q].how);
  }
  return steps;
}
