const CHOICE_NAMES = { order: "Order", rewrite: "Rewrite", rows: "Rows" };
const MOST_SHOWN = 5000;
let choice = Math.max(data.choices.findIndex((one) => one.name === data.shown_choice), 0);

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

function choiceCurve(all) {
  const live = condensed(all);
  return stepCurve(live, 0, 100 / Math.max(live.length, 1));
}

/* The live bytes after a percentage of the operators. */
function liveAfter(all, percent) {
  return all[Math.min(Math.floor(percent * all.length / 100), all.length - 1)];
}

function drawChoice() {
  const { before, after } = data.choices[choice];
  const [old, found] = [choiceCurve(before.live_bytes), choiceCurve(after.live_bytes)];
  const most = Math.max(before.peak_bytes, after.peak_bytes, 1);
  const peak = (name, side, ink) => ({ x: 100, y: side.peak_bytes, dy: -6, anchor: "end", colour: ink, text: `${name}: peak ${written(side.peak_bytes)} B` });
  const names = [peak("before", before, colour("ink")), peak("after", after, colour("accent"))];
  return draw("choice-chart", {
    height: 280, layers: [
      { kind: "line", x: [0, ...found.x, 100], y: [0, ...found.y, 0], fill: colour("accent"), opacity: 0.35, closed: true },
      { kind: "line", ...found, colour: colour("accent") }, { kind: "line", ...old, colour: colour("ink"), dash: "2 3" },
      { kind: "texts", points: apart(names, most, 200) },
    ],
    x: { title: "% of the operators run", range: [0, 100] }, y: { title: "live", range: [0, most * 1.15], bytes: true },
    hover: (x) => x >= 0 && x <= 100 && before.live_bytes.length && after.live_bytes.length && {
      x, y: liveAfter(after.live_bytes, x), lines: [`after ${x.toFixed(0)} % of the operators`,
        `before: ${written(liveAfter(before.live_bytes, x))} bytes`, `after: ${written(liveAfter(after.live_bytes, x))} bytes`],
    },
  });
}
