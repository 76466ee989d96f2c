// Creating elements, the tooltip, and announcements for screen readers.
const SVG = "http://www.w3.org/2000/svg";

/** An element; `text` in its attributes is its text. External names never become markup. */
function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for drawings. */
function drawn(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") made.textContent = value;
    else if (key === "style") made.style.cssText = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const tip = document.getElementById("tip");

/** Show content (text or nodes) near a point, inside the window. */
function showTip(content, x, y) {
  tip.replaceChildren(...[content].flat());
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
  const top = y + 16 + box.height > innerHeight ? y - 16 - box.height : y + 16;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}

function hideTip() {
  tip.hidden = true;
}

/** Next to an element instead of the pointer, for the keyboard. */
function showTipAt(target, content) {
  const box = target.getBoundingClientRect();
  showTip(content, box.left + box.width / 2, box.top + box.height / 2);
}

/** A line of the tooltip: a colour, a name and a value. */
function tipRow(colour, name, value) {
  return element("div", { class: "row", style: `--key: ${colour}` },
    element("i"), element("span", { text: name }), element("b", { text: value }));
}

function startTips() {
  const holder = (event) => (event.target instanceof Element ? event.target.closest("[data-tip]") : null);
  document.addEventListener("pointermove", (event) => {
    const found = holder(event);
    if (found) showTip(found.dataset.tip, event.clientX, event.clientY);
  });
  document.addEventListener("pointerout", (event) => { if (holder(event)) hideTip(); });
  document.addEventListener("focusin", (event) => { if (holder(event)) showTipAt(holder(event), holder(event).dataset.tip); });
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  addEventListener("scroll", hideTip, { passive: true, capture: true });
}

/** Announce to a screen reader. */
function say(text) {
  document.getElementById("said").textContent = text;
}

/** Copy text to the clipboard; pages opened from a file may only support the older method. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { style: "position: fixed; opacity: 0" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A command as shell words, each kept on one line if there is room. */
function commandText(text) {
  const words = text.split(" ").flatMap((word, place) => [...(place ? [" "] : []), element("span", { text: word })]);
  return element("span", { class: "command" }, element("code", {}, ...words));
}

function copyIcon(done) {
  const shapes = done ? ["M3 8.5l3.5 3.5L13 4.5"] : ["M5.5 5.5h8v8h-8z", "M10.5 5.5v-3h-8v8h3"];
  return drawn("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, ...shapes.map((d) => drawn("path", { d })));
}

/** Add a copy button after each command. */
function addCopyButtons(root) {
  for (const command of root.querySelectorAll(".command")) {
    const text = command.querySelector("code").textContent;
    const button = element("button", { type: "button", class: "copy", title: "Copy the command", "aria-label": `Copy the command ${text}` }, copyIcon(false));
    button.addEventListener("click", async () => {
      const done = await copyText(text);
      if (done) button.replaceChildren(copyIcon(true));
      say(done ? "Command copied" : "The browser does not allow copying here");
      setTimeout(() => button.replaceChildren(copyIcon(false)), 1600);
    });
    command.append(button);
  }
}
