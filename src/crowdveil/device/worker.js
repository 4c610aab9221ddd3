/**
 * What a worker does, step by step, without any page: join, open a study, accept, protect, send, move, leave.
 */
import { Offline, Problem, api } from "./api.js";
import { capOf, carryOver, exportLedger, importLedger, left, merge, spent } from "./ledger.js";
import { commit, flush, setEntry } from "./outbox.js";
import { Refusal } from "./refusal.js";
import { checkEntry, readStudy } from "./study.js";
/** @import { Entry, LogEntry, Me, State, Store, Study, Table, Write } from "./types.js" */

export const today = () => new Date().toISOString().slice(0, 10);

/** Everything the device knows. @param {Store} store @returns {Promise<State>} */
export function load(store) {
  return store.update(({ settings, ledger, outbox, drafts }) => ({
    result: { me: settings.get("me"), lines: ledger, outbox, drafts },
  }));
}

/** Where the worker stands; `share` is of the ceiling that has more room. @param {State} state */
export function budget({ me, lines }) {
  const cap = capOf(me?.cap ?? 0), used = spent(lines.values(), since(me));
  const share = Math.min(used.epsilon / cap.epsilon, cap.rho ? used.rho / cap.rho : Infinity);
  return { cap, used, left: left(used, cap), share: Math.min(share, 1) };
}

/** A cap for each year forgets what earlier years spent; the page says what that means. @param {Me | undefined} me */
function since(me) {
  return me?.period === "year" ? `${today().slice(0, 4)}-01-01` : "";
}

/** @param {Store} store @param {Partial<Me>} changed */
export async function saveMe(store, changed) {
  const { me, earlier } = await store.update(({ settings, ledger }) => {
    const value = { ...settings.get("me"), ...changed };
    const all = spent(ledger.values()).epsilon - spent(ledger.values(), since(value)).epsilon;
    return { result: { me: value, earlier: all }, writes: [{ table: "settings", key: "me", value }] };
  });
  // The broker's guard never forgets, so it is told the cap on top of what earlier periods spent.
  if (me.token && (changed.cap || changed.level || changed.period)) {
    await api.change(me.token, { default_level: me.level, epsilon_cap_nano: me.cap + earlier });
  }
  return me;
}

/** Joins first where there is no token or the broker does not know it. @template T @param {Store} store @param {(token: string) => Promise<T>} call @returns {Promise<T>} */
async function withToken(store, call) {
  const { me } = await load(store);
  if (!me) throw new Error("start first");
  try {
    if (me.token) return await call(me.token);
  } catch (error) {
    if (!(error instanceof Problem && error.status === 401)) throw error;
  }
  const { token } = await api.join(me.level, me.cap);
  await saveMe(store, { token });
  return call(token);
}

/** The studies on offer; the last list seen when offline. @param {Store} store */
export async function listStudies(store) {
  const { me } = await load(store);
  const fresh = () => (me?.token ? api.myStudies(me.token).catch(orElse(401, api.studies)) : api.studies());
  return remembered(store, "studies", async () => (await fresh()).items);
}

/** A checked study, and what the broker says around it. @param {Store} store @param {string} id @returns {Promise<{study: Study, warnings: string[]}>} */
export async function openStudy(store, id) {
  const answer = await remembered(store, `study ${id}`, async () => {
    const fresh = await api.study(id);
    await followLog(store, fresh.log);
    return fresh;
  });
  return { study: readStudy(answer, answer.log, id), warnings: answer.warnings ?? [] };
}

/**
 * The public log only grows: every entry seen once must still be there, and each must name the one before.
 * @param {Store} store @param {LogEntry} wanted
 */
async function followLog(store, wanted) {
  const seen = await store.update(({ settings }) => ({ result: /** @type {string[]} */ (settings.get("log") ?? []) }));
  for (let more = true; more;) {
    const { items, next } = await api.log(seen.length, 100);
    for (const entry of items) {
      checkEntry(entry, seen.at(-1) ?? "0".repeat(64));
      if (entry.index !== seen.length + 1) throw new Refusal("study.log");
      seen.push(entry.entry);
    }
    more = items.length > 0 && next !== null;
  }
  if (seen[wanted?.index - 1] !== wanted?.entry) throw new Refusal(wanted?.index <= seen.length ? "study.rewritten" : "study.log");
  await put(store, "settings", "log", seen);
}

/** Fetched and kept, or what was kept when there is no answer. @param {Store} store @param {string} key @param {() => Promise<any>} fresh */
async function remembered(store, key, fresh) {
  try {
    const value = await fresh();
    await put(store, "settings", key, value);
    return value;
  } catch (error) {
    const kept = await store.update(({ settings }) => ({ result: settings.get(key) }));
    if (!(error instanceof Refusal) && kept !== undefined) return kept;
    throw error;
  }
}

