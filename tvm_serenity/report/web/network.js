const state = { which: "best", step: 0 };
const MARGIN = 28;

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
  const side = (name, tensors) => tensors.slice(0, 6).map(([t, size]) => `<br>${name} ${size.toLocaleString("en-US")}  ${short(t)}`).join("") +
    (tensors.length > 6 ? `<br>and ${tensors.length - 6} more` : "");
  const scratch = op.workspace_bytes ? `<br>workspace ${op.workspace_bytes.toLocaleString("en-US")}` : "";
  return `<b>${step === null ? "outside the shown steps" : `step ${step}`}: ${short(op.name)}</b><br>${short(op.kind)}${side("reads", op.reads)}${side("writes", op.writes)}${scratch}`;
}

function drawNetwork() {
  const { ops, edges } = data.graph;
  const gap = spacing();
  const rows = ops.map((op) => op.row);
  const low = rows.reduce((a, b) => Math.min(a, b), rows[0] ?? 0), high = rows.reduce((a, b) => Math.max(a, b), rows[0] ?? 0);
  const rowHeight = Math.min(34, Math.max(11, 460 / Math.max(high - low + 1, 1)));
  const size = Math.max(5, Math.min(24, gap * 0.78, rowHeight * 0.82));
  const lines = { x: [], y: [] };
  for (const path of edges) {
    for (const [x, y] of path) { lines.x.push(x); lines.y.push(-y); }
    lines.x.push(null);
    lines.y.push(null);
  }
  const step = stepOf(state.which);
  const labels = size >= 17;
  const traces = [
    { type: "scatter", mode: "lines", hoverinfo: "skip", ...lines, line: { width: ops.length > 400 ? 0.7 : 1.2, color: colour("edge"), shape: "linear" } },
    {
      type: "scatter", mode: labels ? "markers+text" : "markers", x: ops.map((op) => op.layer), y: ops.map((op) => -op.row),
      text: labels ? step.map((at) => at ?? "") : undefined, textfont: { size: size > 20 ? 11 : 9, color: colour("node-ink") },
      marker: {
        symbol: "square", size, color: step, line: { width: 0.8, color: colour("card") },
        colorscale: [[0, colour("node-from")], [1, colour("node-to")]], cmin: firstStep(state.which), cmax: firstStep(state.which) + Math.max(stepsShown(state.which) - 1, 1),
      },
      hovertext: ops.map((op, i) => opText(op, step[i])), hovertemplate: "%{hovertext}<extra></extra>",
    },
    { type: "scatter", mode: "markers", hoverinfo: "skip", x: [null], y: [null], marker: { symbol: "square-open", size: size + 7, color: colour("accent"), line: { width: 3.5 } } },
    { type: "scatter", mode: "markers", hoverinfo: "skip", x: [null], y: [null], marker: { symbol: "square-open", size: size + 3, color: colour("peak"), line: { width: 3 } } },
  ];
  markPeak(traces[3]);
  markNow(traces[2]);
  const width = Math.max(document.querySelector("#network .scroll").clientWidth - 2, gap * data.graph.layers + 2 * MARGIN);
  const height = Math.max(150, rowHeight * (high - low + 1) + 2 * MARGIN);
  const plain = { showgrid: false, zeroline: false, showticklabels: false, showline: false, fixedrange: false };
  return draw("graph-chart", traces, layoutOf(height, {
    width, margin: { l: MARGIN, r: MARGIN, t: MARGIN, b: MARGIN }, hovermode: "closest", dragmode: "pan",
    xaxis: { ...plain, range: [-0.6, Math.max(data.graph.layers - 0.4, 0.6)] },
    yaxis: { ...plain, range: [-high - 0.7, -low + 0.7] },
  }), { ...CONFIG, responsive: false, scrollZoom: false });
}

function markPeak(trace) {
  const peak = peakStep(state.which);
  if (peak == null) return;
  const op = opAt(state.which, peak);
  Object.assign(trace, { x: [op.layer], y: [-op.row] });
}

function markNow(trace) {
  const op = opAt(state.which, state.step);
  if (op) Object.assign(trace, { x: [op.layer], y: [-op.row] });
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
  Plotly.restyle("graph-chart", { x: [[op.layer]], y: [[-op.row]] }, [2]);
  bringIntoView(op);
}

/* Scroll the drawing sideways to where an operator is. */
function bringIntoView(op) {
  const box = document.querySelector("#network .scroll");
  const middle = MARGIN + ((box.scrollWidth - 2 * MARGIN) * (op.layer + 0.6)) / Math.max(data.graph.layers + 0.2, 1);
  box.scrollLeft = middle - box.clientWidth / 2;
}
