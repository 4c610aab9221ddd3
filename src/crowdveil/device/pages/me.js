/** The worker's own settings, pay, other devices, data, and the way out. */
import { download, h, withValue } from "../dom.js";
import { errorText, money, t } from "../i18n.js";
import { afterAsking, button, capField, choice, fact, help, howLink, levelChoice, notice, saveMe, text } from "../render.js";

/** @type {Page} */
export async function me({ device, state, act, go, release }) {
  const { level = "medium", cap = 0, period = "life" } = state.me ?? {}, chosen = { level, cap: cap / 1e9, period };
  let brought = "";
  const moved = h("textarea", { readonly: true, rows: 4, "aria-label": t("me.moveText"), hidden: true });
  const oninput = withValue((value) => { brought = value; });
  const lost = (/** @type {unknown} */ error) => notice("warn", errorText(error), afterAsking("me.anew", () => go(() => device.startAnew())));
  const earned = await device.earned().catch(lost);
  const reveal = () => act(async () => { moved.textContent = await device.moveOut(); moved.hidden = false; });
  const take = () => go(() => device.moveIn(brought), ({ n, left }) => `${t("me.imported", { n })} ${left ? t("me.accountLeft") : ""}`);
  return [
    text("h1", "me.title"),
    earned instanceof Node ? earned : earned && h("dl.card", fact("me.balance", money(earned.balance_cents)), fact("me.payee", earned.payee)),
    levelChoice("me.level", chosen), capField("me.cap", chosen), help(t("me.capHelp")),
    choice(t("me.period"), ["life", "year"], period, (value) => { chosen.period = value; }, (value) => t(`me.period.${value}`)),
    help(t("me.periodHelp")),
    button("me.save", () => saveMe(device, chosen, go, () => t("me.saved")), "main"),
    text("h2", "me.move"), help(t("me.moveHelp")), button("me.moveShow", reveal), moved,
    h("label.field", text("span", "me.importText"), h("textarea", { rows: 4, name: "import", autocomplete: "off", oninput })), button("me.import", take),
    text("h2", "me.data"),
    button("me.export", () => act(async () => download("crowdveil-my-data.json", await device.exportData()))), help(t("me.exportHelp")),
    afterAsking("me.delete", () => go(() => device.leave())),
    help(t("me.code", { release: release.name, origin: location.origin }), " ", !release.signed && t("me.codeDevelopment")), howLink(),
  ];
}