/** Hold a place at this level and begin a draft. @param {Store} store @param {Study} study @param {string} level */
export async function accept(store, study, level) {
  const held = await withToken(store, (token) => api.reserve(token, study.id, level, study.sha256)).catch(orElseOffline({ expires: "" }));
  const draft = { level, expires: held.expires, answers: {} };
  await put(store, "drafts", study.id, draft);
}

/** Back to the offer. @param {Store} store @param {string} id */
export const giveUp = (store, id) => put(store, "drafts", id, undefined);

/** @param {Store} store @param {string} id @param {Map<string, string>} answers */
export function keepAnswers(store, id, answers) {
  return store.update(({ drafts }) => {
    const draft = drafts.get(id);
    const value = { ...draft, answers: Object.fromEntries(answers) };
    return { result: null, writes: draft ? [{ table: "drafts", key: id, value }] : [] };
  });
}

/** Charge, draw, store. @param {Store} store @param {Study} study @param {string} levelName @param {Map<string, string>} answers */
export async function protect(store, study, levelName, answers) {
  const { me } = await load(store);
  const level = study.levels.find((each) => each.name === levelName);
  if (!me || !level) throw new Refusal("study.level", { got: levelName });
  return commit(store, study, level, answers, { cap: capOf(me.cap), day: today(), since: since(me) });
}

/** Send this draw, now or as soon as there is a network. @param {Store} store @param {string} id */
export async function release(store, id) {
  await setEntry(store, id, { state: "waiting" });
  return sendAll(store);
}

/** The broker's final "no" is kept; no answer is tried again later. @param {Store} store */
export function sendAll(store) {
  return flush(store, async (entry) => {
    try {
      return { receipt: await withToken(store, (token) => api.submit(token, entry)) };
    } catch (error) {
      if (error instanceof Problem && error.status < 500 && error.status !== 429) return { refused: error.message };
      throw error;
    }
  });
}

/** @param {Store} store @param {Entry} entry */
export async function withdraw(store, entry) {
  await api.withdraw(entry.study, entry.withdrawalKey);
  return setEntry(store, entry.study, { state: "withdrawn" });
}

/** @param {Store} store @param {string} id */
export function forget(store, id) {
  return setEntry(store, id, { answers: {} });
}

/** For another device; the answers stay. @param {Store} store */
export async function moveOut(store) {
  const { me, lines, outbox } = await load(store);
  return exportLedger(lines.values(), { me, outbox: [...outbox.values()].map((entry) => ({ ...entry, answers: {} })) });
}

/** No spend forgotten, nothing drawn again, no cap raised. @param {Store} store @param {string} text */
export async function moveIn(store, text) {
  const { lines, outbox: entries = [], me: other } = importLedger(text);
  const added = await store.update(({ ledger, outbox, settings }) => {
    const more = merge(ledger, lines);
    /** @type {Write[]} */
    const writes = more.map((line) => ({ table: "ledger", key: line.key, value: line }));
    for (const entry of entries) if (!outbox.has(entry.study)) writes.push({ table: "outbox", key: entry.study, value: entry });
    const mine = settings.get("me") ?? other, cap = Math.min(mine?.cap, other?.cap);
    if (other) writes.push({ table: "settings", key: "me", value: { ...mine, ...other, cap, period: mine.period } });
    return { result: more.length, writes };
  });
  await takeOverMirror(store).catch(orElseOffline(null));
  return added;
}

/** Start no lower than what the broker's copy says was spent. @param {Store} store */
export async function takeOverMirror(store) {
  const { me } = await load(store);
  if (!me?.token) return;
  const { budget: mirror } = await api.me(me.token);
  const elsewhere = { epsilon: mirror.epsilon_spent_nano, rho: mirror.rho_spent_nano };
  await store.update(({ ledger }) => {
    const line = carryOver(ledger, elsewhere, today());
    return { result: null, writes: line ? [{ table: "ledger", key: line.key, value: line }] : [] };
  });
}

/** Everything about me: from this device and from the broker. @param {Store} store */
export async function exportData(store) {
  const { me, lines, outbox, drafts } = await load(store);
  const broker = me?.token ? await api.exportMine(me.token).catch(orElseOffline(null)) : null;
  const device = { me, ledger: [...lines.values()], sent: [...outbox.values()], drafts: Object.fromEntries(drafts) };
  return JSON.stringify({ device, broker }, null, 2);
}

/** @param {Store} store */
export async function leave(store) {
  const { me } = await load(store);
  if (me?.token) await api.leave(me.token).catch(orElse(401, () => null));
  await store.clear();
}

/** @param {Store} store @param {Table} table @param {string} key @param {unknown} value */
function put(store, table, key, value) {
  return store.update(() => ({ result: null, writes: [{ table, key, value }] }));
}

/** @param {number} status @param {() => any} instead */
function orElse(status, instead) {
  return (/** @type {unknown} */ error) => {
    if (error instanceof Problem && error.status === status) return instead();
    throw error;
  };
}

/** @param {any} value */
function orElseOffline(value) {
  return (/** @type {unknown} */ error) => {
    if (error instanceof Offline) return value;
    throw error;
  };
}
