// One run in detail: matrix, retention of each task, losses by term, settings, command.
let data = { runs: {} };
let terms = []; // names of all terms of the loss: each has the same colour in all runs

/** JSON from letters that stand for its compressed bytes. */
async function unpacked(letters) {
  const bytes = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Read the data of all runs, then show the first, or the one in the address. */
async function loadRuns() {
  try {
    data = await unpacked(document.getElementById("data").textContent);
  } catch {
    document.getElementById("detail")?.append(element("p", { class: "note", text: "This browser cannot unpack the data of single runs; those of 2024 or later can, and perdure show RUN prints the matrix of a run." }));
    return;
  }
  terms = [...new Set(Object.values(data.runs).flatMap((run) => Object.keys(run.curves.values)))]
    .filter((name) => name.startsWith("loss ")).sort((a, b) => (b === "loss task") - (a === "loss task") || (a < b ? -1 : 1));
  startRuns();
}

/** A colour along a ramp of three, from the first task to the last. */
function taskColour(place, count) {
  const share = count > 1 ? (2 * place) / (count - 1) : 0;
  const [from, to, part] = share <= 1 ? [1, 2, share] : [2, 3, share - 1];
  return `color-mix(in oklab, var(--ramp-${to}) ${Math.round(100 * part)}%, var(--ramp-${from}))`;
}

const SERIES = 10; // number of colours

/** The colour of each curve; a term yields to another only if a run has both and colours run out. */
function termColours(names) {
  const used = new Set();
  return new Map(names.map((name) => {
    if (!name.startsWith("loss ")) return [name, "var(--ink)"];
    let place = terms.indexOf(name) % SERIES;
    for (let tried = 0; used.has(place) && tried < SERIES; tried += 1) place = (place + 1) % SERIES;
    used.add(place);
    return [name, `var(--series-${place})`];
  }));
}

/** What a run's percentages measure, capitalised. */
function scoreTitle(run) {
  return run.score[0].toUpperCase() + run.score.slice(1);
}

/** The multiple of ten below all matrices comparable with a run's: their heat maps share one scale. */
function lowestOf({ benchmark, score }, measure) {
  const values = Object.values(data.runs).filter((run) => run.benchmark === benchmark && run.score === score)
    .flatMap((run) => (run[measure] ?? []).flat()).filter((value) => value !== null);
  return Math.min(90, 10 * Math.floor(values.reduce((least, value) => Math.min(least, value), 100) / 10));
}

function panel(title, note, content, wide = false) {
  return element("div", { class: `panel${wide ? " wide" : ""}` },
    element("h3", { text: title }), element("p", { class: "note", text: note }), ...[content].flat());
}

function heatPanel(run, measure, name) {
  const low = lowestOf(run, measure);
  const joint = run.iterations.length === 1 && run.tasks.length > 1 ? " All tasks were learnt at once, so all rows are the same." : "";
  return panel(name, `Rows: after learning each task. Columns: tested on each task. Outlined: right after it was learnt.${joint}`, [
    heatMap(run[measure], run.tasks, low, name),
    element("div", { class: "gradient", "aria-hidden": "true" }, element("span", { text: `${low} %` }), element("i"), element("span", { text: "100 %" })),
  ]);
}

function keptPanel(run) {
  const count = run.tasks.length;
  const places = run.tasks.map((_, place) => place);
  const series = places.map((task) => ({
    name: `task ${task + 1}`,
    values: run.accuracy.map((row, phase) => (phase < task ? null : row[task])),
    colour: taskColour(task, count),
    unkeyed: count >= DENSE,
  }));
  const learnt = series.flatMap(({ values }) => values).filter((value) => value !== null);
  const mean = run.accuracy.map((row, phase) => {
    const known = row.slice(0, phase + 1);
    return Number((known.reduce((sum, value) => sum + value, 0) / known.length).toFixed(2));
  });
  if (count > 1) series.push({ name: "mean of learnt tasks", values: mean, colour: "var(--ink)", dashed: true, bold: true });
  const chart = lineChart({
    label: `${scoreTitle(run)} of each task after each phase; at the end ${run.final} % on average`,
    x: places.map((place) => place + 1), xTicks: places.map((place) => place + 1), xName: "after learning task",
    series, marks: true, unit: " %", low: Math.min(90, 10 * Math.floor(Math.min(100, ...learnt) / 10)), high: 100,
    titleAt: (place) => `After task ${place + 1} (${run.tasks[place]})`,
  });
  const ramp = element("div", { class: "gradient", "aria-hidden": "true" },
    element("span", { text: "task 1" }), element("i", { class: "tasks" }), element("span", { text: `task ${count}` }));
  return panel("Retention of each task", `${scoreTitle(run)} on each task since it was learnt, in percent.`,
    count >= DENSE ? [chart, ramp] : chart, Boolean(run.f1 || run.error));
}

/** Where each phase begins and ends, in iterations. */
function phaseBounds(run) {
  let from = 0;
  return run.iterations.map((count, place) => {
    const bound = { from, to: from + count, name: run.iterations.length === run.tasks.length ? `task ${place + 1}` : "all tasks" };
    from = bound.to;
    return bound;
  });
}

function curveChart(run, names, rest) {
  const { iteration, phase, values } = run.curves;
  const bounds = phaseBounds(run);
  const colours = termColours(names);
  return lineChart({
    x: iteration, from: 0, parts: phase, bounds, xName: "iteration, over all phases",
    series: names.map((name) => ({ name: name.replace(/^loss /, ""), values: values[name], colour: colours.get(name), dashed: name === "val loss" })),
    titleAt: (place) => `${bounds[phase[place]].name}, iteration ${iteration[place] - bounds[phase[place]].from}`,
    ...rest,
  });
}

function lossPanel(run) {
  const names = [...terms, "val loss"].filter((name) => run.curves.values[name]);
  if (!names.length) return [];
  const chart = curveChart(run, names, { label: "Loss of each term over all iterations", logarithmic: true });
  const toggle = element("button", { type: "button", class: "quiet", "aria-pressed": "true", text: "logarithmic" });
  toggle.addEventListener("click", () => {
    const log = toggle.getAttribute("aria-pressed") !== "true";
    toggle.setAttribute("aria-pressed", String(log));
    chart.setLog(log);
  });
  return [panel("Loss by term", "Means between validations; zeros cannot be shown on a logarithmic axis.", [chart, element("div", { class: "controls" }, toggle)], true)];
}

function validationPanel(run) {
  if (!run.curves.values["val accuracy"]) return [];
  return [panel(`Validation ${run.score}`, "On the current task, in percent.",
    curveChart(run, ["val accuracy"], { label: `Validation ${run.score} over all iterations`, unit: " %", high: 100 }), true)];
}

function pairs(list) {
  return element("dl", {}, ...list.map(([name, text]) => element("div", {}, element("dt", { text: name }), element("dd", { text }))));
}

function listPanel(run) {
  const groups = [...run.config, ["sizes, time and machine", run.facts]].filter(([, list]) => list.length);
  const lists = groups.map(([name, list]) => element("div", {}, element("h4", { text: name }), pairs(list)));
  return panel("Settings", "What the run was made with, by section.", element("div", { class: "lists" }, ...lists), true);
}

/** A table whose first column names its rows. */
function plainTable(name, head, lines) {
  const cells = (row, kind) => row.map((text, place) => element(place ? kind : "th", { text, class: place ? "number" : "short", scope: place ? null : "row" }));
  return element("div", { class: "frame", tabindex: 0, role: "region", "aria-label": name },
    element("table", {}, element("thead", {}, element("tr", {}, ...cells(head, "th"))),
      element("tbody", {}, ...lines.map((line) => element("tr", {}, ...cells(line, "td"))))));
}

/** The error of predicted values. */
function errorPanel(run) {
  if (!run.error) return [];
  const lines = run.error.map((row, phase) => [`task ${phase + 1}`, ...row]);
  return [panel("Error", "Root mean square of prediction minus target, in the units of the data. Rows: after learning each task. Columns: tested on each task.",
    plainTable("Error", ["after", ...run.tasks.map((_, task) => `task ${task + 1}`)], lines))];
}

/** Iterations and times of each phase. */
function timePanel(run) {
  const names = [...new Set(run.timings.flatMap((times) => Object.keys(times)))];
  const lines = phaseBounds(run).map(({ name }, place) =>
    [name, String(run.iterations[place]), ...names.map((part) => run.timings[place]?.[part] ?? "–")]);
  return panel("Time of each phase", "Training, the method's work after each task, and testing.", plainTable("Time of each phase", ["phase", "iterations", ...names], lines), true);
}

function commandPanel(run) {
  const holder = panel("How to reproduce it", "Run it in the folder that contains the runs; a finished run is not repeated unless --force is given.",
    element("p", { style: "max-width: none; margin: 0" }, commandText(run.command)), true);
  addCopyButtons(holder);
  return holder;
}

function headline(run) {
  const facts = [["during", `${run.during} %`], ["final", `${run.final} %`], ["forgetting", run.forgetting]];
  return element("div", { class: "headline" },
    element("h3", { text: `${run.benchmark}, ${run.method}, seed ${run.seed}` }), pairs(facts));
}

const shownRun = { id: null };

function showRun(id) {
  const run = data.runs[id];
  if (!run) return;
  shownRun.id = id;
  const f1 = run.f1 ? [heatPanel(run, "f1", "Weighted F1")] : [];
  document.getElementById("detail-body").replaceChildren(headline(run), element("div", { class: "panels" },
    heatPanel(run, "accuracy", scoreTitle(run)), ...f1, ...errorPanel(run), keptPanel(run), ...lossPanel(run), ...validationPanel(run), commandPanel(run), listPanel(run), timePanel(run)));
  document.getElementById("chosen-run").value = id;
  document.querySelectorAll("#runs-table tr[aria-current]").forEach((row) => row.removeAttribute("aria-current"));
  document.getElementById(id).setAttribute("aria-current", "true");
}

/** Show a run and scroll to it. */
function openRun(id) {
  showRun(id);
  document.getElementById("one-run").scrollIntoView();
  say(`Run ${data.runs[id].method}, seed ${data.runs[id].seed} is now shown`);
}

function startRuns() {
  const ids = Object.keys(data.runs);
  if (!ids.length) return;
  const groups = new Map();
  for (const id of ids) {
    const name = `${data.runs[id].benchmark}, ${data.runs[id].method}`;
    groups.set(name, [...(groups.get(name) ?? []), id]);
  }
  const select = element("select", { id: "chosen-run", "aria-label": "Run" }, ...[...groups].map(([name, members]) =>
    element("optgroup", { label: name }, ...members.map((id) =>
      element("option", { value: id, text: `${name}, seed ${data.runs[id].seed} (${data.runs[id].hash.slice(0, 8)})` })))));
  const step = (by) => () => showRun(ids[(ids.indexOf(shownRun.id) + by + ids.length) % ids.length]);
  select.addEventListener("change", () => showRun(select.value));
  document.getElementById("detail").append(
    element("div", { class: "chooser" }, select,
      element("button", { type: "button", class: "quiet", text: "Previous", onclick: step(-1) }),
      element("button", { type: "button", class: "quiet", text: "Next", onclick: step(1) })),
    element("div", { id: "detail-body" }));
  document.getElementById("runs-table").tBodies[0].addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (!row || String(getSelection())) return;
    event.preventDefault();
    openRun(row.id);
  });
  const fromAddress = () => { if (data.runs[location.hash.slice(1)]) openRun(location.hash.slice(1)); };
  addEventListener("hashchange", fromAddress);
  showRun(ids[0]);
  fromAddress();
}
