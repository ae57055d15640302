function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function at(path) {
  return path.split(".").reduce((value, key) => value?.[key], data);
}

/* A number, words, or nothing where there was no time to measure. */
function written(value) {
  if (value === null) return "";
  return typeof value === "number" ? value.toLocaleString("en-US") : String(value);
}

/* A value of the data, marked with where it comes from. */
function shown(path) {
  return element("span", { "data-path": path }, written(at(path)));
}

function table(columns, rows, caption) {
  const head = element("tr");
  for (const [name, kind] of columns) head.append(element("th", { scope: "col", class: kind || "" }, name));
  const body = element("tbody");
  for (const { cells, chosen } of rows) {
    const row = element("tr", chosen ? { class: "chosen" } : {});
    cells.forEach((cell, i) => row.append(element("td", { class: columns[i][1] || "" }, cell)));
    body.append(row);
  }
  const made = element("table", {}, element("thead", {}, head), body);
  if (caption) made.prepend(element("caption", {}, caption));
  return made;
}

/* The claims that answer: what they are about stands at the top of the page. */
const ANSWERS = new Set(["build", "least", "alone", "ram", "flash", "conflict", "way-out", "command", "memories"]);

/* The leading figure with its unit: RAM of the best build, else the least live memory. */
function leadingFigure() {
  const [first] = data.explain.claims;
  if (first.build) {
    const { milliseconds } = first.build;
    const time = milliseconds === null ? "" : `, ${written(Number(milliseconds[1].toPrecision(3)))} ms a run`;
    return ["explain.claims.0.build.ram_bytes", `bytes of RAM${first.fits ? time : ", which is too much"}`];
  }
  if (first.peak_bytes !== undefined) return ["explain.claims.0.peak_bytes", "bytes of live memory"];
  return ["schedule.schedule.peak_bytes", "bytes of live memory, by the order alone"];
}

function writeAnswer() {
  document.getElementById("summary").append(
    shown("schedule.ops"), " operators, ", shown("schedule.state_bytes"), " bytes of state, ",
    shown("weights.constant_bytes"), " bytes of weights");
  const [path, unit] = leadingFigure();
  const box = document.getElementById("answer");
  box.append(element("p", { id: "lead" }, shown(path), element("small", {}, ` ${unit}`)));
  data.explain.claims.forEach((claim, i) => {
    if (ANSWERS.has(claim.kind)) box.append(element("p", { class: claim.kind }, shown(`explain.claims.${i}.text`)));
  });
}

/* RAM and time of the answer and of what stands beside it; the chart needs two that were timed. */
function writeTrade() {
  const { unit, points } = data.ram_and_time;
  const columns = [[""], ["RAM, bytes", "number"], [unit, "number"]];
  const rows = points.map((point, i) => ({ chosen: i === 0, cells: [
    point.name, shown(`ram_and_time.points.${i}.ram_bytes`), point.time === null ? "" : written(Number(point.time.toPrecision(4)))] }));
  document.getElementById("trade-table").append(table(columns, rows));
  if (points.filter((point) => point.time !== null).length < 2) document.getElementById("trade-chart").remove();
}

const HEADINGS = {
  peak: "The peak", order: "The peak", bound: "Lower bound of every order",
  measure: "Measures that lower the peak", refused: "Measures that lower the peak",
  channels: "Channels without effect",
};

function writeClaims() {
  const box = document.getElementById("claims");
  let heading = "";
  data.explain.claims.forEach((claim, i) => {
    if (ANSWERS.has(claim.kind)) return;
    if (HEADINGS[claim.kind] !== heading) {
      heading = HEADINGS[claim.kind];
      box.append(element("h3", {}, heading));
    }
    box.append(element("p", {}, shown(`explain.claims.${i}.text`)));
  });
}

function writeRewrites() {
  const box = document.getElementById("rewrite-tables");
  const arena = data.rewrite.schedule.arena_bytes === null ? ["not placed: there was no time"]
    : ["in an arena of ", shown("rewrite.schedule.arena_bytes")];
  box.append(element("p", { class: "note" },
    "Peak of the best order before: ", shown("rewrite.ordered.peak_bytes"), " bytes; rewritten: ",
    shown("rewrite.schedule.peak_bytes"), " bytes, ", ...arena, "."));
  for (const [kind, title] of [["applied", "Applied"], ["refused", "Refused"], ["rejected", "Without gain"]]) {
    const entries = data.rewrite.rewrite[kind];
    const rows = entries.map((entry, i) => ({ cells: [
      entry.rule + (entry.form ? `, ${entry.form}` : ""), entry.node,
      ...["peak_before_bytes", "peak_after_bytes"].map((key) =>
        entry[key] == null ? "" : shown(`rewrite.rewrite.${kind}.${i}.${key}`)),
      entry.reason || ""] }));
    const columns = [["rule"], ["operator"], ["peak before", "number"], ["after", "number"], ["reason"]];
    const details = element("details", kind === "applied" ? { open: "" } : {},
      element("summary", {}, `${title}: ${entries.length}`));
    if (rows.length) details.append(element("div", { class: "scroll table", tabindex: "0", role: "group", "aria-label": title }, table(columns, rows)));
    box.append(details);
  }
}

