// Before anything is drawn: restore the colours chosen last time.

/** Storage may be forbidden, as for some pages opened from a file; the choice then lasts as long as the page. */
function remembered(value) {
  try {
    if (value !== undefined) localStorage.setItem("perdure-theme", value);
    return localStorage.getItem("perdure-theme");
  } catch {
    return null;
  }
}

{
  const stored = remembered();
  if (stored === "dark" || stored === "light") document.documentElement.dataset.theme = stored;
}
