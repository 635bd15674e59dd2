// The field for a message: Enter sends it, and it is emptied once the server has it. Who stands at the end of the page
// stays there while an answer grows.

const NEAR_END = 160;
const composer = () => document.querySelector("form[data-composer]");
const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END;

let sent = "";
let followsEnd = false;

function onKey(event) {
  if (event.key !== "Enter" || event.isComposing || !event.target.closest?.("form[data-composer] textarea")) return;
  if (event.shiftKey || event.altKey) return;
  event.preventDefault();
  if (event.target.value.trim()) event.target.form.requestSubmit();
}

function remember(event) {
  if (event.detail.elt === composer()) sent = composer().elements.text.value;
}

// What was written on while the message was under way stays.
function empty(event) {
  const form = composer();
  if (!form) return;
  const field = form.elements.text;
  field.value = field.value.startsWith(sent) ? field.value.slice(sent.length).replace(/^\n/, "") : field.value;
  form.elements.key.value = event.detail.key;
  form.querySelectorAll(".field__error").forEach((error) => error.remove());
  scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
}

function showHint() {
  for (const hint of document.querySelectorAll("[data-composer-hint]")) hint.hidden = false;
}

document.addEventListener("keydown", onKey);
document.body.addEventListener("htmx:beforeRequest", remember);
document.body.addEventListener("palimpsest:sent", empty);
document.body.addEventListener("htmx:afterSwap", showHint);
document.body.addEventListener("htmx:wsBeforeMessage", () => { followsEnd = scrollY > 0 && isAtEnd(); });
document.body.addEventListener("htmx:wsAfterMessage", () => {
  if (followsEnd) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
});
showHint();
