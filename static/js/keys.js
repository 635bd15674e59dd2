// Keys. An element names its own: data-key="/" on a field focuses it, on a link or button presses it.
// Single keys stay silent while somebody types, and with Ctrl, Alt or ⌘.

const TYPING = "input:not([type=checkbox]):not([type=radio]):not([type=range]), textarea, select, [contenteditable]";

function isTyping(target) {
  return target instanceof Element && target.closest(TYPING) !== null;
}

function isShown(element) {
  return element.checkVisibility?.() ?? true;
}

function press(key) {
  const matching = [...document.querySelectorAll("[data-key]")].filter((element) => element.dataset.key === key);
  const element = matching.find(isShown);
  if (!element) return false;
  if (element.matches(TYPING)) {
    element.focus();
    element.select?.();
  } else {
    element.click();
  }
  return true;
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "?") {
    document.getElementById("key-help")?.showModal();
    event.preventDefault();
  } else if (press(event.key)) {
    event.preventDefault();
  }
}

export function bindKeys() {
  document.addEventListener("keydown", onKey);
  document.body.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-opens-keys]")) document.getElementById("key-help")?.showModal();
  });
}
