/**
 * The worker's own ledger: what every study cost, and the refusal of what would pass the cap.
 *
 * A release is accepted iff Σε ≤ ε_max or Σρ ≤ ρ_max(ε_max, δ), which is sound even when questions depend on earlier
 * reports (`docs/explain/ledger-soundness.md`). The broker keeps a copy as a guard; this one is authoritative, and only
 * the worker can raise its cap. Lines are only ever added.
 */
import { sha256Of } from "./canonical.js";
import { add, nanoDown, rhoMax } from "./nano.js";
import { Refusal, refuseUnless } from "./refusal.js";
import { hexadecimal, systemBytes } from "./sampler.js";
/** @import { AskToCharge, CarryOver, Charge, Line, Merge, NotBefore, OfTwo, Surplus } from "./types.js" */

const FORMAT = "crowdveil-ledger/1";

/** One final δ for everything together. */
const DELTA = 1e-6;

/** Both ceilings that a cap on ε means. @param {number} epsilonNano */
export function capOf(epsilonNano) {
  return { epsilon: epsilonNano, rho: nanoDown(rhoMax(epsilonNano / 1e9, DELTA)) };
}

/** What was spent since a day; without one, ever. @param {Iterable<Line>} lines @param {string} [since] */
export function spent(lines, since = "") {
  return [...lines].filter((line) => line.day >= since).reduce(sum, { epsilon: 0, rho: 0 });
}

/** The either-or rule: one of the two sums suffices. @type {OfTwo<boolean>} */
export function within(sum, cap) {
  return sum.epsilon <= cap.epsilon || sum.rho <= cap.rho;
}

/** By how much one exceeds the other, in each currency. @type {OfTwo<Charge>} */
export function beyond(one, other) {
  return { epsilon: Math.max(0, one.epsilon - other.epsilon), rho: Math.max(0, one.rho - other.rho) };
}

/** @type {OfTwo<Charge>} */
export function sum(a, b) {
  return { epsilon: add(a.epsilon, b.epsilon), rho: add(a.rho, b.rho) };
}

/**
 * The line that may be added, or a refusal with the numbers. A key charged before costs nothing more.
 * @type {AskToCharge}
 */
export function charge(lines, line, cap, since = "") {
  const before = lines.get(line.key);
  if (before) return before;
  const already = spent(lines.values(), since);
  const free = line.epsilon === 0 && line.rho === 0;
  if (free || within(sum(already, line), cap)) return { ...line, day: notBefore(lines, line.day) };
  throw refusal(line, beyond(cap, already));
}

/** A clock that was set back must not put a spend into a year that is over. @type {NotBefore} */
function notBefore(lines, day) {
  return [...lines.values()].reduce((latest, line) => (line.day > latest ? line.day : latest), day);
}

/** The refusal in numbers. @param {Charge} cost @param {Charge} left */
export function refusal(cost, left) {
  return new Refusal("ledger.refused", { needed: cost.epsilon, left: left.epsilon, neededRho: cost.rho, leftRho: left.rho });
}

/**
 * A line for what was spent elsewhere (another device, the broker's copy) and is not yet in these lines; null when
 * nothing is missing. It is added even past the cap, because it has been spent.
 * @type {CarryOver}
 */
export function carryOver(lines, elsewhere, day) {
  const kind = "carried-over", missing = beyond(elsewhere, spent(lines.values()));
  if (missing.epsilon === 0 && missing.rho === 0) return null;
  // Drawn: a number could be the key of something else, here or on another device.
  const key = `${kind} ${hexadecimal(systemBytes.take(16))}`;
  return { key, kind, name: "", level: "", reports: 0, ...missing, day: notBefore(lines, day) };
}

/**
 * The ledger as text for another device, with whatever else must travel, sealed against slips of copying.
 * @param {Iterable<Line>} lines @param {Record<string, unknown>} more
 */
export function exportLedger(lines, more = {}) {
  const content = { ...more, format: FORMAT, lines: [...lines] };
  return JSON.stringify({ ...content, sha256: sha256Of(content) });
}

/** Refuses what was changed or is not understood. @param {string} text @returns {{lines: Line[]} & Record<string, any>} */
export function importLedger(text) {
  const { sha256, ...content } = parsed(text);
  refuseUnless(content.format === FORMAT && Array.isArray(content.lines), "ledger.format");
  refuseUnless(sha256Of(content) === sha256, "ledger.hash");
  refuseUnless(content.lines.every(isLine), "ledger.format");
  return /** @type {any} */ (content);
}

/** What must be added so that nothing spent on either device is forgotten. @type {Merge} */
export function merge(lines, others, own = new Map(), theirs = new Map()) {
  const mine = new Set([...own].map((draw) => draw.join(" ")));
  return others.flatMap((other) => {
    const { key } = other, before = lines.get(key), line = before ? surplus(before, other, own.get(key), theirs.get(key)) : other;
    return line && !lines.has(line.key) && !mine.has(line.key) ? [line] : [];
  });
}

/** All of it where each device drew the study for itself, which is two releases; else what the other paid more. @type {Surplus} */
function surplus(before, other, own, theirs) {
  if (own && theirs && own !== theirs) return { ...other, key: `${other.key} ${theirs}` };
  const more = beyond(other, before), key = `${other.key} elsewhere ${more.epsilon} ${more.rho}`;
  return more.epsilon || more.rho ? { ...other, key, ...more } : null;
}

/** @param {any} line */
function isLine(line) {
  const amounts = [line?.epsilon, line?.rho, line?.reports];
  const texts = [line?.key, line?.kind, line?.name, line?.level, line?.day];
  return amounts.every((n) => Number.isSafeInteger(n) && n >= 0) && texts.every((text) => typeof text === "string");
}

/** @param {string} text @returns {Record<string, any>} */
function parsed(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {}; // Not JSON is not a ledger, as its format then says.
  }
}
