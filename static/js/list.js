// The list of sessions: a cursor moved by j and k, rows that change in place, filters without empty names.

let chosen = ""; // id of the row under the cursor

const rows = () => [...document.querySelectorAll("[data-row]")];

function mark(row, { focus }) {
  for (const other of document.querySelectorAll(".is-cursor")) other.classList.remove("is-cursor");
  if (!row) return;
  chosen = row.id;
  row.classList.add("is-cursor");
  if (focus) {
    row.querySelector("a")?.focus();
    row.scrollIntoView({ block: "nearest" });
  }
}

function move(step) {
  const all = rows();
  const place = all.findIndex((row) => row.id === chosen);
  const next = place < 0 ? 0 : Math.min(all.length - 1, Math.max(0, place + step));
  mark(all[next], { focus: true });
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else if (event.key === "Enter" && document.activeElement === document.body && chosen) {
    document.getElementById(chosen)?.querySelector("a")?.click();
  } else return;
  event.preventDefault();
}

// Rows that this page does not show are told of as well: nothing to swap, but the reader may want to see them.
const elsewhere = new Set();

function onlyShownRows(event) {
  const told = [...event.detail.message.matchAll(/id="(row-[0-9a-f-]{36})"/g)].map((match) => match[1]);
  if (!told.length || told.some((id) => document.getElementById(id))) return;
  event.preventDefault();
  for (const id of told) elsewhere.add(id);
  const link = document.querySelector("[data-elsewhere]");
  if (!link) return;
  link.hidden = false;
  link.textContent = elsewhere.size === 1 ? "1 other changed, show" : `${elsewhere.size} others changed, show`;
}

function keepCursor(event) {
  const target = event.target;
  if (!target.matches?.("[data-row]")) return;
  const hadFocus = target.contains(document.activeElement);
  if (target.id !== chosen && !hadFocus) return;
  queueMicrotask(() => {
    const row = document.getElementById(target.id);
    if (row) mark(row, { focus: hadFocus });
  });
}

function dropEmpty(event) {
  if (!event.target.matches?.("[data-drops-empty]")) return;
  const { parameters } = event.detail;
  for (const name of Object.keys(parameters)) if (parameters[name] === "") delete parameters[name];
}

// Results that were fetched anew show what there is. How many is said in a region that stays, or nobody hears it.
function onResults(event) {
  if (event.detail.target?.id !== "results") return;
  elsewhere.clear();
  const announcer = document.getElementById("announcer");
  if (isCatchingUp) isCatchingUp = false; // that the page is connected again stands there
  else announcer.textContent = document.querySelector("[data-matching]")?.textContent ?? "";
}

let openings = 0;
let isCatchingUp = false;

// After a lost connection the rows may be old, and what was told meanwhile is not told again.
function refresh() {
  openings += 1;
  if (openings < 2) return;
  isCatchingUp = true;
  window.htmx.ajax("GET", location.href, { target: "#results", swap: "outerHTML" });
}

document.addEventListener("keydown", onKey);
document.body.addEventListener("focusin", (event) => {
  const row = event.target.closest?.("[data-row]");
  if (row) mark(row, { focus: false });
});
document.body.addEventListener("htmx:wsBeforeMessage", onlyShownRows);
document.body.addEventListener("htmx:oobBeforeSwap", keepCursor);
document.body.addEventListener("htmx:configRequest", dropEmpty);
document.body.addEventListener("htmx:afterSwap", onResults);
document.body.addEventListener("htmx:wsOpen", refresh);
