// Entries of a history by key, their text to the clipboard, and decisions about them.

function entries() {
  return [...document.querySelectorAll("#history a.entry__index")];
}

/** From the entry that has the focus, else from the first one in sight. */
function move(step) {
  const all = entries();
  if (!all.length) return;
  const from = all.findIndex((link) => link.parentElement.contains(document.activeElement));
  const inSight = all.findIndex((link) => link.getBoundingClientRect().top > 120);
  const next = from < 0 ? Math.max(0, inSight) : Math.min(all.length - 1, Math.max(0, from + step));
  all[next].focus({ preventScroll: true });
  all[next].parentElement.scrollIntoView({ block: "nearest" });
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest?.("input, textarea, select") || document.querySelector("dialog[open]")) return;
  if (event.key === "j") move(1);
  else if (event.key === "k") move(-1);
  else return;
  event.preventDefault();
}

async function copy(button) {
  const entry = button.closest("article");
  const shown = [...entry.querySelector(".entry__main").children].filter((part) => !part.matches(".entry__head"));
  let said = `Entry ${entry.querySelector(".entry__index").textContent} is copied, as far as it is shown.`;
  try {
    await navigator.clipboard.writeText(shown.map((part) => part.innerText).join("\n").trim());
  } catch {
    said = "The browser did not let this page copy. Nothing was copied; select the text instead.";
  }
  document.getElementById("announcer").textContent = said;
  button.title = said;
}

const OWN_ECHO_MS = 1_500;
const OPPOSITE = { pin: "unpin", unpin: "pin", exclude: "include", include: "exclude" };
let decidedAt = 0;

// The socket tells of one's own decision, too; its window is shown already.
function hideOwnEcho() {
  const words = document.querySelector("#history [data-newer-words]");
  if (words?.textContent === "Show what changed") words.closest("[data-newer]").hidden = true;
}

function onHeld(event) {
  if (event.detail.elt.id === "history" && event.defaultPrevented && Date.now() - decidedAt < OWN_ECHO_MS) hideOwnEcho();
}

/** A decision about an entry is posted, and its window comes back in its place; the focus stays at the entry. */
async function decide(event) {
  const button = event.submitter;
  const shown = button?.closest("[data-window]");
  if (event.target.id !== "decide" || !shown) return;
  event.preventDefault();
  const { first, last } = shown.dataset;
  const id = button.closest(".entry").querySelector(".entry__index").id;
  const values = { query: event.target.elements.query.value, first, last };
  await window.htmx.ajax("POST", button.formAction, { source: button, target: shown, swap: "outerHTML", values });
  decidedAt = Date.now();
  hideOwnEcho();
  const undo = OPPOSITE[button.getAttribute("formaction").split("/").at(-2)];
  document.getElementById(id)?.parentElement.querySelector(`[formaction$="/${undo}/"]`)?.focus({ preventScroll: true });
}

// The slider says where it stands while it is moved, and goes there when it is let go.
function onSlide(event) {
  const form = event.target.closest?.("form[data-travels]");
  if (!form || event.target.type !== "range") return;
  form.querySelector("output").textContent = Number(event.target.value).toLocaleString("en");
  event.target.setAttribute("aria-valuetext", `Entry ${event.target.value} of ${event.target.max}`);
}

document.addEventListener("input", onSlide);
document.addEventListener("keydown", onKey);
document.addEventListener("submit", decide);
document.addEventListener("htmx:beforeRequest", onHeld);
document.body.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copies]");
  if (button) copy(button);
});
