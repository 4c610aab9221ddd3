/**
 * Draws wait here until they are sent. A draw is charged, made and stored in one transaction, before anybody sees it;
 * what was drawn once is what is shown, sent and sent again. There is no second draw.
 */
import { sha256 } from "./sha256.js";
import { charge } from "./ledger.js";
import { draw, systemBytes } from "./sampler.js";
import { cellsOf, chargeOf } from "./study.js";
import { Refusal } from "./refusal.js";
/** @import { ByteSource, Cell, Charge, Entry, Level, Line, Store, Study } from "./types.js" */

/**
 * Charge, draw and store; or return what was drawn before.
 * @param {Store} store
 * @param {Study} study
 * @param {Level} level
 * @param {Map<string, string>} answers
 * @param {{cap: Charge, day: string, since?: string, source?: ByteSource}} setting
 * @returns {Promise<Entry>}
 */
export function commit(store, study, level, answers, { cap, day, since, source = systemBytes }) {
  const cells = cellsOf(study, level, answers);
  if (cells.length === 0) throw new Refusal("study.nothing");
  return store.update((rows) => {
    const drawn = rows.outbox.get(study.id);
    if (drawn) return { result: drawn };
    if (rows.ledger.has(study.id)) throw new Refusal("study.drawn");
    const line = charge(rows.ledger, lineOf(study, level, cells, day), cap, since);
    const entry = drawEntry(study, level, answers, cells, day, source);
    return {
      result: entry,
      writes: [
        { table: "ledger", key: line.key, value: line },
        { table: "outbox", key: study.id, value: entry },
        { table: "drafts", key: study.id },
      ],
    };
  });
}

/** What answering would add to the ledger. @param {Study} study @param {Level} level @param {Cell[]} cells @param {string} day @returns {Line} */
function lineOf(study, level, cells, day) {
  const cost = level.protected ? chargeOf(cells.map((cell) => cell.channel), study) : { epsilon: 0, rho: 0 };
  return {
    key: study.id, kind: level.protected ? "study" : "unprotected", name: study.definition.title, level: level.name,
    reports: cells.length, ...cost, day,
  };
}

/**
 * @param {Study} study @param {Level} level @param {Map<string, string>} answers
 * @param {Cell[]} cells @param {string} day @param {ByteSource} source @returns {Entry}
 */
function drawEntry(study, level, answers, cells, day, source) {
  const withdrawal = systemBytes.take(32);
  const reports = cells.map(({ question, channel, answer }) => ({
    question, channel: channel.sha256, report: draw(channel, [answer], source)[0],
  }));
  return {
    study: study.id, title: study.definition.title, level: level.name, state: "drawn", day, receipt: null,
    idempotencyKey: hexadecimal(systemBytes.take(16)),
    withdrawalKey: hexadecimal(withdrawal),
    answers: Object.fromEntries(answers),
    body: {
      study_sha256: study.sha256, level: level.name, consent_version: study.definition.consent.version,
      withdrawal_sha256: sha256(withdrawal), reports,
    },
  };
}

/**
 * Send what waits. Only an answer of the broker changes the state; without one (offline) everything stays as it is.
 * @param {Store} store
 * @param {(entry: Entry) => Promise<{receipt: any} | {refused: string}>} send
 * @returns {Promise<Entry[]>} what got an answer now
 */
export async function flush(store, send) {
  const waiting = await store.update(({ outbox }) => ({
    result: [...outbox.values()].filter((entry) => entry.state === "waiting"),
  }));
  const answered = /** @type {Entry[]} */ ([]);
  for (const entry of waiting) {
    const answer = await send(entry);
    const state = "receipt" in answer ? "sent" : "refused";
    const receipt = "receipt" in answer ? answer.receipt : { refused: answer.refused };
    answered.push(await setEntry(store, entry.study, { state, receipt }));
  }
  return answered;
}

/** @param {Store} store @param {string} study @param {Partial<Entry>} changed @returns {Promise<Entry>} */
export function setEntry(store, study, changed) {
  return store.update(({ outbox }) => {
    const entry = { ...outbox.get(study), ...changed };
    return { result: entry, writes: [{ table: "outbox", key: study, value: entry }] };
  });
}

/** @param {Uint8Array} bytes */
export function hexadecimal(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
