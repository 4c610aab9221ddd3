/**
 * A text from another device, and what it may change here. Anybody can write such a text, so it is shown before it is
 * taken over, and never lowers protection: lines are only added, the level only rises, the cap only falls, and a draw
 * comes along only within one account and is sent only when the worker says so here.
 */
import { importLedger, merge, spent } from "./ledger.js";
import { refuseUnless } from "./refusal.js";

const LEVELS = ["none", "low", "medium", "high"];
const STATES = ["drawn", "waiting", "sent", "refused", "unknown", "withdrawn", "absent"];
const UNSENT = ["drawn", "waiting"];

/** The checked content of a text; whatever is not known is left out. @type {ReadMoved} */
export function readMoved(text) {
  const { lines, me, outbox = [] } = importLedger(text);
  refuseUnless((!me || isMe(me)) && Array.isArray(outbox) && outbox.every(isEntry), "ledger.format");
  const { level, cap, period, token, renewAfter, brokerKey } = me ?? {};
  return { lines, entries: outbox.map(knownEntry), me: me && { level, cap, period, token, renewAfter, brokerKey } };
}

/** @param {any} me */
function isMe({ level, cap, period, token, renewAfter, brokerKey }) {
  const texts = [period, token, renewAfter, brokerKey].filter((each) => each !== undefined);
  return LEVELS.includes(level) && Number.isSafeInteger(cap) && cap >= 0 && texts.every(isText);
}

/** @param {unknown} value */
const isText = (value) => typeof value === "string";

/** @param {any} entry */
function isEntry(entry) {
  const { study, title, level, state, body, idempotencyKey, withdrawalKey, day, receipt } = entry ?? {};
  const { study_sha256: hash, withdrawal_sha256: withdrawal, reports } = body ?? {};
  return [study, title, level, idempotencyKey, withdrawalKey, day, hash, withdrawal].every(isText) && body.level === level &&
    STATES.includes(state) && (state !== "sent" || Object(receipt) === receipt) && Array.isArray(reports) && reports.every((each) => isText(each?.question) && isText(each?.channel));
}

/** Only what this app writes itself: the body is sent as it stands here. @type {KnownEntry} */
function knownEntry({ study, title, level, state, body, idempotencyKey, withdrawalKey, receipt, tried, genuine, day }) {
  const { study_sha256, consent_version, withdrawal_sha256 } = body;
  const reports = body.reports.map(({ question, channel, report }) => ({ question, channel, report }));
  return {
    study, title, level, state, idempotencyKey, withdrawalKey, receipt: receipt ?? null, tried: tried === true,
    genuine: genuine ?? null, day, answers: {}, body: { study_sha256, level, consent_version, withdrawal_sha256, reports },
  };
}

/** @type {PlanTakeover} */
export function planTakeover({ ledger, outbox, settings }, { lines, entries, me: other }, isGone) {
  const more = merge(ledger, lines, drawsOf(outbox.values()), drawsOf(entries)), mine = settings.get("me");
  const account = mine?.token && !(isGone && other?.token) ? mine : other, token = account?.token;
  // Who knows the key to the account is the worker; nobody else's draw is sent with it.
  const isSame = token !== undefined && token === other?.token;
  const absent = entries.filter((entry) => !outbox.has(entry.study));
  const taken = absent.filter((entry) => isSame || !UNSENT.includes(entry.state)).map((entry) => ({ ...waitForWorker(entry), imported: true }));
  const me = other && {
    level: stricter(mine?.level, other.level), cap: Math.min(mine?.cap ?? Infinity, other.cap), period: mine?.period ?? other.period,
    token, renewAfter: account?.renewAfter, brokerKey: mine?.brokerKey ?? other.brokerKey,
  };
  return {
    n: more.length, epsilon: spent(more).epsilon, draws: taken.length, foreign: absent.length - taken.length,
    before: mine, after: me ?? mine, accountLeft: other?.token !== undefined && !isSame,
    writes: [
      ...more.map((value) => ({ table: /** @type {const} */ ("ledger"), key: value.key, value })),
      ...taken.map((value) => ({ table: /** @type {const} */ ("outbox"), key: value.study, value })),
    ],
    me,
  };
}

/** @type {Stricter} */
const stricter = (mine, other) => (mine && LEVELS.indexOf(mine) > LEVELS.indexOf(other) ? mine : other);

/** What was about to be sent is sent only after another "Send". @type {WaitForWorker} */
export const waitForWorker = (entry) => (entry.state === "waiting" ? { ...entry, state: entry.tried ? "unknown" : "drawn" } : entry);

/** @type {DrawsOf} */
const drawsOf = (entries) => new Map([...entries].map((entry) => [entry.study, entry.idempotencyKey]));
