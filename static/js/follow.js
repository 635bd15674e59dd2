// Following one session. Every message of the socket replaces whole parts and leaves, in #live-cursor, up to
// where they hold and what else changed; parts that name themselves with data-follows then fetch themselves.

const CHANGED = "palimpsest:changed"; // what those parts name in hx-trigger

const GAP_MS = 250; // a page is told more often than its parts should fetch themselves

let seen = 0;
let openings = 0;
let waiting = new Set(); // what changed since the parts were told last
let tellsAt = 0;
let timer = 0;

function names(element, attribute) {
  return (element.dataset[attribute] ?? "").split(/[\s|]+/).filter(Boolean);
}

function tell(isMeant) {
  for (const part of document.querySelectorAll("[data-follows]")) {
    if (names(part, "follows").some(isMeant)) window.htmx.trigger(part, CHANGED);
  }
}

function onMessage() {
  const cursor = document.getElementById("live-cursor");
  const seq = Number(cursor?.dataset.seq ?? 0);
  if (!cursor || seq <= seen) return;
  seen = seq;
  for (const name of names(cursor, "changed")) waiting.add(name);
  timer ||= setTimeout(tellWhatWaits, Math.max(0, tellsAt - Date.now()));
}

function tellWhatWaits() {
  const changed = waiting;
  waiting = new Set();
  timer = 0;
  tellsAt = Date.now() + GAP_MS;
  tell((name) => changed.has(name));
}

const REACHABLE = "a[href], button:not([disabled]), summary, [tabindex]";

// Parts are replaced several times a second: who has the focus on one of their buttons keeps it there. What is gone
// leaves it to the compact button, so that no key presses something else by chance.
function keepFocus(part) {
  const focused = document.activeElement;
  if (!part.id || !part.contains(focused)) return;
  const like = focused.className;
  queueMicrotask(() => {
    const all = [...(document.getElementById(part.id)?.querySelectorAll(REACHABLE) ?? [])];
    const same = all.find((element) => element.className === like) ?? document.querySelector("#gauge a.compact");
    same?.focus({ preventScroll: true });
  });
}

// What was told while nobody listened is told again from the cursor; this covers what has no event of its own.
function onOpen() {
  openings += 1;
  if (openings > 1) tell(() => true);
}

seen = Number(document.getElementById("live-cursor")?.dataset.seq ?? 0);
document.body.addEventListener("htmx:oobBeforeSwap", (event) => keepFocus(event.target));
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id === "compaction-panel") keepFocus(event.detail.target);
});
document.body.addEventListener("htmx:wsAfterMessage", onMessage);
document.body.addEventListener("htmx:wsOpen", onOpen);
