const ALL_STEPS = data.orders.best.steps;
const OPS = new Map(data.graph.ops.map((op) => [op.op, op]));
const MAX_POINTS = 60000;
const CROWDED = ALL_STEPS > 300;
const tensorColour = new Map();
for (const found of [...data.orders.best.ranges, ...data.orders.given.ranges]) {
  if (!tensorColour.has(found.name)) {
    tensorColour.set(found.name, TENSOR_COLOURS[tensorColour.size % TENSOR_COLOURS.length]);
  }
}

function clipped(name, most = 64) {
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

/* Steps are counted from the first one shown; these are its number in the whole order, and the peak. */
function firstStep(which) {
  return data.orders[which].first_step;
}

function stepsShown(which) {
  return data.orders[which].order.length;
}

function peakStep(which) {
  const { peak_step: peak, first_step: first } = data.orders[which];
  return peak == null ? null : peak - first;
}

function opAt(which, step) {
  return OPS.get(data.orders[which].order[step]);
}

/* The ranges live at each step, as indices. */
const liveAt = Object.fromEntries(Object.entries(data.orders).map(([which, order]) => {
  const live = Array.from({ length: stepsShown(which) }, () => []);
  order.ranges.forEach((found, i) => {
    const first = Math.max(found.start - order.first_step, 0), end = Math.min(found.stop - order.first_step, live.length);
    for (let step = first; step < end; step += 1) live[step].push(i);
  });
  return [which, live];
}));

function largestFirst(which, step) {
  const ranges = data.orders[which].ranges;
  return liveAt[which][step].map((i) => ranges[i]).sort((a, b) => b.bytes - a.bytes);
}

/* Each range as pieces [from, to, base]: the stack is in order of arrival. */
function stacked(which) {
  const { ranges } = data.orders[which];
  const pieces = ranges.map(() => []);
  liveAt[which].forEach((live, shownStep) => {
    const step = firstStep(which) + shownStep;
    let base = 0;
    for (const i of live) {
      const last = pieces[i].at(-1);
      if (last && last[2] === base) last[1] = step + 1;
      else pieces[i].push([step, step + 1, base]);
      base += ranges[i].bytes;
    }
  });
  return pieces;
}

/* One outline a colour, of closed parts; where there are too many, the small ones go. */
function stackLayers(which) {
  const { ranges } = data.orders[which];
  const pieces = stacked(which);
  const bySize = ranges.map((_, i) => i).sort((a, b) => ranges[b].bytes - ranges[a].bytes);
  const outlines = new Map();
  let points = 0;
  for (const i of bySize) {
    points += 4 * pieces[i].length + 2;
    if (points > MAX_POINTS) break;
    const key = tensorColour.get(ranges[i].name);
    if (!outlines.has(key)) outlines.set(key, { x: [], y: [] });
    const { x, y } = outlines.get(key);
    for (const [from, to, base] of pieces[i]) { x.push(from, to); y.push(base + ranges[i].bytes, base + ranges[i].bytes); }
    for (const [from, to, base] of [...pieces[i]].reverse()) { x.push(to, from); y.push(base, base); }
    x.push(null);
    y.push(null);
  }
  const stroke = CROWDED ? "none" : colour("card");
  return [...outlines].map(([fill, { x, y }]) => ({ kind: "line", x, y, fill, closed: true, width: 0.6, colour: stroke }));
}

/* A curve of steps from `first` on: each value holds until the next. */
function stepCurve(values, first, each = 1) {
  return {
    x: values.flatMap((_, i) => [first + each * i, first + each * (i + 1)]), y: values.flatMap((value) => [value, value]),
  };
}

function profileText(which, step) {
  const order = data.orders[which];
  const op = opAt(which, step);
  const live = largestFirst(which, step);
  const lines = live.slice(0, 8).map((found) => `${written(found.bytes)}  ${clipped(found.name)}`);
  if (live.length > 8) lines.push(`and ${live.length - 8} more`);
  return [`step ${firstStep(which) + step}: ${clipped(op.name)}`, `${written(order.live_bytes[step])} bytes live`, ...lines];
}

/* The label of a step of an order, where its live memory ends. */
function profileLabel(which, step) {
  const { live_bytes: live } = data.orders[which];
  if (!(step in live)) return null;
  return { x: firstStep(which) + step + 0.5, y: live[step], lines: profileText(which, step) };
}

function dotted(y, x0, x1) {
  return { kind: "line", x: [x0, x1], y: [y, y], colour: colour("peak"), width: 1.5, dash: "2 3" };
}

function drawProfile(which) {
  const order = data.orders[which];
  const first = firstStep(which), end = first + stepsShown(which);
  const top = Math.max(data.orders.given.peak_bytes, data.orders.best.peak_bytes, 1);
  const outline = { kind: "line", ...stepCurve(order.live_bytes, first), width: CROWDED ? 0.6 : 1.2, colour: colour("ink") };
  const peak = order.peak_step;
  const late = peak !== null && peak > (first + end) / 2;
  const marks = peak === null ? [] : [
    dotted(order.peak_bytes, first, end),
    { kind: "texts", points: [{ x: peak + 0.5, y: order.peak_bytes, dy: -6, colour: colour("peak"), anchor: late ? "end" : "start",
      text: `peak ${written(order.peak_bytes)} B, step ${peak}` }] },
  ];
  return draw(`${which}-chart`, {
    height: 300, layers: [...stackLayers(which), outline, ...marks],
    x: { title: "step", range: [first, Math.max(end, first + 1)] }, y: { title: "live", range: [0, top * 1.12], bytes: true },
    hover: (x) => profileLabel(which, Math.floor(x) - first),
  });
}

function tenantLines(found) {
  return found.tenants.map((t) => `${t.how === "view" ? "view" : "in place"} from step ${t.start}: ${clipped(t.name)}`);
}

function arenaText(found) {
  return [clipped(found.name), `${written(found.bytes)} bytes at ${written(found.offset)}`,
    `steps ${found.start} to ${found.stop - 1}`, ...tenantLines(found)];
}

/* The ranges that the chart of the arena draws. */
function arenaBoxes() {
  return data.orders.best.ranges.filter((found) => found.bytes > 0 && found.stop > found.start);
}

function drawArena() {
  const order = data.orders.best;
  const first = firstStep("best"), end = first + stepsShown("best"), boxes = arenaBoxes();
  const cuts = { x: [], y: [] };
  for (const found of boxes) {
    for (const tenant of found.tenants) {
      const from = tenant.how === "view" ? found.start : tenant.start; // a view shares from the first step on
      cuts.x.push(from, from, null);
      cuts.y.push(found.offset, found.offset + found.bytes, null);
    }
  }
  const bars = boxes.map((found) => ({
    x0: found.start, x1: found.stop, y0: found.offset, y1: found.offset + found.bytes, colour: tensorColour.get(found.name),
  }));
  return draw("arena-chart", {
    height: 440, layers: [
      { kind: "bars", boxes: bars, stroke: CROWDED ? "none" : colour("card") },
      { kind: "line", ...cuts, width: 2.5, colour: colour("cut") },
      dotted(order.arena_bytes, first, end),
      { kind: "texts", points: [{ x: end, y: order.arena_bytes, dy: -6, anchor: "end", colour: colour("peak"), text: `arena ${written(order.arena_bytes)} B` }] },
    ],
    x: { title: "step", range: [first, Math.max(end, first + 1)] }, y: { title: "offset", range: [0, Math.max(order.arena_bytes, 1) * 1.08], bytes: true },
    hover: (x, y) => {
      const found = boxes.find((b) => x >= b.start && x < b.stop && y >= b.offset && y < b.offset + b.bytes);
      return found && { x, y, lines: arenaText(found) };
    },
  });
}

const ORDER_NAMES = { given: "given order", serenity: "best order (least peak)" };

function drawTraffic() {
  const measured = measuredTraffic();
  const orders = [...new Set(measured.map((row) => row.order))];
  const colours = [colour("soft"), colour("accent"), colour("peak")];
  const curves = orders.map((order, i) => {
    const rows = measured.filter((row) => row.order === order);
    return { name: ORDER_NAMES[order] ?? order, ink: colours[i], points: rows.map((row) => ({ x: row.capacity_bytes, y: row.total_bytes, colour: colours[i] })) };
  });
  const rows = measured.filter((row) => row.order === orders[0]);
  const capacities = rows.map((row) => row.capacity_bytes);
  const points = curves.flatMap(({ name, points: own }) => own.map((point) => ({ ...point, name })));
  const most = Math.max(1, ...measured.map((row) => row.total_bytes));
  const names = curves.flatMap(({ name, ink, points: own }) => own.length ? [{ ...own[0], text: name, colour: ink, dx: 8, dy: -8 }] : []);
  return draw("traffic-chart", {
    height: 340, layers: [
      { kind: "line", x: capacities, y: rows.map((row) => row.compulsory_bytes), colour: colour("soft"), dash: "6 4" },
      ...curves.flatMap(({ ink, points: own }) => [
        { kind: "line", x: own.map((p) => p.x), y: own.map((p) => p.y), colour: ink, width: 2 }, { kind: "circles", points: own }]),
      { kind: "texts", points: apart(names, most, 340) },
    ],
    x: { title: "on-chip capacity", range: [Math.min(...capacities, 1e9) * 0.9, Math.max(...capacities, 1) * 1.1], log: true, ticks: capacities, bytes: true },
    y: { title: "moved", range: [0, most * 1.1], bytes: true },
    hover: (x, y, plot) => {
      const found = points[nearest(points, x, y, plot)];
      return found && { ...found, lines: [found.name, `${written(found.x)} bytes on-chip`, `${written(found.y)} bytes moved`] };
    },
  });
}

/* Texts at one place stand under each other. */
function apart(texts, most, height) {
  const line = 16 * most / height;
  const placed = [];
  for (const text of [...texts].sort((a, b) => b.y - a.y)) {
    const above = placed.filter((other) => Math.abs(other.x - text.x) < 1e-9).at(-1);
    const y = above ? Math.min(text.y, above.y - line) : text.y;
    placed.push({ ...text, y });
  }
  return placed;
}

/* RAM against time of the answer and of what stands beside it, each with its name. */
function drawTrade() {
  const { unit, points: all } = data.ram_and_time;
  const timed = all.filter((point) => point.time !== null);
  if (timed.length < 2) return null;
  const points = timed.map((point) => ({ x: point.time, y: point.ram_bytes, name: point.name, colour: colour(point === all[0] ? "peak" : "accent") }));
  const xs = points.map((p) => p.x), most = Math.max(...points.map((p) => p.y), 1);
  const low = Math.min(...xs), high = Math.max(...xs), span = high - low || high || 1;
  const middle = (low + high) / 2;
  const names = points.map((p) => ({ x: p.x, y: p.y, text: clipped(p.name, 48), colour: p.colour, dx: p.x > middle ? -9 : 9, anchor: p.x > middle ? "end" : "start" }));
  return draw("trade-chart", {
    height: 300, layers: [{ kind: "circles", points, size: 6 }, { kind: "texts", points: apart(names, most, 230) }],
    x: { title: `one run, ${unit}`, range: [Math.max(low - 0.15 * span, 0), high + 0.15 * span] },
    y: { title: "RAM", range: [0, most * 1.15], bytes: true },
    hover: (x, y, plot) => {
      const found = points[nearest(points, x, y, plot)];
      return found && { ...found, lines: [found.name, `${written(found.y)} bytes of RAM`, `${written(Number(found.x.toPrecision(4)))} ${unit}`] };
    },
  });
}

const BAR_PIXELS = 20;

/* A bar an operator with its name, as long as its most; the line in it begins at its least. */
function drawLatency() {
  if (!data.latency) return null;
  const parts = data.latency.operators;
  const most = Math.max(...parts.map((part) => part.milliseconds[1]), 1e-9);
  const total = data.latency.milliseconds[1];
  const boxes = parts.map((part, i) => ({ x0: 0, x1: part.milliseconds[1], y0: -i - 0.15, y1: -i - 0.85, colour: colour("node-to") }));
  const names = parts.map((part, i) => ({ x: 0, y: -i - 0.5, dx: 5, text: clipped(part.name, 48), colour: colour("node-ink") }));
  const times = parts.map((part, i) => ({ x: 0, y: -i - 0.5, dx: -6, anchor: "end", text: part.milliseconds[1].toFixed(3), colour: colour("soft") }));
  const spans = { x: [], y: [] };
  parts.forEach((part, i) => { spans.x.push(...part.milliseconds, null); spans.y.push(-i - 0.5, -i - 0.5, null); });
  return draw("latency-chart", {
    height: BAR_PIXELS * parts.length + 70, layers: [
      { kind: "bars", boxes }, { kind: "line", ...spans, colour: colour("ink"), width: 2 },
      { kind: "texts", points: names }, { kind: "texts", points: times }],
    x: { title: "ms", range: [0, most * 1.05] }, y: { range: [-Math.max(parts.length, 1), 0], hidden: true, title: "" },
    hover: (x, y) => {
      const part = parts[Math.floor(-y)];
      return part && { x, y, lines: [clipped(part.name), `${span(part.milliseconds)} ms`, `${(100 * part.milliseconds[1] / total).toFixed(1)} % of the run`] };
    },
  });
}
