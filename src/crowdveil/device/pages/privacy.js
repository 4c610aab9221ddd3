/** What was spent, on what, and what that promises. */
import { h } from "../dom.js";
import { date, protectionText, shownDown, shownUp, t } from "../i18n.js";
import { budgetBar, claimQuestion, help, notice, stateOf, text } from "../render.js";
import { budget } from "../worker.js";

/** @type {Page} */
export async function privacy(context) {
  const { state } = context, now = budget(state), { used, cap } = now, lines = [...state.lines.values()].reverse();
  const bare = lines.filter((line) => line.kind === "unprotected"), counted = lines.filter((line) => !bare.includes(line));
  const table = (/** @type {Line[]} */ rows) => h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("privacy.spends") }, h("table.stack", { role: "table" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ["study", "cost", "day", "state"].map((head) => h("th", { scope: "col", role: "columnheader" }, t(`privacy.${head}`))))),
    h("tbody", { role: "rowgroup" }, rows.map(({ kind, key, name, level, epsilon, day }) => h("tr", { role: "row" },
      h("th", { scope: "row", role: "rowheader" }, kind === "carried-over" ? t("privacy.carried") : h("a", { href: `#/studies/${key.split(" ")[0]}` }, name),
        level && h("small", t(`level.${level}`))),
      column("cost", kind === "unprotected" ? "∞" : shownUp(epsilon)), column("day", date(day)), column("state", stateOf(state.outbox.get(key))))))));
  const numbers = { spent: shownUp(used.epsilon), cap: shownDown(cap.epsilon), rho: shownUp(used.rho), rhoCap: shownDown(cap.rho) };
  return [
    text("h1", "privacy.title"), claimQuestion(context), budgetBar(now), text("p", "privacy.numbers", numbers), help(protectionText(bare.length === 0, "promise", numbers)),
    h("details", text("summary", "privacy.exact"), text("p", "privacy.rho", numbers)),
    text("h2", "privacy.spends"), counted.length ? table(counted) : text("p", "privacy.nothing"),
    counted.some((line) => line.kind === "carried-over") && notice("warn", t("privacy.carriedHelp")),
    ...(bare.length ? [text("h2", "privacy.bare"), table(bare)] : []),
    await navigator.storage?.persisted() === false && help(t("privacy.volatile")),
  ];
}

/** On a phone each value stands beside its column's name. @type {Column} */
const column = (name, value) => h("td", { role: "cell", "data-column": t(`privacy.${name}`) }, value);
