// Search: a cursor over the hits, empty filters left out of the address, and matches marked in the entries of a session.

const hits = () => [...document.querySelectorAll(".hit[data-row]")];
let chosen = -1;

function move(step) {
  const all = hits();
  if (!all.length) return;
  const focused = all.findIndex((hit) => hit.contains(document.activeElement));
  chosen = Math.min(all.length - 1, Math.max(0, (focused >= 0 ? focused : chosen) + step));
  for (const hit of all) hit.classList.toggle("is-cursor", hit === all[chosen]);
  all[chosen].querySelector("a")?.focus();
  all[chosen].scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else return;
  event.preventDefault();
}

function dropEmpty(event) {
  if (!event.target.matches?.("[data-drops-empty]")) return;
  const { parameters } = event.detail;
  for (const name of Object.keys(parameters)) if (parameters[name] === "") delete parameters[name];
}

function onResults(event) {
  if (event.detail.target?.id !== "results") return;
  chosen = -1;
  document.getElementById("announcer").textContent = document.querySelector("[data-matching]")?.textContent ?? "";
}

// Marks by ranges, which change nothing in the page: what a transcript says stays as it is.
function paint() {
  const words = (document.querySelector("[data-marks]")?.dataset.marks ?? "").split("\u001f").filter(Boolean);
  if (!window.CSS?.highlights || !words.length) return;
  const found = new Highlight();
  const walk = document.createTreeWalker(document.getElementById("history"), NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node && found.size < 2_000; node = walk.nextNode()) {
    if (node.data.length > 100_000) continue;
    const text = node.data.toLowerCase();
    for (const word of words) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, Math.min(node.data.length, at + word.length));
        found.add(range);
      }
    }
  }
  CSS.highlights.set("search", found);
}

if (document.querySelector("[data-marks]")) {
  paint();
  document.body.addEventListener("htmx:afterSettle", paint);
} else {
  document.addEventListener("keydown", onKey);
  document.body.addEventListener("htmx:configRequest", dropEmpty);
  document.body.addEventListener("htmx:afterSwap", onResults);
}
