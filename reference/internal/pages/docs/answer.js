// What an answer to a request looks like, above all its rate limit.
import { countdown, element, fill, find, findAll } from "./dom.js";

const limitFields = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"];

/**
 * Returns what the header fields of a response say about limits. Instants are milliseconds of
 * the clock of this machine, even if it differs from that of the server.
 */
function limitsOf({ headers }) {
  const number = (name) => (headers.has(name) ? Number(headers.get(name)) : null);
  const ahead = Date.now() - (Date.parse(headers.get("Date") ?? "") || Date.now());
  const [limit, remaining, reset, wait] = limitFields.map(number);
  return { limit, remaining, resets: reset * 1000 + ahead, retries: wait === null ? null : Date.now() + wait * 1000 };
}

/** Shows an answer to a form in target, its rate limit in state, and returns both in a sentence. */
export function show(target, state, form, { response, text, milliseconds }) {
  const limits = limitsOf(response);
  fill(target,
    element("p", { class: "status" },
      element("strong", { class: "badge " + classOf(response.status) }, `${response.status} ${phraseOf(form, response.status)}`),
      element("span", { class: "small muted" }, ` ${Math.round(milliseconds)} ms`)),
    advice(response.status, parse(text), limits),
    limits.limit === null ? null : element("section", { class: "rate", "aria-label": "Rate limit" },
      element("h4", {}, "Rate limit"), meter(limits), element("p", {}, left(limits), " · ", untilReset(limits)),
      fields(limitFields.filter((name) => response.headers.has(name)).map((name) => [name, response.headers.get(name)]))),
    element("h4", {}, "Body"),
    text === "" ? element("p", { class: "muted" }, "The answer has no body.") : element("pre", { tabindex: 0, "aria-label": "Body" }, indent(text)),
    response.headers.get("Link")?.includes('rel="next"') ? element("p", {}, element("button", { type: "button" }, "Next page")) : null,
    element("h4", {}, "Header fields"),
    fields([...response.headers].filter(([name]) => !limitFields.some((field) => field.toLowerCase() === name))));
  if (limits.limit === null) return `Answered with ${response.status}.`;
  state.hidden = false;
  state.classList.toggle("refused", response.status === 429);
  fill(state, meter(limits), response.status === 429
    ? countdown(limits.retries, "Refused. Try again in", "You can send requests again.")
    : element("span", {}, left(limits), " · ", untilReset(limits)));
  return `Answered with ${response.status}. ${limits.remaining} of ${limits.limit} requests left.`;
}

/** Shows in target that there is no answer. */
export function showFailure(target, error) {
  const why = error.name === "TimeoutError" ? "The server did not answer within a minute." : "The server cannot be reached.";
  fill(target, notice("bad", "No answer", why + " It is not known whether it has received the request."));
}

/** Returns what to do about an error, or null. */
function advice(status, { code = "", message, detail }, { retries }) {
  const what = message ?? detail ?? "";
  const wait = (before, after) => (retries === null ? null : element("p", {}, countdown(retries, before, after)));
  if (status === 401) {
    return notice("warn", code === "missing_api_key" ? "No key" : "Key not accepted", what,
      element("p", {}, link("#key", "Enter your API key"), " at the top of the page."));
  }
  if (status === 410) return notice("warn", "Not available", what, wait("Available again in", "It may be available again."));
  if (status === 503) return notice("bad", "Temporarily unavailable", what, wait("Try again in", "You can try again."));
  if (status !== 429) return status >= 400 ? notice("bad", "Error", what) : null;
  const banned = code.endsWith("_banned");
  return notice("warn", banned ? "Temporarily banned" : "Limit reached", what,
    element("p", { class: "wait" }, countdown(retries, "Try again in", "You can send requests again.")),
    element("p", {}, banned
      ? "Every request is refused until the ban ends. Sending requests meanwhile does not prolong it. "
      : "The request was not charged. Requests that are sent before then are refused too, and many of them lead to a temporary ban. ",
    link("#bans", "How bans work."), " ", link("#limits", "How limits work.")),
    element("p", {}, link("#getUsage", "Get the usage"), " to see all quotas and how many strikes are left: that is not charged, and works during a ban."));
}

function notice(kind, title, message, ...more) {
  return element("div", { class: "notice " + kind }, element("p", {}, element("strong", {}, title + ". "), message), more);
}

const link = (target, text) => element("a", { href: target }, text);

const fields = (list) => element("dl", { class: "fields" }, list.map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

const untilReset = ({ resets }) => countdown(resets, "resets in", "the window has ended");

const left = ({ remaining, limit }) => element("span", {}, element("strong", {}, String(remaining)), ` of ${limit.toLocaleString("en")} request${limit === 1 ? "" : "s"} left`);

function meter({ remaining, limit }) {
  const state = remaining === 0 ? "bad" : remaining <= limit / 10 ? "warn" : "good";
  return element("progress", { class: state, max: limit, value: remaining, "aria-label": "Requests left" });
}

const classOf = (status) => (status < 400 ? "good" : status === 429 ? "warn" : "bad");

/** Returns the phrase of a status as the chapter of the operation has it, since HTTP/2 has none. */
function phraseOf(form, status) {
  const known = findAll(".response summary", form.parentElement).find((summary) => find(".badge", summary).textContent === String(status));
  return known === undefined ? "" : find("span:last-child", known).textContent;
}

/** Returns the object in a text, or an empty one. */
function parse(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {};
  }
}

/** Returns JSON in lines, with its numbers as they are: JavaScript would round those above 2^53. */
function indent(text) {
  try {
    return JSON.stringify(JSON.parse(text, (_, value, { source }) => (typeof value === "number" ? JSON.rawJSON(source) : value)), null, 2);
  } catch {
    return text; // not JSON, or a browser without rawJSON
  }
}
