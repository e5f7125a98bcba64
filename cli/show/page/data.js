// The plan, unpacked: columns as typed arrays, and lists that are looked up from both sides.
// cli/show/columns.c describes the columns.

const KINDS = ["intermediate", "gradient", "output", "workspace"];
const OUTPUT = 2, WORKSPACE = 3;
const FIXED = 1; // an offset that the graph wants; else it prefers it
const FIRST_HALF = 1, SECOND_HALF = 2; // of the launch that writes it: see cli/model/model.h

let plan; // see below

async function unpack(letters) {
  const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// Lists of ids, one for each of `count`, of flat pairs [of, id]. `turned`: of the second.
function listsOf(pairs, count, turned) {
  const begin = new Uint32Array(count + 1), ids = new Uint32Array(pairs.length / 2);
  const of = turned ? 1 : 0;
  for (let i = 0; i < pairs.length; i += 2) begin[pairs[i + of] + 1]++;
  for (let i = 0; i < count; i++) begin[i + 1] += begin[i];
  const next = begin.slice();
  for (let i = 0; i < pairs.length; i += 2) ids[next[pairs[i + of]]++] = pairs[i + 1 - of];
  return { begin, ids, of: (i) => ids.subarray(begin[i], begin[i + 1]) };
}

function sumUp(differences) {
  const numbers = new Float64Array(differences.length);
  for (let i = 0, number = 0; i < numbers.length; i++) numbers[i] = number += differences[i];
  return numbers;
}

// Names whose last number is coded by its difference to the last one's, after a tab.
function unpackNames(names) {
  let number = 0;
  return names.map((name) => {
    const at = name.indexOf("\t");
    if (at < 0) return name;
    number += +name.slice(at + 1);
    return name.slice(0, at) + number;
  });
}

// When launches begin and end; their durations follow if they are not given.
function unpackAxis(one, launches, cost) {
  one.begin = one.begin ? sumUp(one.begin) : Float64Array.from({ length: launches }, (_, v) => v);
  one.end = one.begin.map((begin, v) => begin + (one.length ? one.length[v] : one.isTime ? cost[v] : 1));
  for (let i = 0; one.wide && i < one.wide.length; i += 2) one.end[one.wide[i]] += one.wide[i + 1] - 1;
}

function unpackTouches(holder) {
  const count = holder.name.length;
  holder.touchBegin = new Uint32Array(count + 1);
  holder.touchLaunch = new Uint32Array(holder.touch.length);
  holder.touchWrites = new Uint8Array(holder.touch.length);
  holder.writer = new Uint32Array(count);
  for (let h = 0, t = 0, first = 0; h < count; h++) {
    for (let k = 0, number = first; k < holder.touches[h]; k++, t++) {
      number += holder.touch[t];
      if (k === 0) first = number;
      holder.touchLaunch[t] = number >> 1;
      holder.touchWrites[t] = number & 1;
    }
    holder.writer[h] = first >> 1;
    holder.touchBegin[h + 1] = t;
  }
  delete holder.touch;
}

function unpackHolders(data) {
  const holder = data.holder;
  for (const column of ["offset", "size", "padding"]) holder[column] = Float64Array.from(holder[column]);
  for (const column of ["kind", "certified", "half"]) holder[column] = Uint8Array.from(holder[column]);
  unpackTouches(holder);
  data.holders = holder.name.length;
  const used = new Uint32Array(2 * holder.touchLaunch.length); // pairs: launch, holder
  for (let h = 0; h < data.holders; h++)
    for (let t = holder.touchBegin[h]; t < holder.touchBegin[h + 1]; t++) used.set([holder.touchLaunch[t], h], 2 * t);
  data.holdersOf = listsOf(used, data.launches, false);
  data.groups = new Map();
  for (let h = 0; h < data.holders; h++) {
    if (holder.group[h] === 0) continue;
    if (!data.groups.has(holder.group[h])) data.groups.set(holder.group[h], []);
    data.groups.get(holder.group[h]).push(h);
  }
  for (const members of data.groups.values()) members.sort((a, b) => holder.offset[a] - holder.offset[b]);
}

// Values by what they are of: a list for each.
function gathered(rows) {
  const lists = new Map();
  for (const [of, ...value] of rows) lists.set(of, [...(lists.get(of) || []), value]);
  return lists;
}

function rowsOf(flat, width) {
  return Array.from({ length: flat.length / width }, (_, i) => flat.slice(i * width, (i + 1) * width));
}

// What the graph says beside sizes. plan.arms.get(v): [conditional, arm] of launch v. plan.slices.get(h):
// [name, offset, size]. plan.rules.get(h): { fixed, wanted }. plan.moves: [launch, from, to].
function unpackWords(data) {
  data.arms = gathered(rowsOf(data.arms, 3));
  data.slices = gathered(data.slices);
  data.rules = new Map(rowsOf(data.rules, 3).map(([h, rule, wanted]) => [h, { fixed: rule === FIXED, wanted }]));
  data.moves = rowsOf(data.moves, 3);
}

// plan.launches, .holders: their numbers. plan.lists[s]: the launches of a stream. plan.waits.of(v):
// the launches that launch v waits for; plan.waiters.of(v): the launches that wait for v;
// plan.previous.of(v): the launches of the iteration before that v waits for. plan.again.get(v): the
// launch whose work v does again.
function preparePlan(data) {
  data.launches = data.launch.op.length;
  data.launch.stream = Uint32Array.from(data.launch.stream);
  data.launch.op = sumUp(data.launch.op);
  data.launch.name = unpackNames(data.launch.name);
  data.holder.name = unpackNames(data.holder.name);
  data.lists = data.streams.map(() => []);
  data.launch.place = data.launch.stream.map((s, v) => data.lists[s].push(v) - 1);
  const pairs = data.waits;
  data.waitsCount = pairs.length / 2;
  data.waits = listsOf(pairs, data.launches, false);
  data.waiters = listsOf(pairs, data.launches, true);
  data.previousCount = data.previousWaits.length / 2;
  data.previous = listsOf(data.previousWaits, data.launches, false);
  data.nextWaiters = listsOf(data.previousWaits, data.launches, true);
  const again = data.again;
  data.again = new Map();
  for (let i = 0; i < again.length; i += 2) data.again.set(again[i], again[i + 1]);
  data.hasCosts = data.launch.cost.some((cost) => cost > 0);
  for (const one of data.axes) unpackAxis(one, data.launches, data.launch.cost);
  unpackHolders(data);
  unpackWords(data);
  return data;
}

const reservedOf = (h) => plan.holder.size[h] + plan.holder.padding[h];
const endOf = (h) => plan.holder.offset[h] + reservedOf(h);
const isPinned = (h) => plan.holder.kind[h] === OUTPUT;

// The arms of two storages that are never both there: { conditional, arm, other }; null: they may be.
function exclusion(h, k) {
  for (const [conditional, arm] of plan.arms.get(plan.holder.writer[h]) || [])
    for (const [same, other] of plan.arms.get(plan.holder.writer[k]) || [])
      if (same === conditional && other !== arm) return { conditional, arm, other };
  return null;
}

function touchesOf(h) {
  const touches = [];
  for (let t = plan.holder.touchBegin[h]; t < plan.holder.touchBegin[h + 1]; t++)
    touches.push({ launch: plan.holder.touchLaunch[t], writes: plan.holder.touchWrites[t] === 1 });
  return touches;
}
