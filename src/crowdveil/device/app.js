/** The worker's app: chooses the page by the address, keeps the outbox going, and pins its own code. */
import { h } from "./dom.js";
import { errorText, language, languages, setLanguage, t } from "./i18n.js";
import { me } from "./pages/me.js";
import { privacy } from "./pages/privacy.js";
import { studies } from "./pages/studies.js";
import { study } from "./pages/study.js";
import { welcome } from "./pages/welcome.js";
import { backLink, button, choice, notice, text } from "./render.js";
import { Refusal } from "./refusal.js";
import { lastUse, openStore } from "./store.js";
import { Device } from "./worker.js";

/** @param {string} id */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const main = byId("main"), status = byId("status");
const device = new Device(await openStore().catch(async (error) => {
  main.textContent = error;
  await setLanguage();
  main.replaceChildren(notice("bad", t("error.store", { detail: error })));
  throw error;
}));
const mark = document.querySelector("meta[name=release]")?.getAttribute("content") ?? "";
const release = { name: mark.slice(0, 12), signed: mark.endsWith(" signed") };

/** @param {string} text */
const say = (text) => status.replaceChildren(text);

const toTop = () => { main.focus(); scrollTo(0, 0); };

let turns = 0;
let isReplaced = false; // by code that did not wait for the worker

/** Show the page that the address names, unless another was asked for meanwhile. */
async function show() {
  const turn = ++turns, state = await device.load(), path = location.hash.replace(/^#\/?/, "").split("/");
  showFrame(state.me ? path[0] ?? "" : null);
  const evictedSince = state.me || state.left ? null : lastUse.read();
  if (state.me) lastUse.write(new Date().toISOString().slice(0, 10));
  const content = await pageOf({ device, state, release, act, go, show, evictedSince }, path)
    .catch((error) => [text("h1", "error.title"), notice("bad", errorText(error)), backLink()]);
  if (turn !== turns) return;
  main.replaceChildren(...content.flatMap((part) => (part instanceof Node ? [part] : [])));
  document.title = `${main.querySelector("h1")?.textContent ?? ""} – crowdveil`;
  // What had the focus is gone: this is a new page.
  if (document.activeElement === document.body) toTop();
  if (!navigator.onLine) say(t("offline"));
}

/** @type {PageOf} */
async function pageOf(context, [place = "", id = ""]) {
  if (isReplaced) return [text("h1", "error.title"), notice("bad", t("update.forced"))];
  if (!context.state.me) return welcome(context);
  if (place === "studies" && id) return study(context, id);
  if (place === "privacy") return privacy(context);
  if (place === "me") return me(context);
  return studies(context);
}

/** @param {string | null} place  null before the start: nowhere else to go */
function showFrame(place) {
  const links = place === null ? {} : { "": "nav.studies", privacy: "nav.privacy", me: "nav.me" };
  byId("navigation").replaceChildren(...Object.entries(links).map(([to, key]) =>
    h("a", { href: `#/${to}`, "aria-current": to === place && "page" }, t(key))));
  byId("language").replaceChildren(choice(t("nav.language"), languages(), language(),
    (name) => go(() => device.put("settings", "language", name).then(() => setLanguage(name))),
    (name) => new Intl.DisplayNames([name], { type: "language" }).of(name) ?? name));
}

/** Once at a time; says what went wrong. @param {() => Promise<unknown>} work */
async function act(work) {
  const { classList } = document.body;
  if (classList.contains("busy")) return;
  classList.add("busy");
  say("");
  await work().catch(async (error) => {
    // The question stands on the page.
    if (error instanceof Refusal && error.key === "mirror.ahead") await show().then(toTop);
    say(errorText(error));
  });
  classList.remove("busy");
}

/** Act, then show what has become of the page. @type {Context["go"]} */
const go = (work, said) => act(async () => {
  const result = await work();
  await show();
  if (said) say(said(result));
});

/** What was released is sent when the network is back. */
async function online() {
  const answered = await device.renew().then(() => device.sendAll()).catch((error) => { say(errorText(error)); return []; });
  if (answered.length) await show();
}

/** Keep this code: it works offline, and changed code is noticed. */
async function pin() {
  const { serviceWorker, storage } = navigator;
  if (!serviceWorker) return;
  await storage.persist(); // a ledger must not be thrown away to make room
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("crowdveil", { createScriptURL: () => "sw.js" });
  const registration = await serviceWorker.register(policy ? policy.createScriptURL("") : "sw.js");
  let isChosen = false;
  const offer = () => {
    if (!registration.waiting || !serviceWorker.controller) return;
    const use = button("update.use", () => {
      isChosen = true;
      registration.waiting?.postMessage("use");
    });
    status.replaceChildren(t("update", { release: release.name }), " ", use);
  };
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", offer));
  const controlled = serviceWorker.controller !== null;
  // Ours waits until it is chosen; a worker that the server wrote for somebody need not.
  serviceWorker.addEventListener("controllerchange", () => {
    if (isChosen) return location.reload();
    isReplaced = controlled;
    return void (controlled && show());
  });
  offer();
}

await setLanguage(await device.setting("language"));
addEventListener("hashchange", () => { toTop(); void show(); });
addEventListener("online", () => { say(""); void online(); });
addEventListener("offline", () => say(t("offline")));
await show();
void online();
await pin().catch(() => undefined);
