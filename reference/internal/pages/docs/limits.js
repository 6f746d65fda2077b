// The rate limit of an answer, and what counts down to its end.
import { clock, count, duration, element, fill, setText } from "./dom.js";

const names = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"];

/** Reports whether a header field is one of the rate limit. */
export const isLimitField = (name) => names.some((n) => n.toLowerCase() === name.toLowerCase());

/**
 * Returns what the header fields of a response say. Instants are milliseconds of the
 * clock of this machine, even if it differs from that of the server.
 */
export function limitsOf(response) {
  const value = (name) => {
    const text = response.headers.get(name);
    return text === null ? null : Number(text);
  };
  const serverNow = Date.parse(response.headers.get("Date") ?? "") || Date.now();
  const here = (instant) => Date.now() + (instant - serverNow);
  const limit = value("X-RateLimit-Limit");
  const resetTime = value("X-RateLimit-Reset") * 1000;
  const retryAfter = value("Retry-After");
  return {
    fields: names.map((name) => [name, response.headers.get(name)]).filter(([, text]) => text !== null),
    known: limit !== null,
    limit,
    remaining: value("X-RateLimit-Remaining"),
    resetTime,
    resets: here(resetTime),
    retries: retryAfter === null ? null : Date.now() + retryAfter * 1000,
  };
}

const shown = new Map(); // elements on the page and the functions that renew them

/** Renews an element twice a second while it is part of the page. */
function keepUp(target, renew) {
  renew();
  shown.set(target, renew);
}

setInterval(() => {
  for (const [target, renew] of shown) {
    if (target.isConnected) renew();
    else shown.delete(target);
  }
}, 500);

/** Returns "resets in 42 s", kept up to date, or what to say once the instant has passed. */
function brief(instant, before, after, more = () => "") {
  const text = element("span");
  keepUp(text, () => {
    const left = (instant - Date.now()) / 1000;
    setText(text, left > 0 ? `${before} ${duration(left)}${more()}` : after);
  });
  return text;
}

/** Returns the same with the time of day, which the server may have told: "Try again in 42 s (12:04:00)". */
export const countdown = (instant, before, after, time = instant) => brief(instant, before, after, () => ` (${clock(time)})`);

/** Returns the rate limit of one answer: how much is left, until when, and the fields that say so. */
export function limitPanel(limits) {
  return element("section", { class: "rate", "aria-label": "Rate limit" },
    element("h4", {}, "Rate limit"),
    meter(limits),
    element("p", {}, left(limits), " · ", countdown(limits.resets, "resets in", "the window has ended", limits.resetTime)),
    element("dl", { class: "fields" }, limits.fields.map(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])));
}

/** Shows the rate limit of the last answer at the top of the page. */
export function showState(target, limits, status) {
  if (!limits.known) return;
  target.hidden = false;
  target.classList.toggle("refused", status === 429);
  fill(target, meter(limits), status === 429
    ? brief(limits.retries, "Refused. Try again in", "You can send requests again.")
    : element("span", {}, left(limits), " · ", brief(limits.resets, "resets in", "the window has ended")));
}

const left = ({ remaining, limit }) => element("span", {}, element("strong", {}, String(remaining)), ` of ${count(limit, "request")} left`);

function meter({ remaining, limit }) {
  const state = remaining === 0 ? "bad" : remaining <= limit / 10 ? "warn" : "good";
  return element("progress", { class: state, max: limit, value: remaining, "aria-label": "Requests left" });
}
