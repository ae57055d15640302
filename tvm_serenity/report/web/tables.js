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

function figure(name, path, ...notes) {
  const small = element("small", {}, ...notes);
  return element("div", {}, element("dt", {}, name), element("dd", {}, shown(path), " B", small));
}

function writeSummary() {
  const s = data.schedule.schedule;
  document.getElementById("summary").append(
    shown("schedule.ops"), " operators, ", shown("schedule.state_bytes"), " bytes of state, ",
    shown("weights.constant_bytes"), " bytes of weights");
  const proof = s.outcome === "optimal" ? "proved: no order needs less" : `${s.outcome}, bound `;
  const bound = s.outcome === "optimal" ? [] : [shown("schedule.schedule.lower_bound_bytes")];
  document.getElementById("figures").append(
    figure("Peak, given order", "schedule.given.peak_bytes", "arena ", shown("schedule.given.arena_bytes")),
    figure("Peak, best order", "schedule.schedule.peak_bytes", proof, ...bound),
    figure("Arena, best order", "schedule.schedule.arena_bytes", data.schedule.schedule.arena_outcome),
    figure("Peak after rewriting", "rewrite.schedule.peak_bytes", data.rewrite.schedule.outcome));
}

const HEADINGS = {
  build: "Best build", least: "Least memory", alone: "Least memory", command: "",
  ram: "Best build", flash: "Best build", conflict: "Best build", "way-out": "Best build",
  peak: "The peak", order: "The peak", bound: "Lower bound of every order",
  measure: "Measures that lower the peak", refused: "Measures that lower the peak",
  "rows-floor": "Limit of bands of rows", channels: "Channels without effect", signatures: "Entry points",
};

function writeClaims() {
  const box = document.getElementById("claims");
  let heading = "";
  data.explain.claims.forEach((claim, i) => {
    if (!["", heading].includes(HEADINGS[claim.kind])) {
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

function writeBoards() {
  const rows = data.boards.map((board, i) => {
    const cell = (key) => shown(`boards.${i}.${key}`);
    const small = board.arena_proved || board.flash_spare_bytes < 0 ? "too small" : "no room found";
    const verdict = element("span", { class: board.fits ? "good" : "bad" }, board.fits ? "fits" : small);
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
