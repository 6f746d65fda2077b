// Makes the page alive: the key, the forms, the curl commands.
import { fill, find, findAll, setText } from "./dom.js";
import { answer, noAnswer } from "./answer.js";
import { limitsOf, showState } from "./limits.js";
import { curlOf, requestOf, send, takeNext } from "./request.js";

const key = find("#key");

function showKey() {
  const button = find("#show-key");
  const show = key.type === "password";
  key.type = show ? "text" : "password";
  button.setAttribute("aria-pressed", String(show));
  setText(button, show ? "Hide" : "Show");
}

async function submit(form) {
  const [button, hint, spoken, target] = [".send button", ".hint", "[role=status]", ".answer"].map((s) => find(s, form));
  const secret = key.value.trim();
  if (/[^\x21-\x7e]/.test(secret)) {
    setText(hint, "The key has a character that no key has. Copy it again.");
    return;
  }
  button.disabled = true;
  setText(hint, "Waiting for the answer…");
  setText(spoken, "");
  try {
    const got = await send(requestOf(form), secret);
    const limits = limitsOf(got.response);
    fill(target, answer(form, got, limits, (next) => takeNext(form, next) && form.requestSubmit()));
    showState(find("#state"), limits, got.response.status);
    setText(spoken, `Answered with ${got.response.status}.` + (limits.known ? ` ${limits.remaining} of ${limits.limit} requests left.` : ""));
  } catch (error) {
    fill(target, noAnswer(error));
    setText(spoken, "No answer.");
  }
  target.hidden = false;
  setText(hint, "");
  button.disabled = false;
}

function setUp(form) {
  const command = find(".curl pre", form);
  const renew = () => setText(command, curlOf(requestOf(form)));
  form.addEventListener("input", renew);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    renew();
    submit(form);
  });
  form.hidden = false;
  renew();
}

/** The list of chapters is open where there is room for it. */
function foldChapters() {
  const narrow = matchMedia("(max-width: 60rem)");
  const chapters = find("nav details");
  const fold = () => { chapters.open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  chapters.addEventListener("click", (event) => {
    if (narrow.matches && event.target.closest("a")) chapters.open = false;
  });
  fold();
}

find("#show-key").addEventListener("click", showKey);
find(".key").hidden = false;
findAll("form.try").forEach(setUp);
foldChapters();
// Forms and chapters have changed the height of the page.
if (location.hash !== "") document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
