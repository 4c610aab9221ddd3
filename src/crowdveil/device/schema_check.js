/**
 * Every field of a study is of its kind before anything is read from it: a `1` that one line takes for "yes" and
 * another for "no" could promise a protection that nobody draws. The same list as `crowdveil/client/schema_check.py`.
 */
import { refuseUnless } from "./refusal.js";

/** The broker allows no more; each box doubles the answers. */
const MOST_BOXES = 6;

/** @type {Must} */
const must = (holds) => (value, place) => refuseUnless(holds(value), "study.field", { got: place });

/** @type {ListOf} */
const list = (each, most = Infinity) => (value, place) => {
  must(() => Array.isArray(value) && value.length <= most)(value, place);
  for (const part of value) each(part, place);
};

/** @type {ObjectOf} */
const object = (fields) => (value, place) => {
  must(() => typeof value === "object" && value !== null && !Array.isArray(value))(value, place);
  for (const [name, kind] of Object.entries(fields)) kind(value[name], place ? `${place}.${name}` : name);
};

/** @type {OrNull} */
const orNull = (kind) => (value, place) => { if (value !== null) kind(value, place); };

const text = must((value) => typeof value === "string"), flag = must((value) => typeof value === "boolean");
const count = must((value) => Number.isSafeInteger(value) && value >= 0), some = must((value) => Number.isSafeInteger(value) && value > 0);

/** @type {Record<string, Kind>} */
const DOMAINS = {
  choices: object({ options: list(text) }), scale: object({ low: text, high: text, step: text }),
  "tick-all": object({ boxes: list(text, MOST_BOXES) }),
};

/** One of an unknown type is refused by that, later. @type {Kind} */
const domain = (value, place) => {
  object({ type: text })(value, place);
  DOMAINS[value.type]?.(value, place);
};

/** @type {Kind} */
export const checkFields = object({
  title: text, purpose: text, requester: text, consent: object({ version: count, text }),
  protects_participation: flag, linkable: flag, partial_pay: flag, max_answers: orNull(some),
  questions: list(object({ id: text, text, domain, show_if: orNull(object({ question: text, any_of: list(text) })) })),
  levels: list(object({
    name: text, protected: flag, pay_cents: count, channels: object({}),
    charge: orNull(object({ epsilon_nano: count, rho_nano: count, reports: count })),
  })),
  channels: object({}),
});
