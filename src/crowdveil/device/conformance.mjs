/**
 * The device's sampler as a filter, for audits: reads {channel, answers, bytes (hexadecimal)} or a list of those as
 * JSON and prints {reports, epsilon, sha256} or {refused} for each; with "rho": true also ρ, which takes a search.
 *
 *     node conformance.mjs < vectors.json
 */
import { readFileSync } from "node:fs";
import { readChannel, rho } from "./channel.js";
import { Refusal } from "./refusal.js";
import { draw } from "./sampler.js";

const given = JSON.parse(readFileSync(0, "utf8"));
const results = Array.isArray(given) ? given.map(run) : run(given);
process.stdout.write(`${JSON.stringify(results)}\n`);

function run({ channel: wire, answers = [], bytes = "", rho: wanted = false }) {
  try {
    const channel = readChannel(wire);
    const reports = draw(channel, answers, fixedBytes(bytes));
    const losses = { epsilon: number(channel.epsilon), ...(wanted && { rho: number(rho(channel)) }) };
    return { reports, ...losses, sha256: channel.sha256 };
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.key };
    throw error;
  }
}

function fixedBytes(hexadecimal) {
  let data = Uint8Array.from(hexadecimal.match(/../g) ?? [], (pair) => parseInt(pair, 16));
  return {
    take(nBytes) {
      if (nBytes > data.length) throw new Refusal("bytes.short", { needed: nBytes, got: data.length });
      const taken = data.slice(0, nBytes);
      data = data.slice(nBytes);
      return taken;
    },
  };
}

function number(value) {
  return Number.isFinite(value) ? value : "inf";
}
