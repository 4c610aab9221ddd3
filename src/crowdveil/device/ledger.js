/**
 * The worker's own ledger: what every study cost, and the refusal of what would pass the cap.
 * A release is accepted iff Σε ≤ ε_max or Σρ ≤ ρ_max(ε_max, δ), which is sound even when questions depend on earlier
 * reports (`docs/explain/ledger-soundness.md`). The broker keeps a copy as a guard; this one is authoritative, and only
 * the worker can raise its cap. Lines are only ever added.
 */
import { sha256Of } from "./canonical.js";
import { add, nanoDown, rhoMax } from "./nano.js";
import { Refusal, refuseUnless } from "./refusal.js";
import { hexadecimal, systemBytes } from "./sampler.js";

const FORMAT = "crowdveil-ledger/1";

const DELTA = 1e-6; // one final δ for everything together

/** Both ceilings that a cap on ε means. @param {number} epsilon */
export const capOf = (epsilon) => ({ epsilon, rho: nanoDown(rhoMax(epsilon / 1e9, DELTA)) });

/** What was spent since a day; without one, ever. @type {Spent} */
export const spent = (lines, since = "") => [...lines].filter((line) => line.day >= since).reduce(sum, { epsilon: 0, rho: 0 });

/** The either-or rule: one of the two sums suffices. @type {OfTwo<boolean>} */
export function within(sum, cap) {
  return sum.epsilon <= cap.epsilon || sum.rho <= cap.rho;
}

/** How much of the cap is used, of the ceiling that has more room. @type {OfTwo<number>} */
export const share = (used, cap) => Math.min(used.epsilon / cap.epsilon, cap.rho ? used.rho / cap.rho : Infinity);

/** By how much one exceeds the other, in each currency. @type {OfTwo<Charge>} */
export const beyond = (one, other) => ({ epsilon: Math.max(0, one.epsilon - other.epsilon), rho: Math.max(0, one.rho - other.rho) });

/** @type {OfTwo<Charge>} */
export const sum = (a, b) => ({ epsilon: add(a.epsilon, b.epsilon), rho: add(a.rho, b.rho) });

/** @param {Charge} charge */
const isFree = ({ epsilon, rho }) => epsilon === 0 && rho === 0;

/** The line that may be added, or a refusal with the numbers. A key charged before costs nothing more. @type {AskToCharge} */
export function charge(lines, line, cap, since = "", advice = ["cap"]) {
  const before = lines.get(line.key), already = spent(lines.values(), since);
  if (before) return before;
  if (isFree(line) || within(sum(already, line), cap)) return { ...line, day: notBefore(lines, line.day) };
  throw refusal(line, beyond(cap, already), advice);
}

/** A clock that was set back must not put a spend into a year that is over. @type {NotBefore} */
const notBefore = (lines, day) => [...lines.values()].reduce((latest, line) => (line.day > latest ? line.day : latest), day);

/** With the names of what would help. @type {RefuseCharge} */
export const refusal = (cost, left, advice) =>
  new Refusal("ledger.refused", { needed: cost.epsilon, left: left.epsilon, neededRho: cost.rho, leftRho: left.rho, advice });

/** A line for what was spent elsewhere and is not yet in these, even past the cap: it has been spent. @type {CarryOver} */
export function carryOver(lines, elsewhere, day) {
  const kind = "carried-over", missing = beyond(elsewhere, spent(lines.values()));
  if (isFree(missing)) return null;
  // Drawn: a number could be another line's key, here or on another device.
  const key = `${kind} ${hexadecimal(systemBytes.take(16))}`;
  return { key, kind, name: "", level: "", reports: 0, ...missing, day: notBefore(lines, day) };
}

/** For another device, with whatever else must travel, sealed against slips of copying. @type {ExportLedger} */
export function exportLedger(lines, more = {}) {
  const content = { ...more, format: FORMAT, lines: [...lines] };
  return JSON.stringify({ ...content, sha256: sha256Of(content) });
}

/** Refuses what was changed or is not understood. @param {string} text */
export function importLedger(text) {
  const { sha256, ...content } = parsed(text);
  refuseUnless(content.format === FORMAT && Array.isArray(content.lines), "ledger.format");
  refuseUnless(sha256Of(content) === sha256, "ledger.hash");
  refuseUnless(content.lines.every(isLine), "ledger.format");
  return content;
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
  return isFree(more) ? null : { ...other, key, ...more };
}

/** @param {any} line */
function isLine(line) {
  const { epsilon, rho, reports, key, kind, name, level, day } = line ?? {};
  return [epsilon, rho, reports].every((n) => Number.isSafeInteger(n) && n >= 0) &&
    [key, kind, name, level, day].every((text) => typeof text === "string");
}

/** @param {string} text */
function parsed(text) {
  try {
    return Object(JSON.parse(text));
  } catch {
    return {}; // its format then says that it is no ledger
  }
}
