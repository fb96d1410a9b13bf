// The page: takes views as they come, and draws them.
import { lagCharts, phaseChart, sliceChart, timeCharts } from "./charts.js";
import { bytes, count, element, facts, percent, seconds, table } from "./parts.js";

const by = (id) => document.getElementById(id);
const STATES = { live: "Live", finished: "Finished", quiet: "No new batch", empty: "No events yet", lost: "Connection lost" };
let view = null;
let said = "";
let waiting = false;

function show(next) {
  view = next;
  if (waiting) return;
  waiting = true; // at most one drawing a frame, of the newest view
  requestAnimationFrame(() => { waiting = false; drawAll(); });
}

function drawAll() {
  by("title").textContent = view.title;
  document.title = `${view.title} · Windrow`;
  mark(view.state);
  const empty = view.state === "empty";
  by("empty").hidden = !empty;
  by("all").hidden = empty;
  by("foot").textContent = `${count(view.events)} events${view.damaged ? `, ${view.damaged} of those read are damaged` : ""}.`;
  if (empty) return;
  by("clock").textContent = `batch ${view.batch.toLocaleString("en")} · ${view.now} UTC`;
  for (const part of [tiles, hints, timeCharts, phaseChart, funnel, plan, lagCharts, advice, freshness, streams, sliceChart, ledger]) part(view);
  document.body.dataset.drawn = String(view.batch);
  announce();
}

function mark(state) {
  by("state").textContent = STATES[state] ?? state;
  by("state").className = `pill ${state}`;
}

// Said aloud when something of note changes, not with every batch.
function announce() {
  const text = [STATES[view.state], view.funnel.verdict.tone === "bad" ? view.funnel.verdict.text : "", ...view.hints].filter(Boolean).join(". ");
  if (text !== said) by("announce").textContent = text;
  said = text;
}

function tiles({ head }) {
  const shed = head.throttle < 1;
  const left = [head.late ? `${count(head.late)} late` : "", head.bad ? `${count(head.bad)} bad` : "", head.dropped ? `${count(head.dropped)} dropped` : ""].filter(Boolean).join(", ");
  const all = [
    ["Results", count(head.results), `${count(head.results_per_s)}/s of late${head.repaired ? `, ${count(head.repaired)} repaired` : ""}`, ""],
    recallTile(head),
    ["Rows in", `${count(head.rows_per_s)}/s`, `${count(head.rows)} in all`, ""],
    ["Throttle", percent(head.throttle), shed ? "of the full work is done" : "everything is done", shed ? "warn" : ""],
    ["Busy", percent(head.busy), "of the time", head.busy > 1 ? "bad" : ""],
    ["Longest wait", head.delay_text ?? "–", "of a row for its results", ""],
    ["Windows", head.bytes_text, head.lost ? `about ${count(head.lost)} results lost for memory` : "in all streams", head.lost ? "warn" : ""],
    ["Left out at the door", count(head.late + head.bad + head.dropped), left || "no row was late or bad", left ? "warn" : ""],
  ];
  by("tiles").replaceChildren(...all.map(([name, big, small, kind]) => element("div", { class: `tile ${kind}` },
    element("dt", { text: name }), element("dd", { class: "big", text: big }), element("dd", { class: "small", text: small }))));
}

function recallTile({ recall, with_repair: repaired }) {
  const share = repaired ?? recall.share;
  const text = repaired === null ? recall.text : `with repair; ${recall.share === null ? recall.text : `${percent(recall.share)} came at once`}`;
  return ["Recall", share === null ? "–" : percent(share), text, share !== null && share < 0.5 ? "warn" : ""];
}

function hints({ hints: found }) {
  by("hints").hidden = found.length === 0;
  by("hints").replaceChildren(...found.map((text) => element("p", { class: "hint", text })));
}

function choose(select, values, labels = values) {
  const before = select.value;
  if (select.dataset.values === JSON.stringify(values)) return;
  select.dataset.values = JSON.stringify(values);
  select.replaceChildren(...values.map((value, k) => element("option", { value, text: labels[k] })));
  if (values.includes(before)) select.value = before;
}

function funnel({ funnel: held }) {
  by("verdict").textContent = held.verdict.text;
  by("verdict").className = `verdict ${held.verdict.tone}`;
  choose(by("funnel-driver"), held.drivers);
  const spans = by("funnel-span");
  spans.querySelector("[value=recent]").disabled = held.recent === null;
  spans.querySelector("[value=recent]").textContent = `the last ${held.recent_batches} batches`;
  const stages = (spans.value === "recent" && held.recent ? held.recent : held.whole)[by("funnel-driver").value] ?? [];
  const most = Math.log10(1 + Math.max(1, ...stages.map((stage) => stage.count)));
  by("funnel").replaceChildren(...stages.map((stage) => {
    const kills = stage.conjunct !== null && stage.conjunct === held.verdict.conjunct;
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    const share = stage.count > 0 ? Math.max(0.01, Math.log10(1 + stage.count) / most) : 0;
    bar.style.width = `calc(${share.toFixed(3)} * (100% - var(--amount)))`;
    const left = stage.left === null || stage.left === 1 ? "" : ` ${percent(stage.left)} of them`;
    return element("li", { class: [stage.unit, kills ? "killer" : ""].join(" ") },
      element("span", { class: stage.step === null ? "name" : "name indent", text: kills ? `${stage.name} ✕ turns most away` : stage.name }),
      element("span", { class: "track" }, bar, element("span", { class: "amount" },
        `${stage.estimated ? "about " : ""}${stage.text} ${stage.unit}`, element("em", { text: left }))));
  }));
  table(by("conditions"), [["condition", "text", { wrap: true }], ["streams", (c) => c.streams.join(", "), { text: true }],
    ["holds for", (c) => (c.pairs ? percent(c.passing) : "–")], ["of pairs drawn", (c) => (c.pairs ? count(c.pairs) : "–")]],
  held.conditions, { caption: "Conditions of the query", mark: (c) => (c.kills ? "killer" : null) });
}

