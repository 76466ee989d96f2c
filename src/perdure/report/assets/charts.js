// Line charts and heat maps: drawn to fit their space, with values at the pointer and by arrow keys.
const EDGE = { top: 18, right: 20, bottom: 34, left: 46 };

function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= raw * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-6; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

function logTicks(low, high) {
  const from = Math.ceil(Math.log10(low) - 1e-9);
  const to = Math.floor(Math.log10(high) + 1e-9);
  const stride = Math.max(1, Math.ceil((to - from + 1) / 6));
  const ticks = [];
  const digits = to - from < 2 ? [1, 2, 5] : [1];
  for (let power = from - 1; power <= to; power += stride) {
    for (const digit of digits) ticks.push(Number((digit * 10 ** power).toPrecision(3)));
  }
  const inside = ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
  return inside.length > 1 ? inside : [low, high];
}

const SUPERSCRIPTS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) {
    const [digits, power] = value.toExponential(1).split("e");
    const raised = [...String(Number(power))].map((sign) => SUPERSCRIPTS[sign]).join("");
    return digits === "1.0" ? `10${raised}` : `${digits.replace(".0", "")}·10${raised}`;
  }
  return String(Number(value.toPrecision(4))).replace("-", "−");
}

/** The range of all visible values; with `log` only of positive ones. */
function rangeOf(series, log) {
  const seen = series.flatMap(({ values }) => values).filter((value) => value !== null && (!log || value > 0));
  if (!seen.length) return [log ? 0.1 : 0, 1];
  let [low, high] = [Math.min(...seen), Math.max(...seen)];
  if (log) return low < high ? [low, high] : [low / 2, high * 2];
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  const room = (high - low) * 0.04;
  return [low - room, high + room];
}

/**
 * A line chart that redraws itself when its place changes.
 * chart: label, x (numbers), xName, xTicks?, series [{name, values, colour, dashed?, bold?, unkeyed?}], marks?,
 * parts? (part of each point; lines break between parts), partNames?, unit?, low?, high?, logarithmic?
 */
function lineChart(chart) {
  const state = { hidden: new Set(), log: Boolean(chart.logarithmic), at: null };
  const svg = drawn("svg", { class: "chart", role: "img", tabindex: 0, "aria-label": chart.label });
  const keys = element("div", { class: "keys" });
  const holder = element("div", {}, svg, keys);
  const redraw = () => { if (holder.isConnected) drawLines(svg, chart, state, holder.clientWidth); };
  for (const line of chart.series.length > 1 ? chart.series.filter(({ unkeyed }) => !unkeyed) : []) {
    const key = element("button", { type: "button", class: `key${line.dashed ? " dashed" : ""}`, "aria-pressed": "true", style: `--key: ${line.colour}` },
      element("i"), element("span", { text: line.name }));
    key.addEventListener("click", () => {
      if (!state.hidden.delete(line.name)) state.hidden.add(line.name);
      key.setAttribute("aria-pressed", String(!state.hidden.has(line.name)));
      redraw();
    });
    keys.append(key);
  }
  new ResizeObserver(redraw).observe(holder);
  followPointer(svg, chart, state);
  holder.setLog = (log) => { state.log = log; redraw(); };
  return holder;
}

