/**
 * The page's words: one catalogue a language, named with its hash in the entry page. Which language, the device
 * decides: everybody gets the same page.
 */
import { Offline, Problem, api } from "./api.js";
import { SATURATED } from "./nano.js";
import { Refusal } from "./refusal.js";

/** @type {Record<string, string>} */
let words = {};

/** The catalogues that the entry page offers. */
const catalogues = () => /** @type {HTMLLinkElement[]} */ ([...document.querySelectorAll("link[rel=alternate][hreflang]")]);

export const languages = () => catalogues().map((link) => link.hreflang);
export const language = () => document.documentElement.lang;

/** @param {string} [wanted]  what the worker chose, else the browser's own */
export async function setLanguage(wanted) {
  const asked = [wanted, ...navigator.languages, "en"].map((name) => (name ?? "").slice(0, 2));
  const found = asked.flatMap((name) => catalogues().filter((link) => link.hreflang === name))[0];
  if (!found) return;
  words = await api.words(found.href, found.integrity);
  document.documentElement.lang = found.hreflang;
}

/** A sentence with its values filled in; one that counts `n` things has a form for each plural. @param {string} key @param {Values} [values] */
export function t(key, values = {}) {
  const form = values.n === undefined ? key : `${key}.${new Intl.PluralRules(language()).select(values.n)}`;
  return (words[form] ?? words[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => String(values[name] ?? ""));
}

/** The sentence about something that is protected, or else its plain counterpart. @type {ProtectionText} */
export const protectionText = (isProtected, key, values) => t(`${isProtected ? "protected" : "unprotected"}.${key}`, values);

/** What went wrong, in words. @param {unknown} error */
export function errorText(error) {
  if (error instanceof Offline) return t("offline");
  if (error instanceof Refusal) return refusalText(error);
  if (error instanceof Problem) return problemText(error.code, error.message);
  return t("error", { detail: error instanceof Error ? error.message : String(error) });
}

/** @type {ProblemText} */
export const problemText = (code, detail) => words[`problem.${code}`] ?? detail;

/** @param {Refusal} refusal */
function refusalText({ key, values }) {
  const exact = `refusal.${key}`, { needed, left, neededRho, leftRho, advice = [] } = values;
  if (!(exact in words)) return t(`refusal.${key.split(".")[0]}`, { got: key });
  // The ledger counts in nano-units; people read ε.
  const amounts = { needed: shownUp(needed), left: shownDown(left), neededRho: shownUp(neededRho), leftRho: shownDown(leftRho) };
  const help = advice.map((/** @type {string} */ name) => t(`advice.${name}`));
  return [t(exact, needed === undefined ? values : amounts), ...help].join(" ");
}

/** @type {FormatNumber} */
const number = (value, how) => new Intl.NumberFormat(language(), how).format(value);

/** Nano-units as text, rounded up to four digits: a shown loss is never understated. @param {any} nano */
export const shownUp = (nano) => (nano >= SATURATED ? "∞" : number(Math.ceil(nano / 1e5) / 1e4, { maximumFractionDigits: 4 }));

/** Rounded down: what is left is never overstated. @param {any} nano */
export const shownDown = (nano) => number(Math.floor(nano / 1e5) / 1e4, { maximumFractionDigits: 4 });

/** Rounded up, too. @param {number} share */
export const percent = (share) => number(Math.max(0, Math.ceil(share * 100 - 1e-9)) / 100, { style: "percent" });

/** @param {number} cents */
export const money = (cents) => number(cents / 100, { minimumFractionDigits: 2 });

/** @param {string} day */
export const date = (day) => new Date(day).toLocaleDateString(language(), { dateStyle: "medium", timeZone: "UTC" });