function plan({ plan: held }) {
  const shape = held.shape === "tree" ? "A tree of joins: some chains end in an inner node, which stores what they find and drives on"
    : "An m-way join: new rows of each stream visit the windows of the others, one after the other";
  by("plan-text").textContent = `${shape}; order of streams: ${held.policy}.`;
  by("plan-picture").replaceChildren(...held.chains.map((chain) => element("div", { class: "chain", role: "group", "aria-label": `New rows of ${chain.driver}` },
    element("div", { class: "node driver" }, chain.driver, element("small", { text: `${count(chain.rows)} new rows` })),
    ...chain.steps.flatMap((step) => [
      element("div", { class: "link", title: step.why }, element("b", { text: step.method }),
        element("span", { text: step.conditions.join(" and ") || "no condition" }),
        element("span", { text: step.selectivity === null ? "nothing within reach yet" : `${percent(step.selectivity)} match, looks at ${percent(step.looked_at)}` })),
      element("div", { class: "node" }, step.store, element("small", { text: step.window === null ? "inner node" : `window ${step.window}` })),
    ]),
    element("div", { class: "link" }, element("b", { text: "gives" })),
    element("div", { class: "node end" }, chain.results_a_row === null ? "–" : count(chain.results_a_row),
      element("small", { text: chain.into === null ? "results a row" : `rows of ${chain.into} a row` })))));
}

function advice({ advice: held }) {
  const target = by("advice");
  if (!held.enough) {
    target.replaceChildren(element("p", { class: "muted", text: `${count(held.results)} results are too few to say; 100 are needed.` }));
    return;
  }
  const made = element("table");
  const cell = (key) => (row) => `${row[key].text} (${percent(row[key].share)})`;
  table(made, [["stream", "stream", { text: true }], ["window now", "window"], ["keeps 95 %", cell("alone_95")], ["keeps 99 %", cell("alone_99")],
    ["95 %, all at once", cell("together_95")], ["99 %, all at once", cell("together_99")]], held.windows, { caption: "Smallest windows" });
  target.replaceChildren(
    element("p", { class: "muted", text: `From ${count(held.results)} results. “Keeps 95 %”: this window alone is made shorter. “All at once”: every window is, and together they keep at least that.` }),
    element("div", { class: "scroll" }, made), ...held.notes.map((text) => element("p", { class: "hint", text })));
}

function freshness({ freshness: held }) {
  by("freshness").hidden = held === null;
  if (held === null) return;
  by("fresh-text").textContent = held.suppressed ? `${count(held.suppressed)} results were held back as too old.` : "No result was too old.";
  table(by("fresh-table"), [["stream", "stream", { text: true }], ["FRESHNESS asked", "asked"], ["the least there can be", "least"],
    ["oldest row delivered", "oldest"], ["promise", (s) => (s.holds ? "holds" : "cannot be kept"), { text: true }]],
  held.streams, { caption: "Freshness", mark: (s) => (s.holds ? null : "marked") });
}

function streams({ streams: rows, held_back_by: holder }) {
  by("holder").textContent = holder === null ? "All watermarks are in step." : `${holder} holds the watermark back: windows keep rows that it may still meet.`;
  table(by("stream-table"), [["stream", "name", { text: true }], ["reads", "source", { text: true }], ["rows/s", (s) => count(s.rows_per_s)], ["rows", (s) => count(s.rows)],
    ["late", (s) => count(s.late)], ["bad", (s) => count(s.bad + s.ahead)], ["filtered", (s) => count(s.filtered)], ["dropped", (s) => count(s.dropped)],
    ["in window", (s) => count(s.stored)], ["size", "bytes_text"], ["window", "window"], ["watermark (UTC)", "watermark"], ["behind", (s) => s.behind_text]],
  rows, { caption: "Streams", mark: (s) => (s.name === holder ? "marked" : null) });
}

function ledger({ ledger: held }) {
  by("ledger").replaceChildren(...(held === null
    ? [element("p", { class: "muted", text: "Nothing waits: what is left out, if anything, is not made up for in this run." })]
    : [facts([["pieces open", count(held.open.pieces)], ["time they need", held.open.pieces ? held.open_text : "none"], ["results expected", count(held.open.results)],
      ["results repaired", count(held.repaired)], ["pieces done", count(held.done.pieces)], ["pieces forgotten", count(held.forgotten.pieces)]]),
    element("p", { class: "muted", text: held.oldest ? `The oldest row that waits is of ${held.oldest} UTC.` : "Everything has been made up for." })]));
}

function theme() {
  const button = by("theme");
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const told = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-pressed", String(dark())); button.setAttribute("aria-label", dark() ? "Use light colours" : "Use dark colours"); };
  try { const kept = localStorage.getItem("windrow-theme"); if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept; } catch { /* storage may be off */ }
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("windrow-theme", document.documentElement.dataset.theme); } catch { /* storage may be off */ }
    told();
    if (view) drawAll();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { told(); if (view) drawAll(); });
  told();
}

function follow() {
  const source = new EventSource("/live");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => { mark("lost"); };
  source.onopen = () => { if (view) mark(view.state); };
}

theme();
for (const id of ["funnel-driver", "funnel-span"]) by(id).addEventListener("change", () => view && funnel(view));
if (window.Plotly) follow();
else window.addEventListener("load", follow);