/* Capacities and orders that were measured before the time limit ended. */
function measuredTraffic() {
  return data.traffic.filter((row) => row.total_bytes !== null);
}

/* What the charts leave out, and what the drawing lacks. */
function writeNetwork() {
  const { given, best } = data.orders;
  if (best.order.length < best.steps) {
    const span = (order) => `${written(order.first_step)} to ${written(order.first_step + order.order.length - 1)}`;
    const words = `Of ${written(best.steps)} steps, the page shows those around the peak: ${span(given)} of the given order, ${span(best)} of the best order.`;
    for (const note of document.querySelectorAll(".excerpt")) note.textContent = words;
  }
  if (data.graph.rough) {
    document.getElementById("network-note").append(" The time limit ended before they were laid out with few crossings.");
  }
}

function writeTraffic() {
  const o = data.traffic_options;
  const missing = data.traffic.length - measuredTraffic().length;
  document.getElementById("traffic-note").textContent =
    `Bytes read from and written to off-chip memory, ${o.memory} in blocks of ${o.block_bytes} bytes, ` +
    `replacement "${o.policy}". Dashed: compulsory traffic, which moves at every capacity.` +
    (missing ? ` The time limit ended before ${missing} of ${data.traffic.length} were measured.` : "");
  const keys = ["capacity_bytes", "order", "read_bytes", "write_bytes", "total_bytes", "compulsory_bytes"];
  const rows = data.traffic.map((row, i) => ({ cells: keys.map((key) => shown(`traffic.${i}.${key}`)) }));
  const columns = keys.map((key) => [key.replace("_bytes", ""), key === "order" ? "" : "number"]);
  document.getElementById("traffic-table").append(table(columns, rows));
}

/* Whether a network fits a board: by its order alone, as built, or perhaps when it is built. */
function verdictOf(board) {
  if (board.fits) return "fits";
  if (board.best_fits) return "fits as built";
  if (board.may_fit) return "build may fit";
  return board.arena_proved || board.flash_spare_bytes < 0 ? "too small" : "no room found";
}

function writeBoards() {
  const rows = data.boards.map((board, i) => {
    const cell = (key) => shown(`boards.${i}.${key}`);
    const verdict = element("span", { class: board.fits || board.best_fits ? "good" : "bad" }, verdictOf(board));
    return { chosen: board.board === data.board, cells: [
      board.title, cell("ram_needed_bytes"), cell("ram_bytes"), cell("ram_spare_bytes"),
      cell("stack_bytes"), cell("constant_bytes"), cell("flash_bytes"), verdict] };
  });
  const columns = [["board", "word"], ["RAM needed", "number"], ["RAM", "number"], ["spare", "number"],
    ["of it stack", "number"], ["weights", "number"], ["flash", "number"], ["", "word"]];
  document.getElementById("board-table").append(table(columns, rows));
}

function span([low, high], digits = 3) {
  return low === high ? high.toFixed(digits) : `${low.toFixed(digits)} to ${high.toFixed(digits)}`;
}

/* The firmware's time, if the report was asked for it. */
function writeLatency() {
  const found = data.latency;
  if (!found) {
    for (const part of document.querySelectorAll(".latency")) part.remove();
    return;
  }
  document.getElementById("latency-note").append(
    `${span(found.milliseconds, 2)} ms at `, shown("latency.clock_mhz"), " MHz on ", shown("latency.board"),
    ` (${found.claim}; with ${found.error_percent} % error ${span(found.expected_ms, 2)}): estimated, not measured. `,
    shown("latency.instructions"), " instructions; ", shown("latency.compiler"));
  const rows = found.operators.map((part, i) => ({ cells: [
    shown(`latency.operators.${i}.name`), part.calls == null ? "" : shown(`latency.operators.${i}.calls`),
    shown(`latency.operators.${i}.instructions`), span(part.milliseconds)] }));
  const columns = [["operator", "word"], ["calls", "number"], ["instructions", "number"], ["ms", "number"]];
  document.getElementById("latency-table").append(table(columns, rows));
}

function writeProof() {
  const rows = data.proof.map((entry, i) => ({ cells: [
    entry.what, shown(entry.path), shown(`proof.${i}.status`), entry.why] }));
  const columns = [["number", "word"], ["bytes", "number"], ["status", "word"], ["how it is known"]];
  document.getElementById("proof-table").append(table(columns, rows));
  document.getElementById("made").textContent = `Written by tvm-serenity ${data.version}: ${data.command}`;
}
