// What an answer to a request looks like.
import { element, find, findAll } from "./dom.js";
import { indentJSON } from "./json.js";
import { countdown, isLimitField, limitPanel } from "./limits.js";

/** Returns the elements that show an answer to a form. next is called to fetch the next page. */
export function answer(form, { response, text, milliseconds }, limits, next) {
  const target = nextPage(response);
  return [
    element("p", { class: "status" },
      element("strong", { class: "badge " + classOf(response.status) }, `${response.status} ${phraseOf(form, response)}`.trim()),
      element("span", { class: "small muted" }, ` ${Math.round(milliseconds)} ms`)),
    advice(response, codeOf(text), messageOf(text), limits),
    limits.known ? limitPanel(limits) : null,
    element("h4", {}, "Body"),
    text === "" ? element("p", { class: "muted" }, "The answer has no body.") : element("pre", { tabindex: 0, "aria-label": "Body" }, indentJSON(text)),
    target === null ? null : element("p", {}, element("button", { type: "button", click: () => next(target) }, "Next page")),
    element("h4", {}, "Header fields"),
    element("dl", { class: "fields" }, [...response.headers]
      .filter(([name]) => !isLimitField(name))
      .map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)])),
  ];
}

/** Returns the elements that show that there is no answer. */
export function noAnswer(error) {
  const why = error.name === "TimeoutError" ? "The server did not answer within a minute." : "The server cannot be reached.";
  return element("div", { class: "notice bad" },
    element("p", {}, element("strong", {}, "No answer. "), why, " It is not known whether it has received the request."));
}

/** Returns what to do about an error, or null. */
function advice(response, code, message, limits) {
  switch (response.status) {
    case 401:
      return notice("warn", code === "missing_api_key" ? "No key" : "Key not accepted", message,
        element("p", {}, link("#key", "Enter your API key"), " at the top of the page."));
    case 429:
      return refused(code, message, limits);
    case 410:
      return notice("warn", "Not available", message,
        limits.retries === null ? null : element("p", {}, countdown(limits.retries, "Available again in", "It may be available again.")));
    case 503:
      return notice("bad", "Temporarily unavailable", message,
        limits.retries === null ? null : element("p", {}, countdown(limits.retries, "Try again in", "You can try again.")));
    default:
      return response.status >= 400 ? notice("bad", "Error", message) : null;
  }
}

function refused(code, message, limits) {
  const banned = code.endsWith("_banned");
  return notice("warn", banned ? "Temporarily banned" : "Limit reached", message,
    element("p", { class: "wait" }, countdown(limits.retries, "Try again in", "You can send requests again.")),
    element("p", {}, banned
      ? "Every request is refused until the ban ends. Sending requests meanwhile does not prolong it. "
      : "The request was not charged. Requests that are sent before then are refused too, and many of them lead to a temporary ban. ",
    chapter("#bans", "How bans work"), " ", chapter("#limits", "How limits work")),
    find("#getUsage") === null ? null : element("p", {}, link("#getUsage", "Get the usage"), " to see all quotas and how many strikes are left: that is not charged, and works during a ban."));
}

function notice(kind, title, message, ...more) {
  return element("div", { class: "notice " + kind }, element("p", {}, element("strong", {}, title + ". "), message), more);
}

const link = (target, text) => element("a", { href: target }, text);

/** Returns a link to a chapter, if the page has it. */
const chapter = (target, text) => (find(target) === null ? null : link(target, text + "."));

/** Returns the phrase of a status. HTTP/2 has none, but the chapter of the operation may. */
function phraseOf(form, { status, statusText }) {
  if (statusText !== "") return statusText;
  const known = findAll(".response summary", form.parentElement).find((summary) => find(".badge", summary).textContent === String(status));
  return known === undefined ? "" : find("span:last-child", known).textContent;
}

const classOf = (status) => (status < 400 ? "good" : status === 429 ? "warn" : "bad");

function memberOf(text, ...names) {
  try {
    const body = JSON.parse(text);
    for (const name of names) if (typeof body[name] === "string") return body[name];
  } catch {
    // not an error of the API
  }
  return "";
}

const codeOf = (text) => memberOf(text, "code");
const messageOf = (text) => memberOf(text, "message", "detail");

/** Returns the target of the link to the next page (RFC 8288), or null. */
function nextPage(response) {
  const match = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(response.headers.get("Link") ?? "");
  return match === null ? null : match[1];
}
