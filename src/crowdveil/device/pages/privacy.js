/** What was spent, on what, and what that promises. */
import { h } from "../dom.js";
import { date, shownDown, shownUp, t } from "../i18n.js";
import { budgetBar, help, notice, stateOf, text } from "../render.js";
import { budget } from "../worker.js";

/** @type {Page} */
export async function privacy({ state }) {
  const now = budget(state), { used, cap } = now, lines = [...state.lines.values()].reverse();
  const bare = lines.filter((line) => line.kind === "unprotected"), counted = lines.filter((line) => !bare.includes(line));
  const table = (/** @type {Line[]} */ rows) => h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("privacy.spends") }, h("table",
    h("thead", h("tr", ["study", "cost", "day", "state"].map((head) => h("th", { scope: "col" }, t(`privacy.${head}`))))),
    h("tbody", rows.map(({ kind, key, name, level, epsilon, day }) => h("tr",
      h("th", { scope: "row" }, kind === "carried-over" ? t("privacy.carried") : h("a", { href: `#/studies/${key.split(" ")[0]}` }, name),
        level && h("small", t(`level.${level}`))),
      h("td", kind === "unprotected" ? "∞" : shownUp(epsilon)), h("td", date(day)), h("td", stateOf(state.outbox.get(key))))))));
  const numbers = { spent: shownUp(used.epsilon), cap: shownDown(cap.epsilon), rho: shownUp(used.rho), rhoCap: shownDown(cap.rho) };
  return [
    text("h1", "privacy.title"), budgetBar(now), text("p", "privacy.numbers", numbers), help(t("privacy.promise", numbers)),
    h("details", text("summary", "privacy.exact"), text("p", "privacy.rho", numbers)),
    text("h2", "privacy.spends"), counted.length ? table(counted) : text("p", "privacy.nothing"),
    counted.some((line) => line.kind === "carried-over") && notice("warn", t("privacy.carriedHelp")),
    ...(bare.length ? [text("h2", "privacy.bare"), table(bare)] : []),
  ];
}
