// Runs named checks of the device modules on the committed vectors and prints what they give; pytest compares.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonicalText, sha256Of } from "../../src/crowdveil/device/canonical.js";
import { readChannel } from "../../src/crowdveil/device/channel.js";
import { Refusal } from "../../src/crowdveil/device/refusal.js";
import { systemBytes } from "../../src/crowdveil/device/sampler.js";

globalThis.crypto ??= webcrypto; // browsers and Node 20 have it; Debian 12's Node 18 does not

const checks = {
  canonical: (values) => values.map((value) => outcome(() => ({ text: canonicalText(value), sha256: sha256Of(value) }))),
  refused: (channels) => channels.map((channel) => outcome(() => ({ sha256: readChannel(channel).sha256 }))),
  entropy: (sizes) => sizes.map((size) => {
    const bytes = systemBytes.take(size);
    return { length: bytes.length, distinct: new Set(bytes).size, tail: new Set(bytes.slice(-1000)).size };
  }),
};

function outcome(work) {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.key };
    throw error;
  }
}

const { check, given } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(checks[check](given)));
