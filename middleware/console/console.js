// Renews the page. The server renders all of it, so a new page is asked for, and what differs is
// taken over into the one that is shown: focus, selection and open details stay.

const every = 5_000; // milliseconds
const address = location.origin + location.pathname + location.search; // without a user and a password
let known = new Date(); // when the shown page was made
let signedOut = false;

async function renew() {
  if (document.hidden || signedOut) return;
  let problem = "";
  try {
    const response = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    const next = new DOMParser().parseFromString(await response.text(), "text/html");
    const main = next.querySelector("main");
    if (response.ok && main !== null) {
      take(document.querySelector("main"), main);
      known = new Date();
    } else {
      signedOut = response.status === 401 || response.ok; // another request would ask for a password again
      problem = signedOut ? "Reload the page to sign in again." : `The service answers ${response.status}.`;
    }
  } catch {
    problem = "The service does not answer.";
  }
  const away = document.querySelector("#away");
  away.hidden = problem === "";
  away.textContent = problem === "" ? "" : `${problem} This is the state of ${known.toLocaleTimeString("en-GB")}.`;
  document.body.classList.toggle("stale", problem !== "");
}

/** Gives an element the attributes and children of another one. */
function take(shown, next) {
  for (const { name, value } of next.attributes) {
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
  for (const { name } of [...shown.attributes]) {
    if (!next.hasAttribute(name) && name !== "open") shown.removeAttribute(name);
  }
  const keys = new Set([...next.childNodes].map(keyOf));
  for (const child of [...shown.childNodes]) {
    if (child.dataset?.key !== undefined && !keys.has(keyOf(child))) child.remove();
  }
  let place = shown.firstChild;
  for (const child of [...next.childNodes]) {
    const key = keyOf(child);
    let old = child.dataset?.key === undefined ? place : [...shown.childNodes].find((node) => keyOf(node) === key);
    if (old == null || keyOf(old) !== key) old = document.importNode(child, true);
    else if (old.nodeType === Node.ELEMENT_NODE) take(old, child);
    else if (old.nodeValue !== child.nodeValue) old.nodeValue = child.nodeValue;
    if (old !== place) shown.insertBefore(old, place);
    place = old.nextSibling;
  }
  while (place !== null) {
    const rest = place;
    place = place.nextSibling;
    rest.remove();
  }
}

/** Returns what tells a node from its siblings: nodes with the same key become one another. */
const keyOf = (node) => `${node.nodeName} ${node.dataset?.key ?? ""}`;

setInterval(renew, every);
document.addEventListener("visibilitychange", renew);
