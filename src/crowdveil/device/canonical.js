/**
 * Canonical JSON: the same bytes as `crowdveil.wire.canonical` in Python, so both sides can check the same hash.
 * Sorted keys, no spaces, UTF-8, whole numbers only.
 */
import { Refusal } from "./refusal.js";
import { sha256 } from "./sha256.js";

/** @param {unknown} value @returns {string} */
export function canonicalText(value) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quoted(value);
  if (typeof value === "number" && Number.isSafeInteger(value)) return String(value === 0 ? 0 : value);
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (typeof value === "object") return canonicalObject(/** @type {Record<string, unknown>} */ (value));
  throw new Refusal("canonical.value", { got: String(value) });
}

/** @param {unknown} value */
export function canonical(value) {
  return new TextEncoder().encode(canonicalText(value));
}

/** The hash of the canonical JSON, in hexadecimal. @param {unknown} value */
export function sha256Of(value) {
  return sha256(canonical(value));
}

/** @param {Record<string, unknown>} object */
function canonicalObject(object) {
  const keys = Object.keys(object).sort(byCodePoint);
  return `{${keys.map((key) => `${quoted(key)}:${canonicalText(object[key])}`).join(",")}}`;
}

/** @param {string} text */
function quoted(text) {
  // Half a surrogate pair has no UTF-8; Python refuses it too.
  if (/\p{Surrogate}/u.test(text)) throw new Refusal("canonical.value", { got: JSON.stringify(text) });
  return JSON.stringify(text);
}

/**
 * Python sorts by code point; JavaScript by UTF-16 unit, which puts U+10000 and above before U+E000.
 * @param {string} left @param {string} right
 */
function byCodePoint(left, right) {
  const a = Array.from(left), b = Array.from(right);
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i]?.codePointAt(0) ?? 0) - (b[i]?.codePointAt(0) ?? 0);
    if (difference) return difference;
  }
  return a.length - b.length;
}
