/**
 * Everything the device refuses to do, each with a key that the page turns into a sentence and the numbers it needs.
 */
export class Refusal extends Error {
  /**
   * @param {string} key  names a sentence of the catalogue, for example "channel.hash"
   * @param {Record<string, any>} [values]  what the sentence fills in
   */
  constructor(key, values = {}) {
    super(`${key} ${JSON.stringify(values)}`);
    this.name = "Refusal";
    this.key = key;
    this.values = values;
  }
}

/** @param {boolean} holds @param {string} key @param {Record<string, any>} [values] */
export function refuseUnless(holds, key, values) {
  if (!holds) throw new Refusal(key, values);
}
