/**
 * The only module that talks to the broker, and the only one that may call fetch: whoever wants to know what
 * leaves the device reads this file.
 */
/** @import { Entry } from "./types.js" */

const BASE = "/api/v1/";

/** The broker said no, in one sentence. */
export class Problem extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(String(problem?.detail ?? problem?.title ?? `HTTP ${status}`));
    this.name = "Problem";
    this.status = status;
    this.code = String(problem?.type ?? "").split("/").pop() ?? "";
    this.fields = problem?.fields ?? {};
  }
}

/** No answer at all: the network, not the broker. */
export class Offline extends Error {
  name = "Offline";
}

/**
 * @param {string} method @param {string} path
 * @param {{body?: unknown, token?: string | null, headers?: Record<string, string>}} [options]
 * @returns {Promise<any>}
 */
async function call(method, path, { body, token, headers = {} } = {}) {
  const sent = { Accept: "application/json", ...headers };
  if (token) Object.assign(sent, { Authorization: `Bearer ${token}` });
  if (body !== undefined) Object.assign(sent, { "Content-Type": "application/json" });
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await answerOf(BASE + path, { method, headers: sent, body: text, credentials: "omit", cache: "no-store", referrerPolicy: "no-referrer" });
  const content = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, content);
  return content;
}

/** @param {string} url @param {RequestInit} request */
async function answerOf(url, request) {
  try {
    return await fetch(url, request);
  } catch {
    throw new Offline("the broker cannot be reached");
  }
}

/** @param {string} text */
const part = (text) => encodeURIComponent(text);

export const api = {
  /** A file of this app, refused by the browser unless its hash fits. @param {string} url @param {string} integrity */
  words: async (url, integrity) => (await answerOf(url, { integrity, credentials: "omit" })).json(),
  studies: () => call("GET", "studies?limit=100"),
  /** @param {string} token */
  myStudies: (token) => call("GET", "workers/me/studies", { token }),
  /** @param {string} id */
  study: (id) => call("GET", `studies/${part(id)}`),
  /** @param {number} after @param {number} limit */
  log: (after, limit) => call("GET", `log?after=${after}&limit=${limit}`),
  /** @param {string} level @param {number} cap */
  join: (level, cap) => call("POST", "workers", { body: { default_level: level, epsilon_cap_nano: cap } }),
  /** @param {string} token */
  me: (token) => call("GET", "workers/me", { token }),
  /** @param {string} token @param {object} changed */
  change: (token, changed) => call("PATCH", "workers/me", { token, body: changed }),
  /** @param {string} token */
  leave: (token) => call("DELETE", "workers/me", { token }),
  /** @param {string} token */
  exportMine: (token) => call("GET", "workers/me/export", { token }),
  /** @param {string} token */
  payments: (token) => call("GET", "workers/me/payments", { token }),
  /** @param {string} token @param {string} id @param {string} level @param {string} sha256 */
  reserve: (token, id, level, sha256) =>
    call("PUT", `studies/${part(id)}/reservation`, { token, body: { level, study_sha256: sha256 } }),
  /** @param {string} token @param {Entry} entry */
  submit: (token, entry) =>
    call("POST", `studies/${part(entry.study)}/submissions`, {
      token, body: entry.body, headers: { "Idempotency-Key": entry.idempotencyKey },
    }),
  /** Without a token: taking back needs the key only. @param {string} id @param {string} key */
  withdraw: (id, key) => call("POST", `studies/${part(id)}/withdrawals`, { body: { withdrawal_key: key } }),
};
