const CHOICE_NAMES = { order: "Order", rewrite: "Rewrite", rows: "Rows" };
const MOST_SHOWN = 5000;
let choice = 0;

/* Tabs, of which the arrow keys choose one. */
function writeChoices() {
  const tabs = document.getElementById("choice-tabs");
  data.choices.forEach((one, i) => {
    const tab = element("button", { type: "button", role: "tab", id: `choice-${one.name}`, "aria-controls": "choice-panel" },
      CHOICE_NAMES[one.name] ?? one.name);
    tab.addEventListener("click", () => choose(i));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      choose((i + by + data.choices.length) % data.choices.length);
      tabs.children[choice].focus();
    });
    tabs.append(tab);
  });
  writeChoice();
}

function choose(index) {
  choice = index;
  writeChoice();
  return drawChoice();
}

function writeChoice() {
  [...document.getElementById("choice-tabs").children].forEach((tab, i) => {
    tab.setAttribute("aria-selected", String(i === choice));
    tab.tabIndex = i === choice ? 0 : -1;
  });
  const path = `choices.${choice}`;
  const { outcome } = data.choices[choice].after;
  document.getElementById("choice-panel").setAttribute("aria-labelledby", `choice-${data.choices[choice].name}`);
  document.getElementById("choice-words").replaceChildren(
    "Peak before: ", shown(`${path}.before.peak_bytes`), " bytes in ", shown(`${path}.before.ops`), " operators; after: ",
    shown(`${path}.after.peak_bytes`), " bytes in ", shown(`${path}.after.ops`), ` (${outcome}, no order needs less than `,
    shown(`${path}.after.lower_bound_bytes`), "), by serenity ", shown(`${path}.command`), ".");
}

/* The most of each so many steps, where there are more than can be seen. */
function condensed(live) {
  const each = Math.ceil(live.length / MOST_SHOWN);
  if (each <= 1) return live;
  return Array.from({ length: Math.ceil(live.length / each) }, (_, i) => Math.max(...live.slice(each * i, each * (i + 1))));
}

function choiceTrace(name, all, line, fill) {
  const live = condensed(all);
  const x = live.flatMap((_, step) => [100 * step / live.length, 100 * (step + 1) / live.length]);
  return { type: "scatter", mode: "lines", name, x, y: live.flatMap((bytes) => [bytes, bytes]), line,
    fill: fill ? "tozeroy" : "none", hovertemplate: `${name}: %{y:,} bytes<extra></extra>` };
}

function drawChoice() {
  const one = data.choices[choice];
  return draw("choice-chart", [
    choiceTrace("after", one.after.live_bytes, { width: 1.5, color: colour("accent") }, true),
    choiceTrace("before", one.before.live_bytes, { width: 1.5, dash: "dot", color: colour("ink") }, false),
  ], layoutOf(280, {
    hovermode: "x", showlegend: true,
    xaxis: { title: { text: "% of the operators run" }, range: [0, 100], zeroline: false },
    yaxis: { ...BYTES, title: { text: "live" } },
  }));
}
