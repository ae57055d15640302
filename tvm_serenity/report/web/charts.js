const ALL_STEPS = data.orders.best.steps;
const OPS = new Map(data.graph.ops.map((op) => [op.op, op]));
const BYTES = { tickformat: "~s", ticksuffix: "B", rangemode: "tozero" };
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

/* A name as Plotly takes it: its labels know some HTML. */
function short(name) {
  return clipped(name).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
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

/* One trace a colour, its tensors as closed outlines; where there are too many, the small ones go. */
function stackTraces(which) {
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
    x.push(pieces[i][0]?.[0] ?? null, null);
    y.push((pieces[i][0]?.[2] ?? 0) + ranges[i].bytes, null);
  }
  return [...outlines].map(([fillcolor, { x, y }]) => ({
    type: "scatter", mode: "lines", fill: "toself", x, y, fillcolor, hoverinfo: "skip",
    line: { width: CROWDED ? 0 : 0.6, color: colour("card") },
  }));
}

function hoverText(which, step) {
  const order = data.orders[which];
  const op = opAt(which, step);
  const live = largestFirst(which, step);
  const lines = live.slice(0, 8).map((found) => `${found.bytes.toLocaleString("en-US")}  ${short(found.name)}`);
  if (live.length > 8) lines.push(`and ${live.length - 8} more`);
  const bytes = order.live_bytes[step].toLocaleString("en-US");
  return `<b>step ${firstStep(which) + step}: ${short(op.name)}</b><br>${bytes} bytes live<br>${lines.join("<br>")}`;
}

function drawProfile(which) {
  const order = data.orders[which];
  const first = firstStep(which), end = first + stepsShown(which), middle = (first + end) / 2;
  const steps = order.live_bytes.map((_, step) => first + step);
  const centres = steps.map((step) => step + 0.5);
  const top = Math.max(data.orders.given.peak_bytes, data.orders.best.peak_bytes, 1);
  const outline = {
    type: "scatter", mode: "lines", hoverinfo: "skip", line: { shape: "hv", width: CROWDED ? 0.6 : 1.2, color: colour("ink") },
    x: [...steps, end], y: [...order.live_bytes, order.live_bytes.at(-1) ?? 0],
  };
  const hover = {
    type: "scatter", mode: "lines", x: centres, y: order.live_bytes, line: { width: 0 },
    hovertext: steps.map((_, step) => hoverText(which, step)), hovertemplate: "%{hovertext}<extra></extra>",
  };
  const peak = order.peak_step;
  const marks = peak == null ? {} : {
    shapes: [
      { type: "line", x0: first, x1: end, y0: order.peak_bytes, y1: order.peak_bytes, line: { dash: "dot", width: 1.5, color: colour("peak") } },
    ],
    annotations: [{
      x: peak + 0.5, y: order.peak_bytes, ax: peak < middle ? 34 : -34, ay: -22, arrowcolor: colour("peak"),
      xanchor: peak < middle ? "left" : "right", showarrow: true, font: { color: colour("peak") },
      text: `peak ${order.peak_bytes.toLocaleString("en-US")} B, step ${peak}`,
    }],
  };
  return draw(`${which}-chart`, [...stackTraces(which), outline, hover], layoutOf(300, {
    hovermode: "x", bargap: 0,
    xaxis: { title: { text: "step" }, range: [first, end], zeroline: false },
    yaxis: { ...BYTES, title: { text: "live" }, range: [0, top * 1.18] }, ...marks,
  }));
}

function tenantLines(found) {
  return found.tenants.map((t) => `<br>${t.how === "view" ? "view" : "in place"} from step ${t.start}: ${short(t.name)}`).join("");
}

