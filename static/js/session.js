// The session page: the dialog that previews a compaction, clocks of running attempts, the count of characters,
// and windows of a long history, of which only the nearest few stay in the page.

const MAX_WINDOWS = 3;

const dialog = () => document.getElementById("compact-dialog");

function showDialog(event) {
  if (event.detail.target !== dialog() || !dialog().childElementCount || dialog().open) return;
  dialog().showModal();
  // Where a finger types, the focus would bring the keyboard up over what is to be read first.
  if (matchMedia("(hover: hover)").matches) dialog().querySelector("textarea")?.focus({ preventScroll: true });
  dialog().scrollTop = 0;
}

function closeDialog() {
  dialog()?.close();
}

// The button that opened the dialog is replaced by then: the focus goes to the one in its place.
function finishDialog() {
  closeDialog();
  setTimeout(() => document.querySelector("#gauge a.compact")?.focus({ preventScroll: true }));
}

function onClick(event) {
  if (event.target.closest?.("[data-closes-dialog]") && dialog()?.open) {
    event.preventDefault();
    closeDialog();
  }
}

function onInput(event) {
  const hint = document.querySelector(`[data-counts="${CSS.escape(event.target.id)}"]`);
  if (hint) hint.textContent = `What to keep in mind. ${event.target.value.length} of 2,000 characters.`;
}

function elapsed(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} m ${String(whole % 60).padStart(2, "0")} s`;
}

function tick() {
  for (const element of document.querySelectorAll("time[data-since]")) {
    const text = elapsed((Date.now() - Date.parse(element.dateTime)) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
  for (const element of document.querySelectorAll("[data-silent-after]")) {
    const silentMs = Date.now() - Date.parse(element.querySelector("time").dateTime);
    element.hidden = silentMs < 1_000 * Number(element.dataset.silentAfter);
  }
}

/** A link that loads a window again which was taken out of the page. */
function loader(side, place, like) {
  const link = like.cloneNode(false);
  link.id = `load-${side}`;
  link.textContent = side === "earlier" ? "Earlier entries" : "Later entries";
  for (const name of ["href", "hx-get"]) {
    link.setAttribute(name, like.getAttribute(name).replace(/&(before|start)=\d+/, `&${place}`));
  }
  if (side === "earlier") link.removeAttribute("hx-trigger");
  else link.setAttribute("hx-trigger", "click, intersect once");
  return link;
}

// Far windows make room: a page of any length keeps a few thousand nodes.
function prune(event) {
  const like = event.detail.requestConfig?.elt;
  if (!like?.id?.startsWith("load-")) return;
  const windows = [...document.querySelectorAll("[data-window]")];
  if (windows.length <= MAX_WINDOWS) return;
  const side = like.id === "load-later" ? "earlier" : "later";
  const gone = side === "earlier" ? windows[0] : windows.at(-1);
  const next = side === "earlier" ? windows[1] : windows.at(-2);
  const place = side === "earlier" ? `before=${next.dataset.first}` : `start=${Number(next.dataset.last) + 1}`;
  document.getElementById(`load-${side}`)?.remove();
  const link = loader(side, place, like);
  gone.replaceWith(link);
  window.htmx.process(link);
}

const NEAR_END = 160;
const entryCount = () => Number(document.getElementById("live-cursor")?.dataset.entries ?? 0);
let shownEntries = entryCount(); // of the history when it was last fetched
let staysAtEnd = false;

function isAtEnd() {
  return !document.getElementById("load-later") && innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END;
}

// A reader is not moved: while somebody is further down or has the focus there, what changed waits behind a button that
// counts it. Who stands at the newest entry follows.
function isReading() {
  const history = document.getElementById("history");
  if (history === null || isAtEnd()) return history?.contains(document.activeElement) ?? false;
  return history.contains(document.activeElement) || scrollY > history.offsetTop || document.querySelectorAll("[data-window]").length > 1;
}

function hold(event) {
  const { elt, requestConfig } = event.detail;
  if (elt.id !== "history" || !requestConfig.triggeringEvent?.type?.startsWith("palimpsest:")) return;
  if (requestConfig.triggeringEvent.type === "palimpsest:show" || !isReading()) {
    staysAtEnd = scrollY > 0 && isAtEnd();
    return;
  }
  event.preventDefault();
  const button = elt.querySelector("[data-newer]");
  if (!button) return;
  const count = Math.max(0, entryCount() - shownEntries);
  const words = button.querySelector("[data-newer-words]");
  words.textContent = count === 0 ? "Show what changed" : count === 1 ? "1 new entry" : `${count.toLocaleString("en")} new entries`;
  button.hidden = false;
}

function shown(event) {
  if (event.detail.target?.id !== "history" && event.detail.elt?.id !== "history") return;
  shownEntries = entryCount();
  if (staysAtEnd) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
  staysAtEnd = false;
}

// The newest entries are what waited: the reader goes there.
function release(event) {
  if (!event.target.closest?.("[data-newer]")) return;
  const wasReading = scrollY > (document.getElementById("history")?.offsetTop ?? 0);
  window.htmx.trigger("#history", "palimpsest:show");
  staysAtEnd = wasReading;
}

// A press on the map goes to the stretch under it. The same places are links in the outline, for keys.
function onMap(event) {
  const map = event.target.closest?.("[data-goes-to]");
  if (!map) return;
  const box = map.querySelector("svg").getBoundingClientRect();
  const y = (1_000 * (event.clientY - box.top)) / box.height;
  const mark = [...map.querySelectorAll("[data-at]")].findLast((rect) => Number(rect.getAttribute("y")) <= y);
  if (mark) location.assign(map.dataset.goesTo.replace(/([?&]at=)0\b/, `$1${mark.dataset.at}`));
}

document.body.addEventListener("click", onMap);
document.body.addEventListener("htmx:beforeRequest", hold);
document.body.addEventListener("click", release);
document.body.addEventListener("htmx:afterSwap", showDialog);
document.body.addEventListener("palimpsest:dialog-done", finishDialog);
document.body.addEventListener("click", onClick);
document.body.addEventListener("input", onInput);
document.body.addEventListener("htmx:afterSettle", tick);
document.body.addEventListener("htmx:afterSettle", shown);
document.body.addEventListener("htmx:wsAfterMessage", tick);
document.body.addEventListener("htmx:afterOnLoad", prune);
tick();
setInterval(tick, 1_000);
