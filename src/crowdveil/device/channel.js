/**
 * The channel on the device: the public table P(report | answer) as integers, checked before it is used by the same
 * rules as `crowdveil.channel` in Python: what one refuses the other refuses.
 */
import { canonicalText, sha256Of } from "./canonical.js";
import { epsilonOf, rhoOf } from "./divergence.js";
import { count, unfold } from "./channel_encoding.js";
import { refuseUnless } from "./refusal.js";

const MAX_TABLE_INPUTS = 64;
const MAX_OUTPUTS = 4096;
const FIELDS = ["bits,format,inputs,outputs,sampler,weights", "bits,format,inputs,kind,outputs,sampler"];

/** Anything tampered with, not normalised or not understood is refused. @param {any} data */
export function readChannel(data) {
  refuseUnless(data?.format === "crowdveil-channel/1", "channel.format");
  const { sha256, ...fields } = data, { inputs, outputs, bits } = fields;
  refuseUnless(hashOrNothing(fields) === sha256, "channel.hash");
  refuseUnless(FIELDS.includes(Object.keys(fields).sort().join()), "channel.fields");
  checkShape(fields);
  const table = fields.sampler === "rotate" ? readRotation(fields) : readTable(fields);
  const protectsParticipation = inputs.at(-1) === null, nLevels = inputs.length - Number(protectsParticipation);
  /** @type {Channel} */
  const channel = { inputs, outputs, bits, ...table, protectsParticipation, nLevels, epsilon: Infinity, sha256 };
  if (channel.rotation?.lie !== 0n) channel.epsilon = epsilonOf(worstRows(channel));
  return Object.freeze(channel);
}

/** The zero-concentrated loss ρ of one report, rounded up. @param {Channel} channel */
export const rho = (channel) => (channel.epsilon === Infinity ? Infinity : rhoOf(worstRows(channel)));

/** All rows, or two where all pairs are alike. @param {Channel} channel */
function worstRows({ rotation, inputs, weights }) {
  if (!rotation) return weights;
  // Outputs that are equally likely under both rows may be counted as one.
  const { keep, lie } = rotation, rest = BigInt(inputs.length - 2) * lie;
  return [[keep, lie, rest], [lie, keep, rest]];
}

/** P(report | answer), to be shown, never for drawing. @type {Probability} */
export function probability({ rotation, weights, bits }, input, output) {
  const weight = rotation ? (input === output ? rotation.keep : rotation.lie) : (weights[input]?.[output] ?? 0n);
  return Number(weight) / 2 ** bits;
}

/** @param {any} fields */
function checkShape({ inputs, outputs, bits, sampler }) {
  refuseUnless(areSymbols(inputs) && areSymbols(outputs), "channel.symbols");
  refuseUnless([32, 64].includes(bits) && ["rotate", "prefix"].includes(sampler), "channel.sampler");
  refuseUnless(sampler === "rotate" || outputs.length <= MAX_OUTPUTS, "channel.shape");
  refuseUnless(sampler === "prefix" || canonicalText(inputs) === canonicalText(outputs), "channel.symbols");
}

/** Different texts or lists of texts; ∅ only at the end. @param {any} symbols */
function areSymbols(symbols) {
  return Array.isArray(symbols) && symbols.length > 0 &&
    symbols.every((symbol) => [symbol].flat().every((part) => part === null || typeof part === "string")) &&
    new Set(symbols.map(canonicalText)).size === symbols.length && !symbols.slice(0, -1).includes(null);
}

/** @param {any} fields */
function readRotation({ inputs, bits, weights, kind }) {
  const { length } = inputs;
  refuseUnless((length > MAX_TABLE_INPUTS) === (weights === undefined), "channel.canonical");
  const { keep, lie } = weights === undefined ? compactRotation(kind) : diagonal(readWeights(weights, length, length));
  const sums = keep + BigInt(length - 1) * lie === 1n << BigInt(bits);
  refuseUnless(sums && keep >= lie && keep < 1n << 64n, "channel.sum");
  return { rotation: { keep, lie }, weights: [] };
}

/** @param {any} kind */
function compactRotation(kind) {
  refuseUnless(kind?.name === "rotate" && Object.keys(kind).length === 3, "channel.kind");
  return { keep: count(kind.keep), lie: count(kind.lie) };
}

/** Randomised response has one weight on the diagonal and one elsewhere. @param {bigint[][]} rows */
function diagonal(rows) {
  const keep = rows[0]?.[0] ?? 0n, lie = rows[0]?.[1] ?? 0n;
  refuseUnless(rows.every((row, x) => row.every((weight, y) => weight === (x === y ? keep : lie))), "channel.rotation");
  return { keep, lie };
}

/** @param {any} fields */
function readTable({ inputs, outputs, bits, weights: spelled, kind }) {
  refuseUnless(spelled !== undefined || inputs.length > MAX_TABLE_INPUTS, "channel.canonical");
  const shape = { inputs: inputs.length, outputs: outputs.length, bits };
  const weights = spelled === undefined ? unfold(kind, shape) : readWeights(spelled, shape.inputs, shape.outputs);
  // As in Python a weight has 64 bits, so no report is certain in a table of 64.
  const sums = weights.every((row) => row.reduce((a, b) => a + b) === 1n << BigInt(bits) && !row.includes(1n << 64n));
  refuseUnless(sums, "channel.sum");
  return { rotation: null, weights };
}

/** @type {ReadWeights} */
function readWeights(spelled, nInputs, nOutputs) {
  const fits = Array.isArray(spelled) && spelled.every((row) => Array.isArray(row) && row.length === nOutputs);
  refuseUnless(fits && spelled.length === nInputs, "channel.shape");
  return spelled.map((row) => row.map(count));
}

/** @param {object} fields */
function hashOrNothing(fields) {
  try {
    return sha256Of(fields);
  } catch {
    return null;
  }
}
