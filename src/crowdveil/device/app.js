/**
 * The worker's app: chooses the page by the address, keeps the outbox going, and pins its own code.
 */
import { Offline } from "./api.js";
import { h } from "./dom.js";
import { refusalText, setLanguage, t } from "./i18n.js";
import * as pages from "./pages.js";
import { Refusal } from "./refusal.js";
import { openStore } from "./store.js";
import { load, sendAll } from "./worker.js";
/** @import { Context } from "./types.js" */

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const store = await openStore().catch((error) => { main.textContent = String(error); throw error; });
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
const navigation = /** @type {HTMLElement} */ (document.getElementById("navigation"));
const mark = document.querySelector("meta[name=release]")?.getAttribute("content") ?? "";
const release = { name: mark.slice(0, 12), signed: mark.endsWith(" signed") };

/** @param {string} text */
const say = (text) => status.replaceChildren(text);

let turns = 0;

/** Show the page that the address names, unless another was asked for meanwhile. */
async function show() {
  const turn = ++turns, state = await load(store);
  const path = location.hash.replace(/^#\/?/, "").split("/");
  const context = { store, state, release, say, act, again: show };
  showNavigation(state.me ? path[0] ?? "" : null);
  const content = await pageOf(context, path).catch((error) => [h("p", { class: "notice bad", role: "alert" }, sentence(error))]);
  if (turn !== turns) return;
  main.replaceChildren(...content.flatMap((part) => (part instanceof Node ? [part] : [])));
  document.title = `${main.querySelector("h1")?.textContent ?? ""} – crowdveil`;
  if (document.activeElement === document.body) main.focus();
  if (!navigator.onLine) say(t("offline"));
}

/** @param {Context} context @param {string[]} path @returns {Promise<unknown[]>} */
async function pageOf(context, [place = "", id = ""]) {
  if (!context.state.me) return pages.welcome(context);
  if (place === "studies" && id) return pages.study(context, id);
  if (place === "privacy") return pages.privacy(context);
  if (place === "me") return pages.me(context);
  return pages.studies(context);
}

/** @param {string | null} place  null before the start: nowhere else to go */
function showNavigation(place) {
  const links = place === null ? [] : [["", "nav.studies"], ["privacy", "nav.privacy"], ["me", "nav.me"]];
  navigation.replaceChildren(...links.map(([to = "", key = ""]) =>
    h("a", { href: `#/${to}`, "aria-current": to === place ? "page" : undefined }, t(key))));
}

/** Once at a time; says what went wrong. @param {() => Promise<unknown>} work */
async function act(work) {
  if (document.body.classList.contains("busy")) return;
  document.body.classList.add("busy");
  say("");
  try {
    await work();
  } catch (error) {
    say(sentence(error));
  } finally {
    document.body.classList.remove("busy");
  }
}

/** @param {unknown} error */
function sentence(error) {
  if (error instanceof Refusal) return refusalText(error);
  if (error instanceof Offline) return t("offline");
  return t("error", { detail: error instanceof Error ? error.message : String(error) });
}

/** What the worker released is sent when the network is back. */
async function online() {
  const answered = await sendAll(store).catch((error) => { say(sentence(error)); return []; });
  if (answered.length) await show();
}

/** Keep a copy of this code, so that the page works offline and changed code is noticed. */
async function pin() {
  if (!("serviceWorker" in navigator)) return;
  await navigator.storage.persist(); // a ledger must not be thrown away to make room
  const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("crowdveil", { createScriptURL: () => "sw.js" });
  const registration = await navigator.serviceWorker.register(policy ? policy.createScriptURL("") : "sw.js");
  const offer = () => {
    if (!registration.waiting || !navigator.serviceWorker.controller) return;
    const use = () => { registration.waiting?.postMessage("use"); };
    status.replaceChildren(t("update", { release: release.name }), " ", h("button", { type: "button", onclick: use }, t("update.use")));
  };
  registration.addEventListener("updatefound", () => registration.installing?.addEventListener("statechange", offer));
  const controlled = navigator.serviceWorker.controller !== null;
  navigator.serviceWorker.addEventListener("controllerchange", () => { if (controlled) location.reload(); });
  offer();
}

await setLanguage((await load(store)).me?.language);
addEventListener("hashchange", () => { main.focus(); void show(); });
addEventListener("online", () => { say(""); void online(); });
addEventListener("offline", () => say(t("offline")));
await show();
void online();
await pin().catch(() => undefined);
