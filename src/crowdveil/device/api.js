/**
 * The only module that talks to the broker, and the only one that may call fetch: whoever wants to know what
 * leaves the device reads this file.
 */
/** @import { Api, Call } from "./types.js" */

/** The broker said no, in one sentence. */
export class Problem extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(String(problem?.detail ?? problem?.title ?? `HTTP ${status}`));
    this.status = status;
    this.code = String(problem?.type).split("/").pop();
  }
}

/** No answer at all: the network, not the broker. */
export class Offline extends Error {}

/** @type {Call} */
async function call(method, path, { body, token, headers = {} } = {}) {
  const request = {
    method,
    headers: {
      Accept: "application/json",
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body && { "Content-Type": "application/json" }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    cache: /** @type {const} */ ("no-store"),
    referrerPolicy: /** @type {const} */ ("no-referrer"),
  };
  const response = await answerOf(`/api/v1/${path}`, request);
  const content = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, content);
  return content;
}

/** @param {string} url @param {RequestInit} request */
function answerOf(url, request) {
  return fetch(url, { ...request, credentials: "omit" }).catch(() => { throw new Offline(); });
}

/** @param {string} id */
const studyAt = (id) => `studies/${encodeURIComponent(id)}`;

/** @type {Api} */
export const api = {
  // A file of this app, refused by the browser unless its hash fits.
  words: async (url, integrity) => (await answerOf(url, { integrity })).json(),
  info: () => call("GET", ""),
  studies: () => call("GET", "studies?limit=100"),
  study: (id) => call("GET", studyAt(id)),
  log: (after) => call("GET", `log?after=${after}&limit=100`),
  join: (level, cap) => call("POST", "workers", { body: { default_level: level, epsilon_cap_nano: cap } }),
  myStudies: (token) => call("GET", "workers/me/studies", { token }),
  me: (token) => call("GET", "workers/me", { token }),
  change: (token, changed) => call("PATCH", "workers/me", { token, body: changed }),
  renew: (token) => call("POST", "workers/me/tokens", { token, body: { label: "renewed" } }),
  leave: (token) => call("DELETE", "workers/me", { token }),
  exportMine: (token) => call("GET", "workers/me/export", { token }),
  payments: (token) => call("GET", "workers/me/payments", { token }),
  reserve: (token, id, level, sha256) =>
    call("PUT", `${studyAt(id)}/reservation`, { token, body: { level, study_sha256: sha256 } }),
  cancel: (token, id) => call("DELETE", `${studyAt(id)}/reservation`, { token }),
  submit: (token, { study, body, idempotencyKey }) =>
    call("POST", `${studyAt(study)}/submissions`, { token, body, headers: { "Idempotency-Key": idempotencyKey } }),
  // Without a token: taking back needs the key only.
  withdraw: (id, key) => call("POST", `${studyAt(id)}/withdrawals`, { body: { withdrawal_key: key } }),
};
