// What each panel shows of an answer.
import { count, duration, element, fill, find, setText } from "./dom.js";
import { now } from "./calls.js";
import { drawChart } from "./chart.js";
import { showFacts, showRows } from "./tables.js";
import { named, rate, stamp, visible, whole } from "./text.js";

const mostBans = 200; // rows; more would make the page slow

/** GET /state */
export function showState(state) {
  setText(find("#server"), `${state.build.version} · up ${duration(state.uptime)}`);
  fill(find("#health"), state.ready
    ? element("span", { class: "badge good" }, "ready")
    : element("span", { class: "badge warn" }, "not ready"));
  const wrong = Object.entries(state.checks).filter(([, text]) => text !== "ok");
  const unready = find("#unready");
  unready.hidden = state.ready;
  setText(find("span", unready), wrong.map(([name, text]) => `${name}: ${text}`).join("; "));
  showFacts(find("#checks"), [
    ...Object.entries(state.checks).map(([name, text]) => [name,
      text === "ok" ? element("span", { class: "good" }, "ok") : element("span", { class: "warn" }, text)]),
    ...Object.entries(state.connections ?? {}).map(([listener, connections]) => [`connections (${listener})`, connectionsOf(connections)]),
    ...(state.settings === undefined ? [] : [["settings", settingsOf(state.settings)]]),
  ]);
  find("#engine .empty").hidden = state.engine !== undefined;
  showFacts(find("#engine"), state.engine === undefined ? [] : factsOf(state.engine));
}

function connectionsOf({ open, idle, refused, evicted, waited }) {
  const parts = [`${whole(open)} open, ${whole(idle)} idle`];
  if (refused > 0) parts.push(`${whole(refused)} refused`);
  if (evicted > 0) parts.push(`${whole(evicted)} closed to make room`);
  if (waited > 0) parts.push(`${whole(waited)} waited`);
  return parts.join(", ");
}

function settingsOf({ applied, last, error, restart }) {
  if (error) return element("span", { class: "warn" }, `refused at ${stamp(last)} (UTC): ${error}`);
  const read = last === undefined ? "as at the start" : `read again ${count(applied, "time")}, last at ${stamp(last)} (UTC)`;
  if (restart === undefined) return read;
  return element("span", { class: "warn" }, `${read}; a restart is needed for ${restart.join(", ")}`);
}

function factsOf(engine) {
  const redis = engine.redis;
  const local = [
    engine.capacity > 0 ? ["Subjects", element("span", {}, `${whole(engine.subjects)} of ${whole(engine.capacity)}`, fullness(engine))] : null,
    ["Replaced early", whole(engine.evicted)],
    ["No place", whole(engine.refused)],
  ].filter((fact) => fact !== null);
  if (redis === undefined) return [["Usage is counted", "in this process"], ...local];
  return [
    ["Usage is counted", "in Redis"],
    ["Circuit", redis.circuit === "closed"
      ? element("span", { class: "good" }, "closed: Redis decides")
      : element("span", { class: "warn" }, `${redis.circuit}: Redis does not decide`)],
    ["Without Redis", { local: "each server limits by itself", open: "requests are not limited", closed: "requests get 503" }[redis.mode] ?? redis.mode],
    ["Decided without Redis", whole(redis.fallbacks)],
    ["Failed calls", `${whole(redis.failures)}, of them ${whole(redis.timeouts)} too late`],
    ["Circuit opened", count(redis.opened, "time")],
    ["To be added to Redis", `${count(redis.pending, "subject")}, ${whole(redis.lost)} lost`],
    ...local,
  ];
}

function fullness({ subjects, capacity }) {
  const share = subjects / capacity;
  return element("progress", { max: capacity, value: subjects, class: share > 0.9 ? "bad" : share > 0.7 ? "warn" : "good", "aria-label": "Places in use" });
}

/** GET /top */
export function showTop(top) {
  setText(find("#per-second"), rate(top.per_second));
  drawChart(find("#chart"), Date.now(), top.per_second);
  const { allowed, limited, banned, suspended, undecided } = top.decisions;
  fill(find("#totals"), [["allowed", allowed, "good"], ["limited", limited, "warn"], ["banned", banned, "bad"], ...(suspended ? [["suspended", suspended, "warn"]] : []), ["undecided", undecided, "bad"]]
    .map(([name, n, kind]) => element("div", {}, element("dt", {}, name), element("dd", { class: n > 0 ? kind : "muted" }, whole(n)))),
  element("p", { class: "small muted" }, `in the last ${top.seconds} seconds`));
  const cells = (name) => (use) => [{ content: named(use[name]) }, { text: whole(use.allowed), number: true }, { text: whole(use.denied), number: true }];
  showRows(find("#owners"), top.owners, (use) => use.owner, cells("owner"));
  showRows(find("#networks"), top.networks, (use) => use.network, cells("network"));
}

/** GET /bans. unban is called with the ban to end. */
export function showBans({ bans }, unban) {
  const panel = find("#bans");
  const badge = find("h2 .badge", panel);
  badge.hidden = bans.length === 0;
  setText(badge, whole(bans.length));
  showRows(panel, bans.slice(0, mostBans), (ban) => `${ban.owner ?? ""}\n${ban.network ?? ""}`, (ban) => [
    { content: element("span", {}, named(ban.owner ?? ban.network), ban.owner === undefined ? element("span", { class: "small muted" }, " network") : null) },
    { text: `in ${duration((Date.parse(ban.ends) - now()) / 1000)}`, label: "ends" },
    { text: ban.reason === "strikes" ? `strikes, level ${ban.level}` : visible(ban.reason), label: "reason" },
    { content: element("button", { type: "button", class: "danger", "aria-label": `Unban ${visible(ban.owner ?? ban.network)}`, click: () => unban(ban) }, "Unban") },
  ]);
  const more = find(".more", panel);
  more.hidden = bans.length <= mostBans;
  setText(more, `And ${whole(bans.length - mostBans)} more, which end sooner: petstore bans list shows all.`);
}

/** GET /deprecations */
export function showDeprecations({ deprecations }) {
  const uses = deprecations.flatMap((operation) => operation.owners.length === 0
    ? [{ operation, owner: null }]
    : operation.owners.map((owner) => ({ operation, owner })));
  showRows(find("#deprecations"), uses, ({ operation, owner }) => `${operation.operation}\n${owner?.owner ?? ""}`, ({ operation, owner }) => [
    { text: operation.operation },
    { content: owner === null ? element("span", { class: "muted" }, "not used so far") : named(owner.owner) },
    { text: owner === null ? "" : rate(owner.perDay), number: true, label: "a day" },
    { text: owner === null ? "" : whole(owner.requests), number: true, label: "total" },
    { text: owner === null ? "" : stamp(owner.last), label: "last use" },
    { text: removal(operation), label: "removal" },
  ]);
}

function removal({ daysLeft }) {
  if (daysLeft === undefined) return "no date";
  return daysLeft > 0 ? `in ${count(daysLeft, "day")}` : "removed";
}

/** GET /audit */
export function showAudit({ entries }) {
  showRows(find("#audit"), entries, (entry) => entry.id, (entry) => [
    { text: stamp(entry.at) },
    { text: entry.action },
    { content: named(entry.target) },
    { content: named(entry.from ? `${entry.actor} (${entry.from})` : entry.actor) },
    { content: named(entry.detail ?? "") },
  ]);
}
