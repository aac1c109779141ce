// Before anything is drawn: light or dark, as this person chose here, else as the system says.
"use strict";
try {
  const chosen = localStorage.getItem("golden-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* A browser that keeps nothing follows the system. */ }
