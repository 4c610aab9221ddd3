/**
 * Building the page from elements, never from text that could be read as code (Trusted Types are enforced).
 */
/** @import { Child } from "./types.js" */

/**
 * An element with attributes, listeners (`onclick`) and children.
 * @param {string} tag @param {Record<string, any>} [attributes] @param {...(Child | Child[])} children
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(isShown).map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

/** A line drawing; the style sheet knows its file. @param {"lock" | "send" | "eye" | "check" | "warn"} name */
export function icon(name) {
  return h("span", { class: `icon ${name}`, "aria-hidden": "true" });
}

/** @param {Child} child @returns {child is Node | string | number} */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** Calls back with the value of the control that changed. @param {(value: string) => void} work */
export function withValue(work) {
  return (/** @type {Event} */ event) => work(/** @type {HTMLInputElement} */ (event.target).value);
}

/** Offer a text as a file. @param {string} name @param {string} text */
export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
