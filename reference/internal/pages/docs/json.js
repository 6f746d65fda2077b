/**
 * Returns JSON text in lines. The numbers stay as they are in the text: JavaScript would
 * round those above 2^53. Text that is not JSON is returned as it is.
 */
export function indentJSON(text) {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  let out = "";
  let depth = 0;
  let opened = false; // the last token was [ or {
  const line = () => "\n" + "  ".repeat(depth);
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g)) {
    const closes = token === "]" || token === "}";
    if (closes) {
      depth--;
      if (!opened) out += line();
    } else if (opened) {
      out += line();
    }
    opened = token === "[" || token === "{";
    if (opened) depth++;
    out += token;
    if (token === ",") out += line();
    if (token === ":") out += " ";
  }
  return out;
}
