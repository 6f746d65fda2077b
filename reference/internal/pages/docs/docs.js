// Makes the page alive: the key, the forms, the curl commands.
import { find, findAll } from "./dom.js";
import { show, showFailure } from "./answer.js";
import { curlOf, requestOf, send, takeNext } from "./request.js";

const key = find("#key");

function showKey() {
  const button = find("#show-key");
  const visible = key.type === "password";
  key.type = visible ? "text" : "password";
  button.setAttribute("aria-pressed", String(visible));
  button.textContent = visible ? "Hide" : "Show";
}

async function submit(form) {
  const [button, hint, spoken, target] = [".send button", ".hint", "[role=status]", ".answer"].map((s) => find(s, form));
  const secret = key.value.trim();
  if (/[^\x21-\x7e]/.test(secret)) {
    hint.textContent = "The key has a character that no key has. Copy it again.";
    return;
  }
  button.disabled = true;
  hint.textContent = "Waiting for the answer…";
  spoken.textContent = "";
  try {
    const got = await send(requestOf(form), secret);
    spoken.textContent = show(target, find("#state"), form, got);
    find("button", target)?.addEventListener("click", () => takeNext(form, got.response) && form.requestSubmit());
  } catch (error) {
    showFailure(target, error);
    spoken.textContent = "No answer.";
  }
  target.hidden = false;
  hint.textContent = "";
  button.disabled = false;
}

function setUp(form) {
  const renew = () => { find(".curl pre", form).textContent = curlOf(requestOf(form)); };
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
  fold();
  narrow.addEventListener("change", fold);
  chapters.addEventListener("click", ({ target }) => target.closest("a") && fold());
}

find("#show-key").addEventListener("click", showKey);
find(".key").hidden = false;
findAll("form.try").forEach(setUp);
foldChapters();
// Forms and chapters have changed the height of the page.
if (location.hash !== "") document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
