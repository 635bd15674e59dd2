// Following one session. Every message of the socket replaces whole parts and leaves, in #live-cursor, up to
// where they hold and what else changed; parts that name themselves with data-follows then fetch themselves.

const CHANGED = "palimpsest:changed"; // what those parts name in hx-trigger

let seen = 0;
let openings = 0;

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
  const changed = new Set(names(cursor, "changed"));
  tell((name) => changed.has(name));
}

// What was told while nobody listened is told again from the cursor; this covers what has no event of its own.
function onOpen() {
  openings += 1;
  if (openings > 1) tell(() => true);
}

seen = Number(document.getElementById("live-cursor")?.dataset.seq ?? 0);
document.body.addEventListener("htmx:wsAfterMessage", onMessage);
document.body.addEventListener("htmx:wsOpen", onOpen);
