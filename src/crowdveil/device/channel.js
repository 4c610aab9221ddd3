/**
 * The channel on the device: the public table P(report | answer) as integers, checked before it is used.
 * Reads the wire form `crowdveil-channel/1` by the same rules as `crowdveil.channel` in Python: what one refuses the
 * other refuses.
 */
import { canonicalText, sha256Of } from "./canonical.js";
import { epsilonOf, rhoOf } from "./divergence.js";
import { count, unfold } from "./forms.js";
import { Refusal } from "./refusal.js";
/** @import { Channel, Shape } from "./types.js" */

export const FORMAT = "crowdveil-channel/1";
const MAX_TABLE_INPUTS = 64;
const MAX_OUTPUTS = 4096;
const FIELDS = ["bits,format,inputs,outputs,sampler,weights", "bits,format,inputs,kind,outputs,sampler"];

/** Anything tampered with, not normalised or not understood is refused. @param {any} data @returns {Channel} */
export function readChannel(data) {
  if (data === null || typeof data !== "object" || data.format !== FORMAT) throw new Refusal("channel.format");
  const { sha256, ...fields } = data;
  if (hashOrNothing(fields) !== sha256) throw new Refusal("channel.hash");
  const names = Object.keys(fields).sort().join();
  if (!FIELDS.includes(names)) throw new Refusal("channel.fields", { got: names });
  checkShape(fields);
  const table = fields.sampler === "rotate" ? readRotation(fields) : readTable(fields);
  const protectsParticipation = fields.inputs.at(-1) === null;
  const channel = {
    inputs: fields.inputs,
    outputs: fields.outputs,
    bits: fields.bits,
    ...table,
    protectsParticipation,
    nLevels: fields.inputs.length - (protectsParticipation ? 1 : 0),
    epsilon: Infinity,
    sha256,
  };
  if (channel.rotation?.lie !== 0n) channel.epsilon = epsilonOf(worstRows(channel));
  return Object.freeze(channel);
}

/** The zero-concentrated loss ρ of one report, rounded up. @param {Channel} channel */
export function rho(channel) {
  return channel.epsilon === Infinity ? Infinity : rhoOf(worstRows(channel));
}

/** All rows, or two where all pairs are alike. @param {Pick<Channel, "rotation" | "inputs" | "weights">} channel */
function worstRows({ rotation, inputs, weights }) {
  if (!rotation) return weights;
  const { keep, lie } = rotation;
  // Outputs that are equally likely under both rows may be counted as one.
  const rest = BigInt(inputs.length - 2) * lie;
  return [[keep, lie, rest], [lie, keep, rest]];
}

/** P(report | answer), to be shown, never for drawing. @param {Channel} channel @param {number} input @param {number} output */
export function probability(channel, input, output) {
  const { rotation, weights, bits } = channel;
  const weight = rotation ? (input === output ? rotation.keep : rotation.lie) : (weights[input]?.[output] ?? 0n);
  return Number(weight) / 2 ** bits;
}

/** @param {any} fields */
function checkShape({ inputs, outputs, bits, sampler }) {
  checkSymbols(inputs);
  checkSymbols(outputs);
  if (![32, 64].includes(bits) || !["rotate", "prefix"].includes(sampler)) throw new Refusal("channel.sampler");
  if (sampler === "prefix" && outputs.length > MAX_OUTPUTS) throw new Refusal("channel.shape");
  if (sampler === "rotate" && canonicalText(inputs) !== canonicalText(outputs)) throw new Refusal("channel.symbols");
}

/** @param {unknown} symbols */
function checkSymbols(symbols) {
  if (!Array.isArray(symbols) || symbols.length === 0) throw new Refusal("channel.symbols");
  const isText = (/** @type {unknown} */ part) => part === null || typeof part === "string";
  if (!symbols.every((symbol) => (Array.isArray(symbol) ? symbol.every(isText) : isText(symbol)))) {
    throw new Refusal("channel.symbols");
  }
  if (new Set(symbols.map(canonicalText)).size !== symbols.length) throw new Refusal("channel.symbols");
  if (symbols.slice(0, -1).includes(null)) throw new Refusal("channel.symbols");
}

/** @param {any} fields */
function readRotation({ inputs, bits, weights, kind }) {
  const compact = inputs.length > MAX_TABLE_INPUTS;
  if (compact !== (weights === undefined)) throw new Refusal("channel.canonical");
  const rotation = compact ? compactRotation(kind) : diagonal(readWeights(weights, inputs.length, inputs.length));
  const total = rotation.keep + BigInt(inputs.length - 1) * rotation.lie;
  if (total !== 1n << BigInt(bits) || rotation.keep < rotation.lie || rotation.keep >> 64n) {
    throw new Refusal("channel.sum", { row: 1 });
  }
  return { rotation, weights: [] };
}

/** @param {any} kind */
function compactRotation(kind) {
  if (kind?.name !== "rotate" || Object.keys(kind).length !== 3) throw new Refusal("channel.kind", { got: String(kind?.name) });
  return { keep: count(kind.keep), lie: count(kind.lie) };
}

/** One weight on the diagonal and one elsewhere, or it is not randomised response. @param {bigint[][]} rows */
function diagonal(rows) {
  const keep = rows[0]?.[0] ?? 0n, lie = rows[0]?.[1] ?? 0n;
  if (rows.some((row, x) => row.some((weight, y) => weight !== (x === y ? keep : lie)))) {
    throw new Refusal("channel.rotation");
  }
  return { keep, lie };
}

/** @param {any} fields */
function readTable({ inputs, outputs, bits, weights: spelled, kind }) {
  if (spelled === undefined && inputs.length <= MAX_TABLE_INPUTS) throw new Refusal("channel.canonical");
  const shape = { inputs: inputs.length, outputs: outputs.length, bits };
  const weights = spelled === undefined ? unfoldExactly(kind, shape) : readWeights(spelled, shape.inputs, shape.outputs);
  weights.forEach((row, x) => {
    if (row.reduce((a, b) => a + b) !== 1n << BigInt(bits)) throw new Refusal("channel.sum", { row: x + 1 });
  });
  return { rotation: null, weights };
}

/** @param {any} kind @param {Shape} shape */
function unfoldExactly(kind, shape) {
  if (kind === null || typeof kind !== "object" || Object.keys(kind).length !== 4) throw new Refusal("channel.kind", { got: "" });
  return unfold(kind, shape);
}

/** @param {any} spelled @param {number} nInputs @param {number} nOutputs */
function readWeights(spelled, nInputs, nOutputs) {
  const fits = Array.isArray(spelled) && spelled.length === nInputs &&
    spelled.every((row) => Array.isArray(row) && row.length === nOutputs);
  if (!fits) throw new Refusal("channel.shape");
  return spelled.map((/** @type {unknown[]} */ row) => row.map(count));
}

/** @param {object} fields */
function hashOrNothing(fields) {
  try {
    return sha256Of(fields);
  } catch {
    return null;
  }
}
