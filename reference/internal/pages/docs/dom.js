// Elements without HTML: every text becomes a text node, whatever is in it.

/** Returns the element that the selector finds first. */
export const find = (selector, within = document) => within.querySelector(selector);

/** Returns all elements that the selector finds. */
export const findAll = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Returns a new element with attributes. Children that are null are left out. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  fill(made, ...children);
  return made;
}

/** Replaces the content of an element. */
export function fill(target, ...children) {
  target.replaceChildren(...children.flat(Infinity).filter((child) => child != null));
}

const running = new Map(); // elements of the page, and the functions that renew them

setInterval(() => {
  for (const [target, renew] of running) {
    if (target.isConnected) renew();
    else running.delete(target);
  }
}, 500);

/** Returns "resets in 42 s (12:04:00)", kept up to date, or what to say once the instant has passed. */
export function countdown(instant, before, after) {
  const target = element("span");
  const renew = () => {
    const left = Math.ceil((instant - Date.now()) / 1000);
    target.textContent = left > 0 ? `${before} ${duration(left)} (${clock(instant)})` : after;
  };
  renew();
  running.set(target, renew);
  return target;
}

/** Returns seconds as text for a reader: "42 s", "3 min 5 s", "2 h 10 min", "3 d 4 h". */
function duration(s) {
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** Returns an instant (milliseconds since 1970) as the time of day, with the date unless it is today. */
function clock(instant) {
  const then = new Date(instant);
  const today = then.toDateString() === new Date().toDateString();
  return (today ? "" : then.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) + ", ") + then.toLocaleTimeString("en-GB");
}
