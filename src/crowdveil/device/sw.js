/**
 * Keeps the app's files, so that it works offline and its code stays what it was until the worker takes new code.
 * The list and its name are written by `tools/release_device.py`; a changed file changes this file, and is noticed.
 */
const RELEASE = "";
/** @type {string[]} */
const FILES = [];
const scope = /** @type {any} */ (self); // a service worker, not a window

scope.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(caches.open(RELEASE).then((cache) => cache.addAll(FILES))));

scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(takeOver()));

scope.addEventListener("message", (/** @type {any} */ event) => { if (event.data === "use") scope.skipWaiting(); });

scope.addEventListener("fetch", (/** @type {any} */ event) => {
  const { method, url } = event.request;
  const name = new URL(url).pathname.slice(new URL(scope.registration.scope).pathname.length);
  const isOurs = method === "GET" && url.startsWith(scope.registration.scope) && (name === "" || FILES.includes(name));
  if (isOurs) event.respondWith(kept(name || "./"));
});

async function takeOver() {
  const others = (await caches.keys()).filter((name) => name !== RELEASE);
  await Promise.all(others.map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/** @param {string} name */
async function kept(name) {
  const cache = await caches.open(RELEASE);
  const found = await cache.match(name);
  if (found) return found;
  await cache.add(name);
  return (await cache.match(name)) ?? Response.error();
}
