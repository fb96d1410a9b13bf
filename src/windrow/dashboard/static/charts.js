// Charts: Plotly's for what changes with time, drawn here for histograms of lags.
import { bytes, count, element, percent, seconds, table, vector } from "./parts.js";

const SHOWN_ROWS = 25;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
export const streamColour = (number) => colour(`s${(number % 8) + 1}`);
const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
// Plotly reads some HTML in names; what comes from data is shown as it is.
const plain = (text) => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const line = (name, x, y, look = {}) => ({
  type: "scatter", mode: x.length < 3 ? "lines+markers" : "lines", name: plain(name), x, y, connectgaps: false,
  line: { color: look.colour, width: look.width ?? 2, dash: look.dash ?? "solid" }, ...look.more,
});

function layout(more = {}) {
  const ink = colour("soft");
  const axis = { gridcolor: colour("grid"), zerolinecolor: colour("line"), linecolor: colour("line"), tickfont: { color: ink }, automargin: true };
  return {
    margin: { l: 48, r: 12, t: 8, b: 30 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, sans-serif", size: 12, color: colour("ink") }, hovermode: "x unified",
    hoverlabel: { bgcolor: colour("card"), bordercolor: colour("line"), font: { color: colour("ink") } },
    showlegend: true, legend: { orientation: "h", y: -0.16, yanchor: "top", x: 0, font: { size: 11.5 } },
    xaxis: { ...axis, type: "date", ...(more.xaxis ?? {}) }, yaxis: { ...axis, rangemode: "tozero", ...(more.yaxis ?? {}) },
    ...(more.rest ?? {}),
  };
}

// A figure with its caption, a sentence for those who do not see it, the plot, and its numbers as a table.
function figure(id, title) {
  const box = document.getElementById(id);
  if (!box.querySelector(".plot")) {
    box.replaceChildren(
      element("figcaption", { text: title }), element("p", { class: "say" }), element("div", { class: "plot", role: "img" }),
      element("details", {}, element("summary", { text: "Numbers" }), element("div", { class: "scroll" }, element("table"))),
    );
    box.querySelector("details").addEventListener("toggle", () => box.fill?.());
  }
  return box;
}

function draw(id, title, say, traces, more, columns, rows) {
  const box = figure(id, title);
  box.querySelector(".say").textContent = say;
  const plot = box.querySelector(".plot");
  plot.setAttribute("aria-label", `${title}. ${say} The numbers are below.`);
  box.dataset.points = String(traces.reduce((sum, trace) => sum + (trace.y ?? []).filter((y) => y !== null).length, 0));
  window.Plotly.react(plot, traces, layout(more), { displayModeBar: false, responsive: true });
  box.fill = () => {
    if (box.querySelector("details").open) table(box.querySelector("table"), columns, rows(), { caption: `${title}, the last points` });
  };
  box.fill();
}

const clock = (ms) => new Date(ms).toISOString().slice(0, 19).replace("T", " ");
const lately = (values) => { for (let k = values.length - 1; k >= 0; k -= 1) if (values[k] !== null) return values[k]; return null; };

// Capacity matters where rates come near it; where it is far above, the axis ends below it.
function tallest(rates, capacity) {
  const most = Math.max(1e-9, ...rates.filter((value) => value !== null));
  return Math.max(1.2 * most, Math.min(4 * most, 1.1 * Math.max(0, ...capacity.filter((value) => value !== null))));
}

export function timeCharts(view) {
  const s = view.series, at = s.at_ms.map((ms) => new Date(ms).toISOString());
  const names = Object.keys(s.rates);
  const last = () => s.at_ms.map((_, k) => k).slice(-SHOWN_ROWS).reverse();
  const when = ["time (UTC)", (k) => clock(s.at_ms[k]), { text: true }];
  const each = (name, values, show) => [name, (k) => show(values[k])];

  const rate = lately(s.rate), capacity = lately(s.capacity);
  draw("chart-rates", "Rows a second, and what this machine can join in full",
    `${count(rate)} rows/s come; about ${count(capacity)} could be joined in full.`,
    [...names.map((name, k) => line(name, at, s.rates[name], { colour: streamColour(k), dash: DASHES[k % DASHES.length], width: 1.5 })),
      line("all streams", at, s.rate, { colour: colour("ink"), width: 2.5 }),
      line("capacity", at, s.capacity, { colour: colour("bad"), dash: "dash" })],
    { yaxis: { title: { text: "rows/s" }, range: [0, tallest(s.rate, s.capacity)] } },
    [when, ...names.map((name) => each(name, s.rates[name], count)), each("all", s.rate, count), each("capacity", s.capacity, count)], last);

  draw("chart-work", "Share of the full work that is done",
    `Throttle ${percent(lately(s.throttle))}; busy ${percent(lately(s.busy))} of the time.`,
    [line("throttle", at, s.throttle, { colour: colour("bar"), width: 2.5, more: { fill: "tozeroy", fillcolor: `${colour("bar")}22` } }),
      line("busy", at, s.busy, { colour: colour("s2"), dash: "dot" })],
    { yaxis: { tickformat: ".0%", range: [0, Math.max(1.05, ...s.busy.filter((b) => b !== null && b < 4))] } },
    [when, each("throttle", s.throttle, percent), each("busy", s.busy, percent)], last);

  const repaired = s.repaired ? [line("repaired", at, s.repaired, { colour: colour("s4"), dash: "dash" })] : [];
  draw("chart-results", "Results a second", `${count(lately(s.results))} results/s of late, ${count(view.head.results)} in all.`,
    [line("at once", at, s.results, { colour: colour("s5"), width: 2.5, more: { fill: "tozeroy", fillcolor: `${colour("s5")}22` } }), ...repaired],
    { yaxis: { title: { text: "results/s" } } },
    [when, each("at once", s.results, count), ...(s.repaired ? [each("repaired", s.repaired, count)] : [])], last);

  const edge = { colour: colour("bar"), width: 0 };
  draw("chart-recall", "Estimated recall, with its 95 % interval", `Whole run: ${view.head.recall.text}.`,
    [line("upper end", at, s.recall_high, { ...edge, more: { showlegend: false, hoverinfo: "skip" } }),
      line("95 % interval", at, s.recall_low, { ...edge, more: { fill: "tonexty", fillcolor: `${colour("bar")}33` } }),
      line("recall of the last batches", at, s.recall, { colour: colour("bar"), width: 2.5 })],
    { yaxis: { tickformat: ".0%", range: [0, 1.05] } },
    [when, each("recall", s.recall, percent), each("low", s.recall_low, percent), each("high", s.recall_high, percent)], last);

  const limit = s.delay_limit_s === null ? [] : [line("allowed by FRESHNESS", at, at.map(() => s.delay_limit_s), { colour: colour("bad"), dash: "dot" })];
  draw("chart-durations", "Batch duration, trigger, and age of results",
    `A batch takes ${seconds(lately(s.busy_s))}, the next comes after ${seconds(lately(s.span_s))}; a row waits ${seconds(lately(s.delay_s))} at most.`,
    [line("batch takes", at, s.busy_s, { colour: colour("s1"), width: 2.5 }), line("trigger", at, s.span_s, { colour: colour("soft"), dash: "dash" }),
      line("longest wait", at, s.delay_s, { colour: colour("s4"), dash: "dot" }), ...limit],
    { yaxis: { title: { text: "seconds" } } },
    [when, each("takes", s.busy_s, seconds), each("trigger", s.span_s, seconds), each("longest wait", s.delay_s, seconds)], last);

  draw("chart-bytes", "Bytes of each window", `${view.head.bytes_text} in all.`,
    names.map((name, k) => line(name, at, s.bytes[name], { colour: streamColour(k), width: 1, more: { stackgroup: "all" } })),
    { yaxis: { tickformat: ".3s", ticksuffix: "B" } }, [when, ...names.map((name) => each(name, s.bytes[name], bytes))], last);
}

export function phaseChart(view) {
  const phases = Object.entries(view.phases).sort((one, two) => one[1] - two[1]);
  const longest = phases.at(-1);
  draw("chart-phases", "Where the last batch spent its time", longest ? `Most of it: ${longest[0]}, ${seconds(longest[1])}.` : "Not told.",
    [{ type: "bar", orientation: "h", x: phases.map(([, s]) => s), y: phases.map(([name]) => plain(name)), marker: { color: colour("s1") }, width: phases.length < 4 ? 0.4 : null,
      hovertemplate: "%{y}: %{x:.3f} s<extra></extra>" }],
    { xaxis: { type: "linear", title: { text: "seconds" }, rangemode: "tozero" }, yaxis: { type: "category" }, rest: { showlegend: false, hovermode: "closest" } },
    [["phase", (p) => p[0], { text: true }], ["seconds", (p) => seconds(p[1])]], () => [...phases].reverse());
}

export function sliceChart(view) {
  const held = Object.entries(view.slices).filter(([, parts]) => parts.length > 1);
  const box = document.getElementById("chart-slices");
  box.hidden = held.length === 0;
  if (box.hidden) return;
  draw("chart-slices", "Bytes of each window, by slice", "How evenly the windows are shared out.",
    held.map(([name, parts], k) => ({ type: "bar", name: plain(name), x: parts.map(([place]) => `slice ${place}`), y: parts.map(([, size]) => size), marker: { color: streamColour(k) } })),
    { xaxis: { type: "category" }, yaxis: { tickformat: ".3s", ticksuffix: "B" }, rest: { barmode: "stack", hovermode: "x" } },
    [["stream", "name", { text: true }], ["slice", "place"], ["size", "size"]],
    () => held.flatMap(([name, parts]) => parts.map(([place, size]) => ({ name, place, size: bytes(size) }))));
}

// One histogram: results a row by lag; what is searched is a band behind the bars, the darker the more rows look there.
function histogram(held, title, say) {
  const [w, h, left, bottom, top] = [300, 132, 6, 20, 8];
  const first = held.edges[0], last = held.edges.at(-1);
  const x = (lag) => left + ((lag - first) / Math.max(last - first, 1e-12)) * (w - 2 * left);
  const most = Math.max(...held.results_a_row, 1e-12);
  const y = (value) => top + (1 - value / most) * (h - top - bottom);
  const svg = vector("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${title}. ${say}` });
  for (const part of held.searched) {
    for (const [low, high] of part.ranges) {
      if (high > low) svg.append(vector("rect", { x: x(low), y: top, width: Math.max(1, x(high) - x(low)), height: h - top - bottom, fill: colour("band"), opacity: 0.15 + 0.45 * part.share }));
    }
  }
  held.results_a_row.forEach((value, k) => {
    const [a, b] = [x(held.edges[k]), x(held.edges[k + 1])];
    svg.append(vector("rect", { x: a + 0.5, y: y(value), width: Math.max(0.5, b - a - 1), height: Math.max(0, h - bottom - y(value)), fill: colour("bar"), rx: 1 },
      vector("title", {}, `${lag(held.edges[k], held.unit)} to ${lag(held.edges[k + 1], held.unit)}: ${count(value)} results a row`)));
  });
  const axis = { fill: colour("soft"), "font-size": 10.5 };
  svg.append(vector("line", { x1: left, x2: w - left, y1: h - bottom, y2: h - bottom, stroke: colour("line") }));
  svg.append(vector("text", { ...axis, x: left, y: h - 6 }, lag(first, held.unit)));
  svg.append(vector("text", { ...axis, x: w / 2, y: h - 6, "text-anchor": "middle" }, lag((first + last) / 2, held.unit)));
  svg.append(vector("text", { ...axis, x: w - left, y: h - 6, "text-anchor": "end" }, lag(last, held.unit)));
  return svg;
}

const lag = (value, unit) => unit === "rows" ? `${Math.round(value).toLocaleString("en")} rows` : value < 0 ? `−${seconds(-value)}` : seconds(value);

export function lagCharts(view) {
  const target = document.getElementById("lags");
  const opened = new Set([...target.querySelectorAll("details[open]")].map((each) => each.dataset.name));
  target.replaceChildren(...view.lags.map((held) => {
    const title = `${held.driver} finds in ${held.store}`;
    const total = held.results_a_row.reduce((sum, value) => sum + value, 0);
    const best = held.results_a_row.indexOf(Math.max(...held.results_a_row));
    const say = total > 0
      ? `${count(total)} results a row, most at ${lag(held.edges[best], held.unit)} to ${lag(held.edges[best + 1], held.unit)}.`
      : "No results yet.";
    const nowhere = held.searched.reduce((sum, part) => sum + (part.ranges.length ? 0 : part.share), 0);
    const searched = held.searched.length ? ` Searched: ${held.searched.map((part) => `${percent(part.share)} of rows look at ${part.ranges.length ? part.ranges.map(([a, b]) => `${lag(a, held.unit)} to ${lag(b, held.unit)}`).join(", ") : "nothing"}`).join("; ")}.` : "";
    const numbers = element("table");
    table(numbers, [["from", (k) => lag(held.edges[k], held.unit)], ["to", (k) => lag(held.edges[k + 1], held.unit)], ["results a row", (k) => count(held.results_a_row[k])]], held.results_a_row.map((_, k) => k), { caption: title });
    return element("figure", { class: "card chart lag", "data-points": held.results_a_row.filter((value) => value > 0).length },
      element("figcaption", { text: title }), element("p", { class: "say", text: nowhere > 0 ? `${say} ${percent(nowhere)} of the rows do not look here.` : say }), histogram(held, title, say + searched),
      element("details", { open: opened.has(title), "data-name": title }, element("summary", { text: "Numbers" }),
        element("p", { class: "muted", text: searched.trim() }), element("div", { class: "scroll" }, numbers)));
  }));
}
