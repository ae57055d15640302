const state = { which: "best", step: 0 };
const MARGIN = 28;
const MARGINS = { l: MARGIN, r: MARGIN, t: MARGIN, b: MARGIN };
let squareSize = 0;

/* Pixels between two layers: labels fit where there are few. */
function spacing() {
  const room = document.querySelector("#network .scroll").clientWidth - 2 * MARGIN;
  return Math.max(15, Math.min(64, room / Math.max(data.graph.layers, 1)));
}

/* The step of each operator drawn, null where an order runs it before or after what is shown. */
function stepOf(which) {
  const steps = new Map(data.orders[which].order.map((op, step) => [op, firstStep(which) + step]));
  return data.graph.ops.map((op) => steps.get(op.op) ?? null);
}

function opText(op, step) {
  const side = (name, tensors) => [
    ...tensors.slice(0, 6).map(([t, size]) => `${name} ${written(size)}  ${clipped(t)}`), ...(tensors.length > 6 ? [`and ${tensors.length - 6} more`] : [])];
  const scratch = op.workspace_bytes ? [`workspace ${written(op.workspace_bytes)}`] : [];
  const place = step === null ? "outside the shown steps" : `step ${step}`;
  return [`${place}: ${clipped(op.name)}`, clipped(op.kind), ...side("reads", op.reads), ...side("writes", op.writes), ...scratch];
}

/* The colour of a step between those of the first and the last. */
function shade(step, first, last) {
  const share = (step - first) / Math.max(last - first, 1);
  return `color-mix(in srgb, ${colour("node-to")} ${(100 * share).toFixed(1)}%, ${colour("node-from")})`;
}

function drawNetwork() {
  const { ops, edges } = data.graph;
  const gap = spacing();
  const rows = ops.map((op) => op.row);
  const low = rows.reduce((a, b) => Math.min(a, b), rows[0] ?? 0), high = rows.reduce((a, b) => Math.max(a, b), rows[0] ?? 0);
  const rowHeight = Math.min(34, Math.max(11, 460 / Math.max(high - low + 1, 1)));
  squareSize = Math.max(5, Math.min(24, gap * 0.78, rowHeight * 0.82));
  const lines = { x: [], y: [] };
  for (const path of edges) {
    for (const [x, y] of path) { lines.x.push(x); lines.y.push(-y); }
    lines.x.push(null);
    lines.y.push(null);
  }
  const step = stepOf(state.which), first = firstStep(state.which), last = first + stepsShown(state.which) - 1;
  const points = ops.map((op, i) => ({ x: op.layer, y: -op.row, colour: step[i] === null ? colour("card") : shade(step[i], first, last) }));
  const numbers = squareSize < 17 ? [] : points.map(({ x, y }, i) => ({ x, y, text: String(step[i] ?? ""), colour: colour("node-ink"), anchor: "middle" }));
  const width = Math.max(document.querySelector("#network .scroll").clientWidth - 2, gap * data.graph.layers + 2 * MARGIN);
  draw("graph-chart", {
    width, height: Math.max(150, rowHeight * (high - low + 1) + 2 * MARGIN), margin: MARGINS,
    layers: [
      { kind: "line", ...lines, colour: colour("edge"), width: ops.length > 400 ? 0.7 : 1.2 },
      { kind: "squares", points, size: squareSize, stroke: colour("edge") }, { kind: "texts", points: numbers, size: squareSize > 20 ? 11 : 9 },
    ],
    x: { range: [-0.6, Math.max(data.graph.layers - 0.4, 0.6)], hidden: true }, y: { range: [-high - 0.7, -low + 0.7], hidden: true },
    hover: (x, y, plot) => {
      const at = nearest(points, x, y, plot, squareSize);
      return at < 0 ? null : { ...points[at], lines: opText(ops[at], step[at]) };
    },
  });
  markSteps();
}

/* Frame the operators of the peak and of the current step. */
function markSteps() {
  const plot = PLOTS.get("graph-chart");
  if (!plot) return;
  const frame = (step, name, more) => {
    const op = step === null ? null : opAt(state.which, step);
    if (!op) return [];
    const size = squareSize + more;
    return [svg("rect", { x: plot.X(op.layer) - size / 2, y: plot.Y(-op.row) - size / 2, width: size, height: size, fill: "none", stroke: colour(name), "stroke-width": 3, class: name })];
  };
  plot.over.replaceChildren(...frame(state.step, "accent", 7), ...frame(peakStep(state.which), "peak", 3));
}

function writeNow() {
  const box = document.getElementById("now");
  const order = data.orders[state.which];
  const op = opAt(state.which, state.step);
  if (!op) { box.textContent = "The network has no operators."; return; }
  const live = largestFirst(state.which, state.step);
  const tensors = live.slice(0, 6).map((found) => `${clipped(found.name, 48)} ${written(found.bytes)}`).join(", ");
  const isPeak = state.step === peakStep(state.which);
  const first = element("p", {}, `Step ${order.first_step + state.step} of ${ALL_STEPS}: ${clipped(op.name, 80)} (${clipped(op.kind, 40)}), `,
    element("span", isPeak ? { class: "peak" } : {},
      `${written(order.live_bytes[state.step])} bytes live${isPeak ? ", the peak" : ""}`));
  const more = live.length > 6 ? ` and ${live.length - 6} more` : "";
  box.replaceChildren(first, element("p", { class: "tensors" }, `Live: ${tensors}${more}`));
}

/* The current step, in the drawing and as a line through the charts. */
function showStep(step) {
  state.step = Math.max(0, Math.min(stepsShown(state.which) - 1, step));
  document.getElementById("step").value = state.step;
  writeNow();
  const op = opAt(state.which, state.step);
  if (!op) return;
  markSteps();
  bringIntoView(op);
}

/* Scroll the drawing sideways to where an operator is. */
function bringIntoView(op) {
  const box = document.querySelector("#network .scroll");
  const middle = MARGIN + ((box.scrollWidth - 2 * MARGIN) * (op.layer + 0.6)) / Math.max(data.graph.layers + 0.2, 1);
  box.scrollLeft = middle - box.clientWidth / 2;
}
