// Small parts of the page. Text from data only ever becomes text: nothing here writes HTML.

export function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "text") made.textContent = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function vector(tag, options = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function count(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return `${(value / 1e9).toPrecision(3)} G`;
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (size > 0 && size < 0.005) return "< 0.01";
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en") : Number(value.toPrecision(3)).toString();
}

export function percent(share) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  if (value === 0 || value === 100) return `${value} %`;
  if (value > 0 && value < 0.001) return "< 0.001 %";
  return value < 1 ? `${value.toPrecision(1)} %` : `${value.toFixed(value >= 10 && value < 99 ? 0 : 1)} %`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value > 0 && value < 1) return `${Math.round(value * 1000).toLocaleString("en")} ms`;
  return value < 120 ? `${Number(value.toPrecision(3))} s` : `${Math.round(value / 60)} min`;
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

// columns: [heading, key or function, {text, wrap}]
export function table(target, columns, rows, { caption, mark } = {}) {
  const cell = (row, [, value, look = {}]) => {
    const shown = typeof value === "function" ? value(row) : row[value];
    const kind = [look.text || look.wrap ? "text" : "", look.wrap ? "wrap" : ""].join(" ").trim();
    return element("td", { class: kind || null, text: shown === null || shown === undefined ? "–" : String(shown) });
  };
  const heading = ([name, , look = {}]) => element("th", { scope: "col", class: look.text || look.wrap ? "text" : null, text: name });
  target.replaceChildren(
    ...(caption ? [element("caption", { class: "quiet-label", text: caption })] : []),
    element("thead", {}, element("tr", {}, ...columns.map(heading))),
    element("tbody", {}, ...rows.map((row) => element("tr", { class: mark ? mark(row) : null }, ...columns.map((c) => cell(row, c))))),
  );
}

export function facts(pairs) {
  return element("dl", { class: "facts" }, ...pairs.map(([name, value]) =>
    element("div", {}, element("dt", { text: name }), element("dd", { text: value }))));
}
