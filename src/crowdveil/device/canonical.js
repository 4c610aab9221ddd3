/**
 * Canonical JSON: the same bytes as `crowdveil.canonical_json.canonical` in Python, so both sides can check the same hash.
 * Sorted keys, no spaces, UTF-8, whole numbers only.
 */
import { Refusal } from "./refusal.js";
import { sha256 } from "./sha256.js";

/** @param {any} value @returns {string} */
export function canonicalText(value) {
  if (value === null || typeof value === "boolean" || Number.isSafeInteger(value)) return String(value);
  if (typeof value === "string") return quoted(value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value !== "object") throw new Refusal("canonical.value", { got: String(value) });
  const keys = Object.keys(value).sort((a, b) => (order(a) < order(b) ? -1 : 1));
  return `{${keys.map((key) => `${quoted(key)}:${canonicalText(value[key])}`).join(",")}}`;
}

/** @param {unknown} value */
export const canonical = (value) => new TextEncoder().encode(canonicalText(value));

/** In hexadecimal. @param {unknown} value */
export const sha256Of = (value) => sha256(canonical(value));

/** @param {string} text */
function quoted(text) {
  // Half a surrogate pair has no UTF-8; Python refuses it too.
  if (/\p{Surrogate}/u.test(text)) throw new Refusal("canonical.value", { got: JSON.stringify(text) });
  return JSON.stringify(text);
}

/** Python sorts by code point; JavaScript by UTF-16 unit, which puts U+10000 and above before U+E000. @param {string} text */
const order = (text) => Array.from(text, (sign) => (sign.codePointAt(0) ?? 0).toString(16).padStart(6, "0")).join("");
