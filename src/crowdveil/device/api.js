/** The only module that may call fetch: whoever wants to know what leaves the device reads this file. */

/** The broker said no, in one sentence. */
export class Problem extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(String(problem?.detail ?? problem?.title ?? `HTTP ${status}`));
    this.status = status;
    this.code = String(problem?.type).replace(/.*\//, "");
  }
}

/** No answer at all: the network, not the broker. */
export class Offline extends Error {}

/** @type {Call} */
async function call(method, path, { body, token, headers = {} } = {}) {
  const response = await answerOf(`/api/v1/${path}`, {
    method,
    headers: {
      Accept: "application/json",
      ...(token && { Authorization: `Bearer ${token}` }),
      ...(body && { "Content-Type": "application/json" }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    cache: "no-store",
    referrerPolicy: "no-referrer",
  });
  const content = await response.json().catch(() => null);
  if (!response.ok) throw new Problem(response.status, content);
  return content;
}

/** @type {Fetch} */
const answerOf = (url, request) => fetch(url, { ...request, credentials: "omit" }).catch(() => { throw new Offline(); });

/** @param {string} id */
const studyAt = (id) => `studies/${encodeURIComponent(id)}`;

/** @type {OfMe} */
const ofMe = (method, path = "", body) => (token) => call(method, `workers/me${path}`, { token, body });

/** @type {Api} */
export const api = {
  // A file of this app, refused by the browser unless its hash fits.
  words: async (url, integrity) => (await answerOf(url, { integrity })).json(),
  info: () => call("GET", ""),
  studies: () => call("GET", "studies?limit=100"),
  study: (id) => call("GET", studyAt(id)),
  log: (after) => call("GET", `log?after=${after}&limit=100`),
  join: (level, cap) => call("POST", "workers", { body: { default_level: level, epsilon_cap_nano: cap } }),
  myStudies: ofMe("GET", "/studies"),
  me: ofMe("GET"),
  change: (token, changed) => ofMe("PATCH", "", changed)(token),
  renew: ofMe("POST", "/tokens", { label: "renewed" }),
  leave: ofMe("DELETE"),
  exportMine: ofMe("GET", "/export"),
  payments: ofMe("GET", "/payments"),
  reserve: (token, id, level, sha256) =>
    call("PUT", `${studyAt(id)}/reservation`, { token, body: { level, study_sha256: sha256 } }),
  cancel: (token, id) => call("DELETE", `${studyAt(id)}/reservation`, { token }),
  submit: (token, { study, body, idempotencyKey }) =>
    call("POST", `${studyAt(study)}/submissions`, { token, body, headers: { "Idempotency-Key": idempotencyKey } }),
  // Without a token: taking back needs the key only.
  withdraw: (id, key) => call("POST", `${studyAt(id)}/withdrawals`, { body: { withdrawal_key: key } }),
};

// What may go wrong with a call and is expected.

/** @type {Expected} */
export const isOffline = (error) => error instanceof Offline;

/** The account is gone. @type {Expected} */
export const isUnknown = (error) => error instanceof Problem && error.status === 401;

/** @type {Expected} */
export const isAway = (error) => isOffline(error) || isUnknown(error);

/** No answer, or no good one. @type {Expected} */
export const isOfBroker = (error) => isOffline(error) || error instanceof Problem;

/** @type {Expected} */
export const isAbsent = (error) => error instanceof Problem && error.code === "not-found";

export const nothing = () => null;

/** @type {OrElse} */
export function orElse(expected, instead) {
  return (error) => {
    if (expected(error)) return instead();
    throw error;
  };
}
