// The connection that tells this page of changes: its state in the bar at the top, and in words for
// assistive tools when it is lost and when it is back.

const LOST_AFTER_MS = 2_000; // a reload of the server is shorter than this, and no news

// A server that is frozen, or gone without a word, leaves its connections open. It says every ten seconds that it is there.
const BEAT = "beat";
const SILENT_AFTER_MS = 22_000;
const LOOK_EVERY_MS = 2_000;

// With these the server asks to be connected to anew; htmx knows this wish by another code.
const COME_AGAIN = [4411, 4413];
const TRY_AGAIN_LATER = 1013;

let lostTimer = 0;
let wasLost = false;
let socket = null;
let heardAt = 0;

function announce(text) {
  const region = document.getElementById("announcer");
  if (region) region.textContent = text;
}

function show(text, isLost) {
  for (const element of document.querySelectorAll("[data-live]")) {
    element.hidden = false;
    element.textContent = text;
    element.classList.toggle("is-lost", isLost);
  }
}

function opened() {
  clearTimeout(lostTimer);
  lostTimer = 0;
  show("Live", false);
  if (wasLost) announce("Connected again; this page has caught up.");
  wasLost = false;
}

function closed() {
  if (lostTimer || wasLost) return;
  lostTimer = setTimeout(() => {
    lostTimer = 0;
    wasLost = true;
    show("Connection lost, reconnecting", true);
    announce("Connection lost. What you see may be old; reconnecting.");
  }, LOST_AFTER_MS);
}

// A new connection goes on from the cursor that the page holds by then, not from the one that it was loaded with.
function connect(url) {
  const address = new URL(url);
  const seq = document.querySelector("[data-seq]")?.dataset.seq;
  if (seq) address.searchParams.set("after", seq);
  heardAt = Date.now();
  socket = new WebSocket(address);
  socket.addEventListener("close", translate);
  return socket;
}

function translate(event) {
  if (!COME_AGAIN.includes(event.code)) return;
  event.stopImmediatePropagation();
  event.target.dispatchEvent(new CloseEvent("close", { code: TRY_AGAIN_LATER }));
}

function heard(event) {
  heardAt = Date.now();
  if (event.detail.message === BEAT) event.preventDefault();
}

// The end of a connection that nobody answers would be told only minutes later: it counts as ended now.
function giveUp() {
  if (document.hidden || socket === null || Date.now() - heardAt < SILENT_AFTER_MS) return;
  const silent = socket;
  socket = null;
  silent.dispatchEvent(new CloseEvent("close", { code: 1006 }));
  silent.onopen = silent.onmessage = silent.onerror = silent.onclose = null;
  silent.close();
}

export function bindLive() {
  if (window.htmx) window.htmx.createWebSocket = connect;
  document.body.addEventListener("htmx:wsOpen", opened);
  document.body.addEventListener("htmx:wsClose", closed);
  document.body.addEventListener("htmx:wsError", closed);
  document.body.addEventListener("htmx:wsBeforeMessage", heard);
  // A page in the background is not told in time that time goes by.
  document.addEventListener("visibilitychange", () => { heardAt = Date.now(); });
  setInterval(giveUp, LOOK_EVERY_MS);
  addEventListener("pagehide", () => clearTimeout(lostTimer));
}
