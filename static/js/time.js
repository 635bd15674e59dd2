// Times: the server writes them relative and, on hover, in UTC. Here both become the reader's own: relative
// to now, renewed every 15 s, and absolute in the reader's zone once somebody points at one.

const MINUTE = 60;
const STEPS = [
  [MINUTE, 1, "s"],
  [60 * MINUTE, MINUTE, "min"],
  [24 * 60 * MINUTE, 60 * MINUTE, "h"],
  [60 * 24 * 60 * MINUTE, 24 * 60 * MINUTE, "d"],
  [730 * 24 * 60 * MINUTE, 30 * 24 * 60 * MINUTE, "mo"],
  [Infinity, 365 * 24 * 60 * MINUTE, "y"],
];
const absolute = new Intl.DateTimeFormat("en-GB", {
  day: "numeric", month: "short", year: "numeric",
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});

/** Seconds as a short text: "12 s", "4 min", "3 h". The server's filter `ago` says the same. */
export function ago(seconds) {
  const past = Math.max(0, seconds);
  const [, unit, word] = STEPS.find(([limit]) => past < limit);
  return `${Math.floor(past / unit)} ${word}`;
}

function renew(root = document) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[data-ago]")) {
    const then = Date.parse(element.dateTime);
    if (Number.isNaN(then)) continue;
    const text = ago((now - then) / 1000);
    if (element.textContent !== text) element.textContent = text;
  }
}

function showAbsolute(event) {
  const element = event.target.closest?.("time[datetime]");
  if (!element || element.dataset.local) return;
  const then = Date.parse(element.dateTime);
  if (Number.isNaN(then)) return;
  element.title = absolute.format(then);
  element.dataset.local = "1";
}

export function bindTimes() {
  renew();
  setInterval(renew, 15_000);
  document.addEventListener("mouseover", showAbsolute, { passive: true });
  document.addEventListener("focusin", showAbsolute, { passive: true });
  document.body.addEventListener("htmx:afterSettle", () => renew());
  document.body.addEventListener("htmx:wsAfterMessage", () => renew());
}
