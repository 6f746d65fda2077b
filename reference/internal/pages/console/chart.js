// The line of decisions per second. It is drawn from what this page has seen.
import { element } from "./dom.js";
import { rate } from "./text.js";

const span = 5 * 60_000; // milliseconds that the chart shows
const gap = 15_000; // points further apart are not joined
const [width, height] = [600, 120];

const points = []; // {at, value}, the oldest first

/** Adds a value at an instant, and draws the chart into target. */
export function drawChart(target, at, value) {
  points.push({ at, value });
  while (points.length > 0 && points[0].at < at - span) points.shift();
  const most = Math.max(1, ...points.map((p) => p.value));
  const x = (p) => width - ((at - p.at) / span) * width;
  const y = (p) => height - 4 - (p.value / most) * (height - 12);
  const lines = runs().map((run) => run.map((p) => `${x(p).toFixed(1)},${y(p).toFixed(1)}`));
  const svg = shape("svg", {
    viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `Decisions a second in the last five minutes: now ${rate(value)}, at most ${rate(most)}`,
  }, [
    shape("line", { x1: 0, x2: width, y1: height - 4, y2: height - 4, class: "axis" }),
    shape("line", { x1: 0, x2: width, y1: 8, y2: 8, class: "axis faint" }),
    ...lines.map((line) => shape("polygon", { points: `${line[0].split(",")[0]},${height - 4} ${line.join(" ")} ${line.at(-1).split(",")[0]},${height - 4}`, class: "area" })),
    ...lines.map((line) => shape("polyline", { points: line.join(" "), class: "line" })),
  ]);
  const scale = element("p", { class: "scale small muted" },
    element("span", {}, `top: ${rate(most)} a second`), element("span", {}, "last five minutes"));
  target.replaceChildren(svg, scale);
}

/** Returns the points in runs without a gap. */
function runs() {
  const all = [];
  for (const p of points) {
    const run = all.at(-1);
    if (run !== undefined && p.at - run.at(-1).at <= gap) run.push(p);
    else all.push([p]);
  }
  return all;
}

function shape(name, attributes, children = []) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}
