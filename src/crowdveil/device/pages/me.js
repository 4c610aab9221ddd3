/** The worker's own settings, pay, other devices, data, and the way out. */
import { download, h, withValue } from "../dom.js";
import { errorText, money, shownDown, shownUp, t } from "../i18n.js";
import { afterAsking, button, capField, choice, fact, help, howLink, leaveButton, levelChoice, notice, saveMe, text } from "../render.js";

/** @type {Page} */
export async function me(context) {
  const { device, state, act, go, release } = context, { level = "medium", cap = 0, period = "life" } = state.me ?? {}, chosen = { level, cap: cap / 1e9, period };
  let brought = "";
  const plan = h("div", { "aria-live": "polite" });
  const moved = h("textarea", { readonly: true, rows: 4, "aria-label": t("me.moveText"), hidden: true });
  const oninput = withValue((value) => {
    brought = value;
    plan.replaceChildren();
  });
  const lost = (/** @type {unknown} */ error) => notice("warn", errorText(error), afterAsking("me.anew", () => go(() => device.startAnew())));
  const earned = await device.earned().catch(lost);
  const reveal = () => act(async () => { moved.textContent = await device.moveOut(); moved.hidden = false; });
  const take = () => go(() => device.moveIn(brought), ({ n, accountLeft }) => `${t("me.imported", { n })} ${accountLeft ? t("me.accountLeft") : ""}`);
  const ask = () => act(async () => {
    plan.replaceChildren(notice("warn", ...changesOf(await device.planMoveIn(brought)), button("me.importSure", take)));
  });
  return [
    text("h1", "me.title"),
    earned instanceof Node ? earned : earned && h("dl.card", fact("me.balance", money(earned.balance_cents)), fact("me.payee", earned.payee)),
    levelChoice("me.level", chosen), capField("me.cap", chosen), help(t("me.capHelp")),
    choice(t("me.period"), ["life", "year"], period, (value) => { chosen.period = value; }, (value) => t(`me.period.${value}`)),
    help(t("me.periodHelp")),
    button("me.save", () => saveMe(device, chosen, go, () => t("me.saved")), "main"),
    text("h2", "me.move"), help(t("me.moveHelp")), button("me.moveShow", reveal), moved,
    h("label.field", text("span", "me.importText"), h("textarea", { rows: 4, name: "import", autocomplete: "off", oninput })), button("me.import", ask), plan,
    text("h2", "me.data"),
    button("me.export", () => act(async () => download("crowdveil-my-data.json", await device.exportData()))), help(t("me.exportHelp")),
    leaveButton(context),
    afterAsking("me.delete", () => go(() => device.deleteEverything(), () => t("me.deleted"))),
    help(t("me.code", { release: release.name, origin: location.origin }), " ", !release.signed && t("me.codeDevelopment")), howLink(),
  ];
}

/** Everything that a text would change here, in words. @type {ChangesOf} */
function changesOf({ n, epsilon, draws, foreign, before, after }) {
  const changes = [
    n > 0 && t("me.change.lines", { n, epsilon: shownUp(epsilon) }),
    draws > 0 && t("me.change.draws", { n: draws }),
    before?.level !== after?.level && t("me.change.level", { from: t(`level.${before?.level}`), to: t(`level.${after?.level}`) }),
    before?.cap !== after?.cap && t("me.change.cap", { from: shownDown(before?.cap), to: shownDown(after?.cap) }),
    before?.token !== after?.token && t("me.change.token"),
    before?.brokerKey !== after?.brokerKey && t("me.change.brokerKey"),
  ].filter((change) => change !== false);
  return [
    text("p", "me.importAsk"), h("ul", (changes.length ? changes : [t("me.change.nothing")]).map((change) => h("li", change))),
    foreign > 0 && text("p", "me.change.foreign", { n: foreign }),
  ];
}
