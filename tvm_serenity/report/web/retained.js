/* Live bytes of each feature of a network by rows, one on the other, for each way to split it. */
const RETAINED_NAMES = { rows: "Bands of one row", sliding: "A step of the moving window" };

function retainedColour(i) {
  return TENSOR_COLOURS[i % TENSOR_COLOURS.length];
}

function writeRetained() {
  if (!data.retained.length) {
    for (const part of document.querySelectorAll(".retained")) part.remove();
    return;
  }
  const box = document.getElementById("retained-charts");
  data.retained.forEach((one, i) => {
    const path = `retained.${i}`, name = RETAINED_NAMES[one.name] ?? one.name;
    const kept = one.kept_bytes ? [", of which ", shown(`${path}.kept_bytes`), " bytes are retained from step to step"] : [];
    const rows = one.features.map((feature, f) => ({ cells: [
      element("span", {}, element("span", { style: `color: ${retainedColour(f)}`, "aria-hidden": "true" }, "■ "), clipped(feature.name)),
      shown(`${path}.features.${f}.most_bytes`), shown(`${path}.features.${f}.kept_bytes`)] }));
    const columns = [["rows of", "word"], ["most, bytes", "number"], ["from step to step", "number"]];
    box.append(element("h3", {}, name),
      element("p", {}, "Peak ", shown(`${path}.peak_bytes`), " bytes in ", shown(`${path}.calls`), " calls", ...kept, ", by serenity ",
        shown(`${path}.command`), "."),
      element("div", { id: `retained-${i}-chart`, class: "chart", tabindex: "0", role: "group", "aria-label": `${name}: chart of live rows; the numbers are below` }),
      element("div", { class: "scroll table", tabindex: "0", role: "group", "aria-label": `${name}: rows by tensor` }, table(columns, rows)));
  });
}

/* The features from the bottom up: [lower, upper] bytes of each at each part of the time. */
function stackedFeatures({ features }) {
  let below = (features[0]?.live_bytes ?? []).map(() => 0);
  return features.map(({ live_bytes: live }) => {
    const lower = below;
    below = live.map((bytes, at) => bytes + lower[at]);
    return [lower, below];
  });
}

function drawRetained() {
  data.retained.forEach((one, i) => {
    const stack = stackedFeatures(one), parts = one.features[0]?.live_bytes.length ?? 0;
    const each = 100 / Math.max(parts, 1), most = Math.max(1, ...(stack.at(-1)?.[1] ?? []));
    const layers = stack.map(([lower, upper], f) => {
      const [low, high] = [stepCurve(lower, 0, each), stepCurve(upper, 0, each)];
      return { kind: "line", x: [...high.x, ...low.x.reverse()], y: [...high.y, ...low.y.reverse()], fill: retainedColour(f), closed: true, width: 0.6, colour: colour("card") };
    });
    draw(`retained-${i}-chart`, {
      height: 280, layers,
      x: { title: "% of the calls made", range: [0, 100] }, y: { title: "live", range: [0, most * 1.08], bytes: true },
      hover: (x) => {
        const part = Math.min(Math.floor(x / each), parts - 1);
        if (x < 0 || x > 100 || part < 0) return null;
        const alive = one.features.filter((feature) => feature.live_bytes[part]);
        return { x, y: stack.at(-1)[1][part], lines: [`after ${x.toFixed(0)} % of the calls`,
          ...alive.map((feature) => `${written(feature.live_bytes[part])}  ${clipped(feature.name)}`)] };
      },
    });
  });
}
