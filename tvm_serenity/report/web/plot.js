/* Charts as SVG: lines, bars and points on two axes, with a label under the pointer. */
const SVG_NAMES = "http://www.w3.org/2000/svg";
const PLOTS = new Map(); // the last drawing of each chart, by the id of its element
let paperWidth = null; // pixels of the charts while the page is printed

function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG_NAMES, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* Bytes in binary units, as every axis has them. */
function bytesText(bytes) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (bytes >= size) return `${Number((bytes / size).toPrecision(4))} ${unit}`;
  }
  return `${bytes} B`;
}

/* About `wanted` round values in [low, high]; those of bytes are round in KiB or MiB. */
function ticksOf([low, high], wanted, isBytes) {
  const span = high - low || 1;
  const unit = !isBytes ? 1 : high >= 2 ** 21 ? 2 ** 20 : high >= 2 ** 11 ? 2 ** 10 : 1;
  const rough = span / unit / Math.max(wanted, 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = unit * power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

/* A function from values to pixels, with its inverse. */
function scaleOf({ range: [low, high], log }, from, to) {
  const value = log ? Math.log : (x) => x;
  const span = value(high) - value(low) || 1;
  const scale = (x) => from + ((value(x) - value(low)) / span) * (to - from);
  scale.value = (pixel) => {
    const found = value(low) + ((pixel - from) / (to - from)) * span;
    return log ? Math.exp(found) : found;
  };
  return scale;
}

/* `x` and `y` as a path; null begins a new part. */
function pathOf(x, y, X, Y, closed) {
  let path = "", begins = true;
  for (let i = 0; i < x.length; i += 1) {
    if (x[i] === null) {
      if (closed && !begins) path += "Z";
      begins = true;
      continue;
    }
    path += `${begins ? "M" : "L"}${X(x[i]).toFixed(1)} ${Y(y[i]).toFixed(1)}`;
    begins = false;
  }
  return path + (closed && path && !begins ? "Z" : "");
}

const SHAPES = {
  line({ x, y, colour: stroke = "none", width = 1.5, dash, fill = "none", opacity = 1, closed }, { X, Y }) {
    const path = svg("path", { d: pathOf(x, y, X, Y, closed), stroke, "stroke-width": width, fill, "fill-opacity": opacity });
    if (dash) path.setAttribute("stroke-dasharray", dash);
    return [path];
  },
  bars({ boxes, stroke = "none" }, { X, Y }) {
    return boxes.map(({ x0, x1, y0, y1, colour: fill }) => {
      const left = Math.min(X(x0), X(x1)), top = Math.min(Y(y0), Y(y1));
      const size = { width: Math.max(Math.abs(X(x1) - X(x0)), 0.5), height: Math.max(Math.abs(Y(y1) - Y(y0)), 0.5) };
      return svg("rect", { x: left, y: top, ...size, fill, stroke, "stroke-width": 0.6 });
    });
  },
  squares({ points, size, stroke }, { X, Y }) {
    return points.map(({ x, y, colour: fill }) =>
      svg("rect", { x: X(x) - size / 2, y: Y(y) - size / 2, width: size, height: size, fill, stroke, "stroke-width": 0.8 }));
  },
  circles({ points, size = 5 }, { X, Y }) {
    return points.map(({ x, y, colour: fill }) => svg("circle", { cx: X(x), cy: Y(y), r: size, fill }));
  },
  texts({ points, size = 12, anchor = "start" }, { X, Y }) {
    return points.map(({ x, y, text, dx = 0, dy = 4, colour: fill, anchor: own = anchor }) =>
      svg("text", { x: X(x) + dx, y: Y(y) + dy, fill, "font-size": size, "text-anchor": own }, text));
  },
};

function axes({ x, y }, { X, Y, width, height, margin }) {
  const found = [], bottom = height - margin.b;
  if (y && !y.hidden) {
    for (const at of y.ticks ?? ticksOf(y.range, height / 60, y.bytes)) {
      found.push(svg("line", { x1: margin.l, x2: width - margin.r, y1: Y(at), y2: Y(at), stroke: colour("grid") }));
      found.push(svg("text", { x: margin.l - 8, y: Y(at) + 4, "text-anchor": "end", class: "tick" }, y.bytes ? bytesText(at) : written(at)));
    }
    found.push(svg("text", { x: 4, y: 13, class: "tick" }, y.title));
  }
  if (x && !x.hidden) {
    for (const at of x.ticks ?? ticksOf(x.range, width / 110, x.bytes)) {
      const text = x.bytes ? bytesText(at) : written(at);
      found.push(svg("text", { x: X(at), y: bottom + 18, "text-anchor": "middle", class: "tick" }, text));
    }
    found.push(svg("line", { x1: margin.l, x2: width - margin.r, y1: bottom, y2: bottom, stroke: colour("line") }));
    found.push(svg("text", { x: (margin.l + width - margin.r) / 2, y: height - 8, "text-anchor": "middle", class: "tick" }, x.title));
  }
  return found;
}

const MARGIN_OF_CHARTS = { l: 74, r: 22, t: 26, b: 44 };

/* Draw `chart` into an element: `layers` from back to front on the axes `x` and `y`.
   `chart.hover(x, y, plot)` returns { x, y, lines } for a label, or nothing. */
function draw(id, chart) {
  const box = document.getElementById(id);
  box.style.height = `${chart.height}px`;
  const width = Math.max(paperWidth ?? chart.width ?? box.clientWidth, 120), { height } = chart;
  const margin = { ...MARGIN_OF_CHARTS, ...chart.margin };
  const plot = {
    box, chart, width, height, margin,
    X: scaleOf(chart.x, margin.l, width - margin.r), Y: scaleOf(chart.y, height - margin.b, margin.t),
  };
  plot.over = svg("g");
  const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  drawn.append(...axes(chart, plot), ...chart.layers.flatMap((layer) => SHAPES[layer.kind](layer, plot)), plot.over);
  plot.label = element("div", { class: "hover", hidden: "" });
  box.replaceChildren(drawn, plot.label);
  if (chart.hover) {
    drawn.addEventListener("pointermove", (event) => {
      const at = drawn.getBoundingClientRect();
      const [x, y] = [plot.X.value(event.clientX - at.left), plot.Y.value(event.clientY - at.top)];
      hoverAt(plot, chart.hover(x, y, plot));
    });
    drawn.addEventListener("pointerleave", () => hoverAt(plot, null));
  }
  PLOTS.set(id, plot);
  return plot;
}

/* Show the label of a place in a chart, or none. */
function hoverAt(plot, found) {
  plot.label.hidden = !found;
  if (!found) return;
  plot.label.replaceChildren(...found.lines.map((line, i) => element(i ? "div" : "b", {}, line)));
  const { clientWidth: width } = plot.label;
  const left = plot.X(found.x) + 14;
  plot.label.style.left = `${left + width > plot.width ? Math.max(left - width - 28, 0) : left}px`;
  plot.label.style.top = `${Math.max(Math.min(plot.Y(found.y), plot.height - plot.label.clientHeight), 0)}px`;
}

/* The index of the point that is nearest to a place, at most `most` pixels away; -1 for none. */
function nearest(points, x, y, { X, Y }, most = 24) {
  let best = -1, least = most ** 2;
  points.forEach((point, i) => {
    const away = (X(point.x) - X(x)) ** 2 + (Y(point.y) - Y(y)) ** 2;
    if (away <= least) [best, least] = [i, away];
  });
  return best;
}
