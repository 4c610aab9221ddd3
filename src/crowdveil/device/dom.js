/** Elements without innerHTML: text stays text whatever it says (Trusted Types are enforced). */

/** An element, `h("p.help", …)` with a class, from its children; an object among them sets attributes and listeners. @type {Make} */
export function h(tag, ...parts) {
  const [name = "", ...classes] = tag.split("."), element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const part of parts.flat()) {
    if (part == null || part === false) continue;
    if (typeof part === "object" && !(part instanceof Node)) Object.entries(part).forEach(([name, value]) => set(element, name, value));
    else element.append(part instanceof Node ? part : String(part));
  }
  return element;
}

/** @type {SetAttribute} */
function set(element, name, value) {
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
}

/** A line drawing; the style sheet knows its file. @param {"lock" | "send" | "eye" | "check" | "warn"} name */
export const icon = (name) => h("span", { class: `icon ${name}`, "aria-hidden": "true" });

/** Calls back with the value of the control that changed. @type {WithValue} */
export const withValue = (work) => (event) => work(/** @type {any} */ (event.target).value);

/** Offer a text as a file. @type {Download} */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
