// Theme: system, light or dark, kept in this browser. A classic script in the head, so that the page is
// painted in the right theme at once; the button is bound when the document has been read.
(() => {
  const KEY = "palimpsest.theme";
  const ORDER = ["system", "light", "dark"];

  function stored() {
    try {
      const theme = localStorage.getItem(KEY);
      return ORDER.includes(theme) ? theme : "system";
    } catch {
      return "system"; // storage is switched off
    }
  }

  function apply(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }

  function label(button, theme) {
    button.setAttribute("aria-label", `Theme: ${theme}`);
    button.title = `Theme: ${theme}`;
  }

  apply(stored());
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("[data-theme-button]");
    if (!button) return;
    button.hidden = false;
    label(button, stored());
    button.addEventListener("click", () => {
      const theme = ORDER[(ORDER.indexOf(stored()) + 1) % ORDER.length];
      try {
        localStorage.setItem(KEY, theme);
      } catch {
        // It holds for this page only.
      }
      apply(theme);
      label(button, theme);
    });
  });
})();
