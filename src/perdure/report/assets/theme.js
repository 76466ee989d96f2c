// Before anything is drawn: the colours that were chosen last time.

/** Storage may be forbidden, as for some pages opened from a file; then the choice lasts as long as the page. */
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
