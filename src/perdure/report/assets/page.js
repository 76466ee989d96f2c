// The page itself: light and dark, contents, and initialisation of all parts.

function startTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme-toggle");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const current = () => root.dataset.theme ?? (system.matches ? "dark" : "light");
  const label = () => {
    const other = current() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = current() === "dark" ? "light" : "dark";
    remembered(root.dataset.theme);
    label();
  });
  system.addEventListener("change", label);
  label();
  button.hidden = false;
}

/** On small screens the contents collapse behind a button; everywhere they mark the current section. */
function startContents() {
  const nav = document.getElementById("contents");
  const button = document.getElementById("contents-toggle");
  const narrow = matchMedia("(max-width: 63.99rem)");
  const fold = (folded) => {
    nav.classList.toggle("folded", folded);
    button.setAttribute("aria-expanded", String(!folded));
  };
  const adapt = () => { button.hidden = !narrow.matches; fold(narrow.matches); };
  button.addEventListener("click", () => {
    fold(!nav.classList.contains("folded"));
    if (!nav.classList.contains("folded")) scrollTo({ top: 0 });
  });
  nav.addEventListener("click", (event) => { if (event.target.closest("a") && narrow.matches) fold(true); });
  narrow.addEventListener("change", adapt);
  adapt();
  const links = new Map([...nav.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const places = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const mark = () => {
    const line = innerHeight / 4;
    const passed = places.filter((place) => place.getBoundingClientRect().top <= line);
    const here = passed[passed.length - 1] ?? places[0];
    for (const [id, link] of links) {
      if (id === here?.id) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
  };
  let waiting = false;
  addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; mark(); });
  }, { passive: true });
  mark();
}

/** Printed pages cannot expand what is collapsed. */
function startPrinting() {
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
}

startTheme();
startContents();
startTips();
startTables();
addCopyButtons(document);
document.querySelectorAll(".scripted").forEach((part) => { part.hidden = false; });
startPrinting();
const loaded = loadRuns();