function drawLines(svg, chart, state, width) {
  const height = Math.round(Math.min(300, Math.max(200, width * 0.52)));
  const lines = chart.series.filter(({ name }) => !state.hidden.has(name));
  const [low, high] = (() => {
    const [least, most] = rangeOf(lines, state.log);
    return state.log ? [least, most] : [Math.min(chart.low ?? least, least), Math.max(chart.high ?? most, most)];
  })();
  const scale = state.log ? Math.log10 : (value) => value;
  const first = Math.min(...chart.x, chart.from ?? Infinity);
  const last = Math.max(...chart.x);
  const x = (value) => EDGE.left + (width - EDGE.left - EDGE.right) * (last > first ? (value - first) / (last - first) : 0.5);
  const y = (value) => height - EDGE.bottom - (height - EDGE.top - EDGE.bottom) * (scale(value) - scale(low)) / (scale(high) - scale(low));
  state.x = x;
  state.y = y;
  state.lines = lines;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
  const parts = [];
  for (const tick of state.log ? logTicks(low, high) : niceTicks(low, high, 5)) {
    parts.push(drawn("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(tick), y2: y(tick) }),
      drawn("text", { x: EDGE.left - 8, y: y(tick) + 4, "text-anchor": "end", text: shortNumber(tick) }));
  }
  const room = Math.max(2, Math.floor((width - EDGE.left) / 70));
  const along = chart.xTicks && chart.xTicks.length <= 2 * room ? chart.xTicks
    : niceTicks(first, last, room).filter((tick) => !chart.xTicks || Number.isInteger(tick));
  for (const tick of along) parts.push(drawn("text", { x: x(tick), y: height - EDGE.bottom + 16, "text-anchor": "middle", text: shortNumber(tick) }));
  parts.push(drawn("line", { class: "base", x1: EDGE.left, x2: width - EDGE.right, y1: height - EDGE.bottom, y2: height - EDGE.bottom }),
    drawn("text", { x: (EDGE.left + width - EDGE.right) / 2, y: height - 2, "text-anchor": "middle", text: chart.xName }));
  parts.push(...drawParts(chart, x, height));
  for (const line of lines) {
    const at = { style: `stroke: ${line.colour}; stroke-width: ${line.bold ? 3 : 1.75}` };
    parts.push(drawn("path", { class: "series", d: pathOf(line, chart, state.log, x, y), "stroke-dasharray": line.dashed ? "1 4" : null, ...at }));
    const drawable = (place) => isDrawn(line.values[place], state.log);
    line.values.forEach((value, place) => {
      if (drawable(place) && (chart.marks || isAlone(place, drawable, chart.parts))) parts.push(drawn("circle", { cx: x(chart.x[place]), cy: y(value), r: line.bold ? 3.5 : 2.5, style: `fill: ${line.colour}` }));
    });
  }
  state.over = drawn("g");
  svg.replaceChildren(...parts, state.over);
}

/** Boundaries between phases, labelled above if there is room. */
function drawParts(chart, x, height) {
  const bounds = chart.bounds ?? [];
  const room = bounds.length > 1 ? x(bounds[1].to) - x(bounds[1].from) : 0;
  return bounds.flatMap(({ from, to, name }, place) => [
    ...(place ? [drawn("line", { class: "phase", x1: x(from), x2: x(from), y1: EDGE.top, y2: height - EDGE.bottom })] : []),
    ...(room > 42 ? [drawn("text", { x: x((from + to) / 2), y: 11, "text-anchor": "middle", text: name })] : []),
  ]);
}

function isDrawn(value, log) {
  return value !== null && value !== undefined && (!log || value > 0);
}

/** Whether a value has no neighbour that a line could lead to, and would be no more than a speck. */
function isAlone(place, drawable, parts) {
  return [place - 1, place + 1].every((other) => !drawable(other) || (parts && parts[other] !== parts[place]));
}

/** Lines break where a value is missing or has no logarithm, and between phases. */
function pathOf(line, chart, log, x, y) {
  let path = "";
  let pen = false;
  line.values.forEach((value, place) => {
    if (chart.parts && place && chart.parts[place] !== chart.parts[place - 1]) pen = false;
    if (!isDrawn(value, log)) { pen = false; return; }
    path += `${pen ? "L" : "M"}${x(chart.x[place]).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!pen) path += "h.01";
    pen = true;
  });
  return path;
}

function followPointer(svg, chart, state) {
  const point = (place, at) => {
    state.at = place;
    const x = state.x(chart.x[place]);
    const [, top, , height] = [0, EDGE.top, 0, svg.viewBox.baseVal.height];
    const shown = state.lines.filter(({ values }) => values[place] !== null && (!state.log || values[place] > 0));
    state.over.replaceChildren(drawn("line", { class: "cursor", x1: x, x2: x, y1: top, y2: height - EDGE.bottom }),
      ...shown.map((line) => drawn("circle", { cx: x, cy: state.y(line.values[place]), r: 4, style: `fill: ${line.colour}; stroke: var(--ground)` })));
    const rows = state.lines.filter(({ values }) => values[place] !== null)
      .map((line) => tipRow(line.colour, line.name, shortNumber(line.values[place]) + (chart.unit ?? "")));
    const content = [element("b", { text: chart.titleAt(place) }), element("div", { class: rows.length > 12 ? "two" : "" }, ...rows)];
    const box = svg.getBoundingClientRect();
    showTip(content, at?.x ?? box.left + x, at?.y ?? box.top + height / 2);
  };
  const leave = () => { state.at = null; state.over?.replaceChildren(); hideTip(); };
  svg.addEventListener("pointermove", (event) => {
    const left = event.clientX - svg.getBoundingClientRect().left;
    const distances = chart.x.map((value) => Math.abs(state.x(value) - left));
    if (distances.length) point(distances.indexOf(Math.min(...distances)), { x: event.clientX, y: event.clientY });
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const end = chart.x.length - 1;
    const now = state.at ?? -1;
    const next = { ArrowRight: Math.min(now + 1, end), ArrowLeft: Math.max(now - 1, 0), Home: 0, End: end }[event.key];
    if (next === undefined || end < 0) return;
    event.preventDefault();
    point(next);
    say(tip.textContent);
  });
}

const DENSE = 12; // with this many tasks or more, the cells of a heat map have no room for digits

/** A matrix as a table of coloured cells; values are between low and 100. */
function heatMap(matrix, tasks, low, name) {
  const share = (value) => (value === null ? 0 : Math.min(100, Math.max(0, 100 * (value - low) / (100 - low || 1))));
  const dense = tasks.length >= DENSE;
  const numbers = tasks.map((_, place) => place + 1);
  const shown = (number) => (!dense || number === 1 || number % 5 === 0 ? String(number) : "");
  const cell = (value, row, column) => element("td", {
    class: [column === row && "own", column > row && "future", share(value) > 68 ? "deep" : share(value) > 52 && "middle"].filter(Boolean).join(" "),
    style: `--p: ${share(value).toFixed(1)}`,
    text: value === null ? "–" : value.toFixed(tasks.length > 8 ? 0 : 1),
    "data-tip": `After task ${row + 1}, on task ${column + 1} (${tasks[column]}): ${value === null ? "–" : value.toFixed(2)} %`,
  });
  const table = element("table", { class: `heat${dense ? " dense" : ""}`, tabindex: 0, "aria-label": `${name} in percent; use the arrow keys to move through it` },
    element("thead", {}, element("tr", {}, element("td", { class: "corner", style: "background: none; height: auto" }),
      ...numbers.map((number) => element("th", { scope: "col", text: shown(number), "aria-label": `task ${number}` })))),
    element("tbody", {}, ...matrix.map((row, place) => element("tr", {},
      element("th", { scope: "row", text: shown(place + 1), "aria-label": `after task ${place + 1}` }),
      ...row.map((value, column) => cell(value, place, column))))));
  let at = [0, 0];
  table.addEventListener("keydown", (event) => {
    const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const limit = (value, count) => Math.min(Math.max(value, 0), count - 1);
    at = [limit(at[0] + move[0], matrix.length), limit(at[1] + move[1], tasks.length)];
    table.querySelectorAll(".pointed").forEach((old) => old.classList.remove("pointed"));
    const target = table.tBodies[0].rows[at[0]].cells[at[1] + 1];
    target.classList.add("pointed");
    showTipAt(target, target.dataset.tip);
    say(target.dataset.tip);
  });
  table.addEventListener("blur", () => table.querySelectorAll(".pointed").forEach((old) => old.classList.remove("pointed")));
  return table;
}
