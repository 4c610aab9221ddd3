/**
 * Keeps the app's files: it works offline, and its code stays what it was until the worker takes new code.
 * `tools/release_device.py` writes the name below; a changed file changes it, and is noticed.
 */
const RELEASE = "79357ba806a9fd1f08b4d3de7e203623e45777ea4d83cf7740b09b71e2ee553d";
const scope = /** @type {any} */ (self); // a service worker, not a window

/** @param {string} name @param {(event: any) => unknown} work */
const on = (name, work) => scope.addEventListener(name, work);
on("install", (event) => event.waitUntil(keepAll()));
on("activate", (event) => event.waitUntil(takeOver()));
on("message", (event) => event.data === "use" && scope.skipWaiting());
on("fetch", (event) => {
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
