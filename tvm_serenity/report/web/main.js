const PAPER_PIXELS = 680;
const CHARTS = [drawChoice, drawRetained, drawTrade, drawNetwork, () => drawProfile("given"), () => drawProfile("best"), drawArena, drawTraffic, drawLatency];

function redraw() {
  for (const chart of CHARTS) chart();
  if (ALL_STEPS) bringIntoView(opAt(state.which, state.step));
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
}

function chooseOrder(which) {
  state.which = which;
  boundSlider();
  showStep(peakStep(which) ?? 0);
  return drawNetwork();
}

function boundSlider() {
  document.getElementById("step").max = Math.max(stepsShown(state.which) - 1, 0);
}

function listen() {
  const slider = document.getElementById("step");
  slider.addEventListener("input", () => showStep(Number(slider.value)));
  document.getElementById("previous").addEventListener("click", () => showStep(state.step - 1));
  document.getElementById("next").addEventListener("click", () => showStep(state.step + 1));
  document.getElementById("to-peak").addEventListener("click", () => showStep(peakStep(state.which) ?? 0));
  document.getElementById("which").addEventListener("change", (event) => chooseOrder(event.target.value));
  for (const which of ["given", "best"]) listenKeys(`${which}-chart`, which);
  listenKeys("arena-chart", "best");
  document.getElementById("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    setTheme(names[(names.indexOf(root.dataset.theme) + 1) % names.length]);
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) redraw(); // a phone's bars change the height alone
    width = innerWidth;
  });
  printing();
}

/* Arrow keys on a chart show the step's hover label and move the step of the whole page. */
function listenKeys(id, which) {
  const chart = document.getElementById(id);
  chart.setAttribute("aria-label", `Chart of the ${which} order; left and right arrows move through the steps`);
  chart.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    if (state.which !== which) {
      document.getElementById("which").value = which;
      chooseOrder(which);
    }
    showStep(state.step + by);
    if (id !== "arena-chart") {
      hoverAt(PLOTS.get(id), profileLabel(which, state.step));
    }
  });
}

/* Print in light colours, charts at the width of the paper. */
function printing() {
  let before = null;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    setTheme("light");
    paperWidth = PAPER_PIXELS;
    CHARTS.map((chart) => chart());
  });
  addEventListener("afterprint", () => {
    setTheme(before ?? "auto");
    paperWidth = null;
    redraw();
  });
}

writeAnswer();
writeClaims();
writeChoices();
writeRetained();
writeTrade();
writeRewrites();
writeNetwork();
writeTraffic();
writeBoards();
writeLatency();
writeProof();
state.step = peakStep("best") ?? 0;
listen();
boundSlider();
writeNow();
document.getElementById("step").value = state.step;
redraw();
