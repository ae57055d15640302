const data = JSON.parse(document.getElementById("report-data").textContent);
const root = document.documentElement;
const THEMES = { auto: "as the system", light: "light", dark: "dark" };
const TENSOR_COLOURS = [
  "#4e79a7", "#e08a2e", "#59a14f", "#d1615d", "#63a8a3", "#c9a227",
  "#a5749b", "#e58f9b", "#94705a", "#5b8fd1", "#8f9b3a", "#b5658f",
];

function colour(name) {
  return getComputedStyle(root).getPropertyValue(`--${name}`).trim();
}

function setTheme(name) {
  root.dataset.theme = name;
  const button = document.getElementById("theme");
  button.textContent = `Colours: ${name}`;
  button.setAttribute("aria-label", `Colours: ${THEMES[name]}`);
}

let paperWidth = null; // pixels of the charts while the page is printed

/* What every chart has in common. */
function layoutOf(height, more) {
  const axis = {
    gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line"),
    tickfont: { color: colour("soft") }, title: { standoff: 8, font: { color: colour("soft") } },
  };
  const layout = {
    height, margin: { l: 74, r: 30, t: 18, b: 56 },
    paper_bgcolor: colour("card"), plot_bgcolor: colour("card"),
    font: { color: colour("ink"), family: getComputedStyle(document.body).fontFamily, size: 13 },
    hoverlabel: {
      bgcolor: colour("card"), bordercolor: colour("accent"), align: "left",
      font: { color: colour("ink"), size: 13 },
    },
    showlegend: false, ...more,
  };
  if (paperWidth) layout.width = paperWidth;
  layout.xaxis = { ...axis, ...(more.xaxis || {}), title: { ...axis.title, ...(more.xaxis?.title || {}) } };
  layout.yaxis = { ...axis, ...(more.yaxis || {}), title: { ...axis.title, ...(more.yaxis?.title || {}) } };
  return layout;
}

const CONFIG = { displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
function draw(id, traces, layout, config = CONFIG) {
  document.getElementById(id).style.height = `${layout.height}px`;
  return Plotly.react(id, traces, layout, config);
}
