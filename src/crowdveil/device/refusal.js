/** Everything the device refuses to do, each with a key that names a sentence of the catalogue, and what it fills in. */
export class Refusal extends Error {
  /** @param {string} key @param {Values} values */
  constructor(key, values = {}) {
    super(`${key} ${JSON.stringify(values)}`);
    this.name = "Refusal";
    this.key = key;
    this.values = values;
  }
}

/** @type {Refuse} */
export function refuseUnless(holds, key, values) {
  if (!holds) throw new Refusal(key, values);
}
