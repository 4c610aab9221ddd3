/**
 * The page's words: one catalogue a language, the same keys in each (a test compares them), named with their hashes in
 * the entry page.
 */
import { api } from "./api.js";

/** @type {Record<string, string>} */
let words = {};

/** The languages that the entry page offers. */
function catalogues() {
  return [...document.querySelectorAll("link[rel=alternate][hreflang]")].map((link) => /** @type {HTMLLinkElement} */ (link));
}

export const languages = () => catalogues().map((link) => link.hreflang);

/** @param {string | undefined} wanted  what the worker chose, else the browser's own */
export async function setLanguage(wanted) {
  const asked = [wanted, ...navigator.languages, "en"].map((name) => (name ?? "").slice(0, 2));
  const found = asked.flatMap((name) => catalogues().filter((link) => link.hreflang === name))[0];
  if (!found) return;
  words = await api.words(found.href, found.integrity);
  document.documentElement.lang = found.hreflang;
}

/** A sentence with its values filled in. @param {string} key @param {Record<string, string | number>} [values] */
export function t(key, values = {}) {
  return (words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** What a refusal says, in words. @param {{key: string, values: Record<string, string | number>}} refusal */
export function refusalText({ key, values }) {
  const exact = `refusal.${key}`;
  return exact in words ? t(exact, values) : t(`refusal.${key.split(".")[0]}`, { got: key });
}

/** Rounded up: what is shown as used or as known is never understated. @param {number} share */
export function percent(share) {
  const shown = Math.max(0, Math.ceil(share * 100 - 1e-9)) / 100;
  return new Intl.NumberFormat(document.documentElement.lang, { style: "percent" }).format(shown);
}

/** @param {number} cents */
export function money(cents) {
  const format = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return new Intl.NumberFormat(document.documentElement.lang, format).format(cents / 100);
}
