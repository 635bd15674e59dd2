// The connection that tells this page of changes: its state in the bar at the top, and in words for
// assistive tools when it is lost and when it is back.

const LOST_AFTER_MS = 2_000; // a reload of the server is shorter than this, and no news

let lostTimer = 0;
let wasLost = false;

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
  return new WebSocket(address);
}

export function bindLive() {
  if (window.htmx) window.htmx.createWebSocket = connect;
  document.body.addEventListener("htmx:wsOpen", opened);
  document.body.addEventListener("htmx:wsClose", closed);
  document.body.addEventListener("htmx:wsError", closed);
  addEventListener("pagehide", () => clearTimeout(lostTimer));
}
