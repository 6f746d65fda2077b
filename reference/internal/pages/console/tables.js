// Tables whose rows stay the same elements while their data change, so that the focus and
// a selection survive.
import { element, find, setText } from "./dom.js";

const rows = new WeakMap(); // of a tbody: the rows by key

/**
 * Shows items as the rows of a panel's table, or the panel's text for none. A cell has a
 * text, or content, an element that is made once for a key. Its label is shown where the
 * page is too narrow for the heads of columns.
 */
export function showRows(panel, items, keyOf, cellsOf) {
  const table = find("table", panel);
  const body = find("tbody", panel);
  const before = rows.get(body) ?? new Map();
  const after = new Map();
  for (const item of items) {
    const key = keyOf(item);
    after.set(key, renew(before.get(key), () => cellsOf(item)));
  }
  for (const [key, row] of before) if (!after.has(key)) row.remove();
  let position = body.firstChild;
  for (const row of after.values()) {
    if (row === position) position = position.nextSibling;
    else body.insertBefore(row, position);
  }
  rows.set(body, after);
  table.hidden = items.length === 0;
  find(".empty", panel).hidden = items.length > 0;
}

/** Returns a row with cells: a new one, or the one there was with new texts. */
function renew(row, cellsOf) {
  const cells = cellsOf();
  if (row === undefined) {
    return element("tr", {}, cells.map((cell) => element("td", { class: cell.number ? "number" : null, "data-label": cell.label }, cell.content ?? String(cell.text))));
  }
  cells.forEach((cell, i) => {
    if (cell.content === undefined) setText(row.cells[i], String(cell.text));
  });
  return row;
}

/** Shows names and values. A value is a text, or an element. */
export function showFacts(panel, facts) {
  find(".facts", panel).replaceChildren(...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
}
