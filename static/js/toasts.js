// Answers that refuse or fail come as a fragment for the toast area, with their own status. This is the one
// place that lets htmx swap them, and the one that speaks when no answer came at all.

// While a dialog is open, all outside of it is covered and inert: then toasts stand inside.
function area() {
  const open = document.querySelector("dialog[open]");
  if (!open) return document.getElementById("toasts");
  const inside = open.querySelector(".toasts") ?? open.appendChild(document.createElement("div"));
  inside.className = "toasts";
  return inside;
}

const STAYS_MS = 15_000;

/** What was done is said for a while, longer while somebody is at it; what failed stays until it is dismissed. */
function leaveLater(element) {
  setTimeout(() => (element.matches(":hover, :focus-within") ? leaveLater(element) : element.remove()), STAYS_MS);
}

function welcome() {
  for (const button of document.querySelectorAll("[data-dismiss][hidden]")) {
    button.hidden = false;
    const element = button.closest(".toasts > .toast[role=status]");
    if (element) leaveLater(element);
  }
}

/** Says something in a toast. The text is set as text, never as markup. */
export function toast(text) {
  const element = document.createElement("div");
  element.className = "toast";
  element.setAttribute("role", "alert");
  element.textContent = text;
  area().append(element);
  leaveLater(element);
}

export function bindToasts() {
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr } = event.detail;
    if (xhr.status < 400) return;
    if (xhr.getResponseHeader("X-Fragment") === "form") {
      event.detail.shouldSwap = true; // the form again, with what is wrong in it
      event.detail.isError = false;
      return;
    }
    const isFragment = xhr.getResponseHeader("X-Fragment") === "toast";
    if (!isFragment) {
      toast("The server could not answer. Nothing was changed by this page. Try again, or reload it.");
      return;
    }
    event.detail.shouldSwap = true;
    event.detail.target = area();
    event.detail.swapOverride = "beforeend";
    event.detail.selectOverride = "unset";
  });
  document.body.addEventListener("htmx:sendError", () => {
    toast("The server could not be reached. Whether it got the request is not known; reload to see what it has.");
  });
  for (const name of ["htmx:afterSwap", "htmx:oobAfterSwap"]) document.body.addEventListener(name, welcome);
  document.body.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-dismiss]");
    if (button) button.closest(button.dataset.dismiss)?.remove();
  });
  welcome();
}
