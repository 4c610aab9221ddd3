// Runs named checks of the device modules on the committed vectors and prints what they give; pytest compares.
import { webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonicalText, sha256Of } from "../../src/crowdveil/device/canonical.js";
import { readChannel } from "../../src/crowdveil/device/channel.js";
import { Refusal } from "../../src/crowdveil/device/refusal.js";
import { capOf, carryOver, charge, exportLedger, importLedger, merge, spent } from "../../src/crowdveil/device/ledger.js";
import { nanoDown, nanoUp, rhoMax } from "../../src/crowdveil/device/nano.js";
import { commit, flush, setEntry } from "../../src/crowdveil/device/outbox.js";
import { systemBytes } from "../../src/crowdveil/device/sampler.js";
import { memoryStore } from "./memory.mjs";
import { readStudy, symbols, visible } from "../../src/crowdveil/device/study.js";
import { signed } from "../../src/crowdveil/device/signature.js";
import { Device } from "../../src/crowdveil/device/worker.js";

globalThis.crypto ??= webcrypto; // browsers and Node 20 have it; Debian 12's Node 18 does not

const checks = {
  canonical: (values) => values.map((value) => outcome(() => ({ text: canonicalText(value), sha256: sha256Of(value) }))),
  refused: (channels) => channels.map((channel) => outcome(() => ({ sha256: readChannel(channel).sha256 }))),
  entropy: (sizes) => sizes.map((size) => {
    const bytes = systemBytes.take(size);
    return { length: bytes.length, distinct: new Set(bytes).size, tail: new Set(bytes.slice(-1000)).size };
  }),
  rhoMax: (budgets) => budgets.map(([epsilon, delta]) => rhoMax(epsilon, delta)),
  nano: (amounts) => amounts.map((amount) => [nanoUp(amount), nanoDown(amount)]),
  symbols: (domains) => domains.map(symbols),
  cap: (caps) => caps.map(capOf),
  ledger: ({ cap, charges }) => {
    const lines = new Map();
    return charges.map((wanted, i) => outcome(() => {
      const line = charge(lines, { key: `k${i}`, kind: "study", name: "s", level: "low", reports: 1, day: "", ...wanted }, cap);
      lines.set(line.key, line);
      return { spent: spent(lines.values()), day: line.day };
    }));
  },
  studies: (answers) => answers.map((answer) => outcome(() => readStudy(answer, answer.log, answer.asked ?? "a".repeat(32)).sha256)),
  whyRefused: (answers) => Promise.all(answers.map((answer) => outcomeOf(() => readStudy(answer, answer.log, answer.definition.id).sha256))),
  visible: ({ study, answers }) => {
    const read = readStudy(study, study.log, study.definition.id);
    return answers.map((each) => visible(read, new Map(Object.entries(each))).map((question) => question.id));
  },
  commit: async ({ study, tries, elsewhere }) => {
    const store = memoryStore(), results = [];
    const read = readStudy(study, study.log, study.definition.id);
    if (elsewhere) await store.update(() => ({ writes: [{ table: "ledger", key: read.id, value: { epsilon: 1, rho: 1, day: "" } }] }));
    for (const { level, answers, cap } of tries) {
      results.push(await outcomeOf(() => commit(store, read, read.levels.find((each) => each.name === level),
        new Map(Object.entries(answers)), { cap, day: "2026-11-15" })));
    }
    const ledger = await store.update((rows) => ({ result: [...rows.ledger.values()] }));
    return { results, ledger };
  },
  flush: async ({ study, cap }) => {
    const store = memoryStore(), sent = [];
    const read = readStudy(study, study.log, study.definition.id);
    await commit(store, read, read.levels[0], new Map([["smoked", "yes"]]), { cap, day: "2026-11-15" });
    const unreleased = await flush(store, async () => { throw new Error("the worker has not said send"); });
    await setEntry(store, read.id, { state: "waiting" });
    const offline = await outcomeOf(() => flush(store, async (entry) => { sent.push(entry); throw new Refusal("offline"); }));
    const online = await flush(store, async (entry) => { sent.push(entry); return { state: "sent", receipt: { receipt: "r1" } }; });
    const after = await flush(store, async () => { throw new Error("nothing waits"); });
    return { sent, offline, online, after, unreleased };
  },
  move: (lines) => {
    const text = exportLedger(lines, { token: "t" });
    const own = new Map([[lines[0].key, { ...lines[0], epsilon: 1 }]]);
    const added = merge(own, importLedger(text).lines);
    added.forEach((line) => own.set(line.key, line));
    return {
      same: importLedger(text).lines, added, again: merge(own, importLedger(text).lines),
      broken: ["", "[]", "{}", text.replace('"t"', '"u"'), text.replace("ledger/1", "ledger/2")].map((bad) => outcome(() => importLedger(bad))),
    };
  },
  moveIn: async ({ mine, other }) => {
    const store = memoryStore();
    if (mine) await store.update(() => ({ writes: [{ table: "settings", key: "me", value: mine }] }));
    await new Device(store).moveIn(exportLedger([], { me: other }));
    return store.update((rows) => ({ result: rows.settings.get("me") }));
  },
  // What is in the outbox after taking over a draw with this state, from a device with this account.
  moveInDraw: async ({ study, mine, other, state }) => {
    const store = memoryStore(), elsewhere = memoryStore(), read = readStudy(study, study.log, study.definition.id);
    await commit(elsewhere, read, read.levels[0], new Map(), { cap: { epsilon: 10 ** 11, rho: 0 }, day: "2026-11-15" });
    await setEntry(elsewhere, read.id, { state, receipt: state === "sent" ? { receipt: "r" } : null });
    await elsewhere.update(() => ({ writes: [{ table: "settings", key: "me", value: other }] }));
    await store.update(() => ({ writes: [{ table: "settings", key: "me", value: mine }] }));
    await new Device(store).moveIn(await new Device(elsewhere).moveOut());
    return store.update((rows) => ({ result: { states: [...rows.outbox.values()].map((entry) => entry.state), lines: rows.ledger.size } }));
  },
  moveInRefused: ({ other }) => outcomeOf(() => new Device(memoryStore()).moveIn(exportLedger([], { me: other }))),
  // Devices that draw and import by turns: ["draw", device, study] or ["import", device, from].
  devices: async ({ study, steps }) => {
    const known = {}, store = (name) => (known[name] ??= memoryStore());
    const read = readStudy(study, study.log, study.definition.id), cap = { epsilon: 10 ** 11, rho: 0 };
    for (const [step, name, other] of steps) {
      if (step === "import") await new Device(store(name)).moveIn(await new Device(store(other)).moveOut());
      else await commit(store(name), { ...read, id: other }, read.levels[0], new Map(), { cap, day: "2026-11-15" });
      await store(name).update(() => ({ writes: [{ table: "settings", key: "me", value: { level: "low", cap: 10 ** 11, period: "life" } }] }));
    }
    const spentOf = ({ lines }) => spent(lines.values()).epsilon;
    return Object.fromEntries(await Promise.all(Object.keys(known).map(async (name) => [name, spentOf(await new Device(store(name)).load())])));
  },
  signed: (cases) => Promise.all(cases.map(({ value, signature, key }) => signed(value, signature, key))),
  carryOver: ({ lines, elsewhere }) => {
    const own = new Map(lines.map((line) => [line.key, line]));
    const first = carryOver(own, elsewhere, "d");
    own.set(first.key, first);
    return { first, second: carryOver(own, elsewhere, "d"), spent: spent(own.values()) };
  },
};

async function outcomeOf(work) {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.key, ...error.values };
    throw error;
  }
}

function outcome(work) {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return { refused: error.key };
    throw error;
  }
}

const { check, given } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(await checks[check](given)));
