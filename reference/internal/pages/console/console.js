// Polls the admin API and fills the panels.
import { duration, element, fill, find, findAll, setText } from "./dom.js";
import { call, setToken } from "./calls.js";
import { showAudit, showBans, showDeprecations, showState, showTop } from "./panels.js";
import { visible } from "./text.js";

/** What is asked for, how often (seconds), and the panel that shows an error of it. */
const polls = [
  { path: "/state", every: 5, panel: "#checks", show: showState },
  { path: "/top", every: 2, panel: "#decisions", show: showTop },
  { path: "/bans", every: 5, panel: "#bans", show: (answer) => showBans(answer, confirmUnban) },
  { path: "/audit?limit=20", every: 10, panel: "#audit", show: showAudit },
  { path: "/deprecations", every: 60, panel: "#deprecations", show: showDeprecations },
];

let locked = false; // the server asks for a token
let tried = false; // a token was typed in
let awaySince = null; // when the server stopped answering, in milliseconds since 1970

/** Asks once, shows the answer, and asks again later. There is never more than one request under way for a poll. */
async function run(poll) {
  if (poll.running || locked || document.hidden) return;
  poll.running = true;
  clearTimeout(poll.timer);
  let pause = 2; // seconds, after a failure
  try {
    const answer = await call("GET", poll.path);
    answered();
    poll.show(answer);
    showError(poll, "");
    pause = poll.every;
  } catch (failure) {
    failed(poll, failure);
  } finally {
    poll.running = false;
    poll.timer = setTimeout(() => run(poll), pause * 1000);
  }
}

/** Begins with one request, because each with a wrong token is counted. */
async function runAll() {
  await run(polls[0]);
  polls.slice(1).forEach(run);
}

function answered() {
  awaySince = null;
  find("#away").hidden = true;
  find("#login").hidden = true;
  find("#panels").hidden = false;
  document.body.classList.remove("stale");
}

function failed(poll, failure) {
  switch (failure.status) {
    case undefined: // a fault of this page
      throw failure;
    case 0:
      awaySince ??= Date.now();
      find("#away").hidden = false;
      document.body.classList.add("stale");
      fill(find("#health"), element("span", { class: "badge bad" }, "no answer"));
      setText(find("#away span"), `${failure.message} The page tries again until it does, and shows what it last knew.`);
      return;
    case 401:
    case 429:
      lock(failure);
      return;
    default:
      answered();
      showError(poll, failure.message);
  }
}

/** Shows an error of the server in a panel. The server answers 503 while it starts, and while Redis or the database fail. */
function showError(poll, text) {
  const target = find(".error", find(poll.panel));
  target.hidden = text === "";
  setText(target, text);
}

/** Asks for the token. */
function lock(failure) {
  locked = true;
  setToken("");
  find("#panels").hidden = true;
  find("#login").hidden = false;
  find("#away").hidden = true;
  setText(find("#login-error"), failure.status === 429
    ? `${failure.message} That is ${duration(failure.retryAfter)}.`
    : tried ? failure.message : "");
  find("#token").focus();
}

function logIn(event) {
  event.preventDefault();
  const text = find("#token").value.trim();
  if (/[^\x21-\x7e]/.test(text)) {
    setText(find("#login-error"), "The token has a character that no token has. Copy it again.");
    return;
  }
  setToken(text);
  find("#token").value = "";
  tried = true;
  locked = false;
  runAll();
}

let asked = null; // the ban that the dialog is about

function confirmUnban(ban) {
  asked = ban;
  const client = ban.owner === undefined ? `the network ${visible(ban.network)}` : `the owner ${visible(ban.owner)}`;
  setText(find("#confirm-text"), `This ends the ban of ${client}. It also deletes the strikes and the record of earlier bans, so that the next ban is a first one again.`);
  find("#confirm").showModal();
  find("#confirm-no").focus();
}

async function unban() {
  find("#confirm").close();
  const [kind, name] = asked.owner === undefined ? ["network", asked.network] : ["owner", asked.owner];
  const done = find("#done");
  try {
    const { unbanned } = await call("DELETE", `/bans?${kind}=${encodeURIComponent(name)}`);
    setText(find("p", done), unbanned ? `${visible(name)} is no longer banned.` : `${visible(name)} was not banned any more.`);
    done.className = "notice good";
  } catch (failure) {
    if (failure.status === 401 || failure.status === 429) lock(failure);
    setText(find("p", done), `The ban of ${visible(name)} was not ended. ${failure.message}`);
    done.className = "notice bad";
  }
  done.hidden = false;
  setText(find("#spoken"), find("p", done).textContent);
  clearTimeout(unban.timer);
  unban.timer = setTimeout(() => { done.hidden = true; }, 15_000);
  polls.filter((poll) => poll.path === "/bans" || poll.path.startsWith("/audit")).forEach(run);
}

find("#login").addEventListener("submit", logIn);
find("#confirm-yes").addEventListener("click", unban);
find("#confirm-no").addEventListener("click", () => find("#confirm").close());
document.addEventListener("visibilitychange", runAll);
setInterval(() => {
  if (awaySince !== null) document.title = `away for ${duration((Date.now() - awaySince) / 1000)} – petstore console`;
  else document.title = "petstore console";
}, 1000);
findAll("[role=alert]").forEach((alert) => alert.setAttribute("aria-atomic", "true"));
runAll();
