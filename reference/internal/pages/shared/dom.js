// Elements without HTML: every text becomes a text node, whatever is in it.

/** Returns the element that the selector finds first. */
export const find = (selector, within = document) => within.querySelector(selector);

/** Returns all elements that the selector finds. */
export const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

/**
 * Returns a new element. Properties are set as attributes, and functions as listeners of
 * the event of that name. Children that are null are left out.
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) {
    if (typeof value === "function") made.addEventListener(property, value);
    else if (value === true) made.setAttribute(property, "");
    else if (value !== false && value != null) made.setAttribute(property, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child != null));
  return made;
}

/** Replaces the content of an element. */
export function fill(target, ...children) {
  target.replaceChildren(...children.flat(Infinity).filter((child) => child != null));
}

/** Sets the text of an element if it differs, so that a selection in it survives. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Returns a number with its noun, such as "1 request" or "1,200 requests". */
export function count(n, noun) {
  return `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
}

/** Returns seconds as text for a reader: "42 s", "3 min 5 s", "2 h 10 min", "3 d 4 h". */
export function duration(seconds) {
  const s = Math.max(0, Math.ceil(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Returns an instant (milliseconds since 1970) as the time of day, with the date unless it is today. */
export function clock(instant) {
  const then = new Date(instant);
  const time = then.toLocaleTimeString("en-GB");
  if (then.toDateString() === new Date().toDateString()) return time;
  return `${then.toLocaleDateString("en-GB", { day: "numeric", month: "short" })}, ${time}`;
}
