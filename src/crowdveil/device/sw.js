/**
 * Keeps the app's files: it works offline, and its code stays what it was until the worker takes new code.
 * `tools/release_device.py` writes the name below; a changed file changes it, and is noticed.
 */
const RELEASE = "b9150e0649a8ffb705f6f0c6158e7faf3ac872ab2a49a8624589d773e8c8b058";
const scope = /** @type {any} */ (self); // a service worker, not a window

scope.addEventListener("install", (/** @type {any} */ event) => event.waitUntil(keepAll()));
scope.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(takeOver()));
scope.addEventListener("message", (/** @type {any} */ event) => { if (event.data === "use") scope.skipWaiting(); });
scope.addEventListener("fetch", (/** @type {any} */ event) => {
  const { method, url } = event.request;
  if (method === "GET" && url.startsWith(scope.registration.scope)) event.respondWith(kept(url));
});

async function keepAll() {
  const cache = await caches.open(RELEASE);
  await cache.add("manifest.json");
  const { files } = await (await cache.match("manifest.json"))?.json();
  await cache.addAll(["./", ...Object.entries(files).map(([name, integrity]) => new Request(name, { integrity }))]);
}

async function takeOver() {
  const others = (await caches.keys()).filter((name) => name !== RELEASE);
  await Promise.all(others.map((name) => caches.delete(name)));
  await scope.clients.claim();
}

/** @param {string} url */
async function kept(url) {
  const cache = await caches.open(RELEASE), options = { ignoreSearch: true };
  if (!await cache.match(url, options)) await cache.add(url);
  return cache.match(url, options);
}
