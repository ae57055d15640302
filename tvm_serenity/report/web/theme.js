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