function drawArena() {
  const order = data.orders.best;
  const first = firstStep("best"), end = first + stepsShown("best");
  const boxes = order.ranges.filter((found) => found.bytes > 0 && found.stop > found.start);
  const cuts = { x: [], y: [] };
  for (const found of boxes) {
    for (const tenant of found.tenants.filter((t) => t.how === "in place")) {
      cuts.x.push(tenant.start, tenant.start, null);
      cuts.y.push(found.offset, found.offset + found.bytes, null);
    }
  }
  const traces = [{
    type: "bar", x: boxes.map((b) => (b.start + b.stop) / 2), width: boxes.map((b) => b.stop - b.start),
    y: boxes.map((b) => b.bytes), base: boxes.map((b) => b.offset),
    marker: {
      color: boxes.map((b) => tensorColour.get(b.name)), line: { width: CROWDED ? 0.2 : 0.8, color: colour("card") },
      pattern: !boxes.some((b) => b.tenants.length) ? undefined : { shape: boxes.map((b) => (b.tenants.length ? "/" : "")), fgcolor: colour("cut"), fgopacity: 0.55, size: 9, solidity: 0.12, fillmode: "overlay" },
    },
    hovertext: boxes.map((b) => `<b>${short(b.name)}</b><br>${b.bytes.toLocaleString("en-US")} bytes at ` +
      `${b.offset.toLocaleString("en-US")}<br>steps ${b.start} to ${b.stop - 1}${tenantLines(b)}`),
    hovertemplate: "%{hovertext}<extra></extra>",
  }, {
    type: "scatter", mode: "lines", hoverinfo: "skip", ...cuts, line: { width: 2.5, color: colour("cut") },
  }];
  return draw("arena-chart", traces, layoutOf(440, {
    hovermode: "closest", bargap: 0, barmode: "overlay",
    xaxis: { title: { text: "step" }, range: [first, end], zeroline: false },
    yaxis: { ...BYTES, title: { text: "offset" }, range: [0, Math.max(order.arena_bytes, 1) * 1.1] },
    shapes: [{ type: "line", x0: first, x1: end, y0: order.arena_bytes, y1: order.arena_bytes, line: { dash: "dot", width: 1.5, color: colour("peak") } }],
    annotations: [{
      x: end, y: order.arena_bytes, xanchor: "right", yanchor: "bottom", showarrow: false,
      font: { color: colour("peak") }, text: `arena ${order.arena_bytes.toLocaleString("en-US")} B`,
    }],
  }));
}

function drawTraffic() {
  const measured = measuredTraffic();
  const orders = [...new Set(measured.map((row) => row.order))];
  const symbols = ["circle", "square", "diamond"];
  const colours = [colour("soft"), colour("accent"), colour("peak")];
  const names = { given: "given order", serenity: "best order (least peak)" };
  const traces = orders.map((order, i) => {
    const rows = measured.filter((row) => row.order === order);
    return {
      type: "scatter", mode: "lines+markers", name: names[order] || order,
      x: rows.map((row) => row.capacity_bytes), y: rows.map((row) => row.total_bytes),
      marker: { symbol: symbols[i], size: 9, color: colours[i] }, line: { color: colours[i], width: 2 },
      hovertext: rows.map((row) => `<b>${names[order] || order}</b><br>${row.capacity_bytes.toLocaleString("en-US")} bytes on-chip<br>` +
        `${row.total_bytes.toLocaleString("en-US")} bytes moved`),
      hovertemplate: "%{hovertext}<extra></extra>",
    };
  });
  const rows = measured.filter((row) => row.order === orders[0]);
  traces.push({
    type: "scatter", mode: "lines", name: "compulsory", hoverinfo: "skip", x: rows.map((row) => row.capacity_bytes),
    y: rows.map((row) => row.compulsory_bytes), line: { dash: "dash", color: colour("soft"), width: 1.5 },
  });
  const capacities = rows.map((row) => row.capacity_bytes);
  return draw("traffic-chart", traces, layoutOf(340, {
    showlegend: true, legend: { orientation: "h", y: 1.14, x: 0 }, margin: { l: 74, r: 30, t: 40, b: 56 },
    xaxis: { title: { text: "on-chip capacity" }, type: "log", tickvals: capacities, ticktext: capacities.map(kib) },
    yaxis: { ...BYTES, title: { text: "moved" } },
  }));
}

/* A bar an operator, as high as its most; the line on it goes down to its least. */
function drawLatency() {
  if (!data.latency) return null;
  const parts = data.latency.operators;
  const most = parts.map((part) => part.milliseconds[1]);
  const total = data.latency.milliseconds[1];
  return draw("latency-chart", [{
    type: "bar", x: parts.map((_, i) => i), y: most, marker: { color: colour("accent") },
    error_y: {
      type: "data", symmetric: false, array: most.map(() => 0), color: colour("ink"), thickness: 1, width: 0,
      arrayminus: parts.map((part) => part.milliseconds[1] - part.milliseconds[0]),
    },
    hovertext: parts.map((part) => `<b>${short(part.name)}</b><br>${span(part.milliseconds)} ms<br>` +
      `${(100 * part.milliseconds[1] / total).toFixed(1)} % of the run`),
    hovertemplate: "%{hovertext}<extra></extra>",
  }], layoutOf(320, {
    hovermode: "closest", xaxis: { title: { text: "operator" }, zeroline: false },
    yaxis: { title: { text: "ms" }, rangemode: "tozero" },
  }));
}

function kib(bytes) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (bytes >= size) return `${bytes / size} ${unit}`;
  }
  return `${bytes} B`;
}
