// Domains as boxes: what room they have, which batches are there, where the next one goes.

import { h } from "./dom.js";

/** An amount as people write it: processors come in thousandths, memory in bytes. */
function amount(resource, number) {
  if (resource === "cpu") return `${Math.round(number / 100) / 10}`;
  if (resource !== "memory" && !resource.includes("storage") && !resource.startsWith("hugepages-")) return `${number}`;
  const units = ["", "Ki", "Mi", "Gi", "Ti"];
  let unit = 0;
  for (; Math.abs(number) >= 1024 && unit < units.length - 1; unit++) number /= 1024;
  return `${Math.round(number * 10) / 10}${units[unit]}`;
}

/** A bar of parts, each [class, from, to] in percent. */
export const bar = (label, bars) =>
  h(
    "svg:svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label },
    bars.map(([style, from, to]) => h("svg:rect", { class: style, x: from, y: 0, width: Math.max(0, Math.min(to, 100) - from), height: 10 })),
  );

/** What people call a batch of a strategy. */
export const batchWord = (strategy) => ({ rollingDeploy: "step", segmentPlacement: "segment" })[strategy] ?? "batch";

export function where(group, room) {
  if (!room && group.domains.length === 0) return null;
  const stops = Object.fromEntries((group.fit ?? []).map((fit) => [fit.coordination, fit.stop?.reason ?? fit.error]));
  const wordOf = (name) => batchWord(group.coordinations.find((coordination) => coordination.name === name)?.strategy);
  return [h("h2", {}, "Where batches fit"), room && h("p", { class: "faint" }, room), group.domains.map((of) => domains(of, wordOf(of.coordination), stops[of.coordination]))];
}

function domains({ coordination, key, next, takes, resource, boxes, more }, word, stop) {
  const asks = Object.entries(takes).map(([resource, number]) => `${amount(resource, number)} ${resource}`).join(", ");
  const sentence = `${word} ${next + 1} takes ${asks || "nothing that is counted"}`;
  const some = (batches) => `${word}${batches.length > 1 ? "s" : ""} ${batches.map((batch) => batch + 1).join(", ")}`;
  const box = (domain) => {
    const { total, used, taken, free } = domain;
    const share = (part) => (total > 0 ? (100 * part) / total : 100);
    const text = `${amount(resource, free + taken)} of ${amount(resource, total)} ${resource} free`;
    return h(
      "li",
      { class: domain.coming.includes(next) ? "next" : null },
      h("h4", {}, domain.name, h("span", { class: "faint" }, ` ${domain.nodes} ${domain.nodes === 1 ? "node" : "nodes"}`)),
      domain.batches.length > 0 && h("div", {}, some(domain.batches)),
      domain.coming.length > 0 && h("div", {}, `${some(domain.coming)} would go here`),
      h("div", {}, text),
      bar(text, [["taken", 0, share(used)], ["takes", share(used), share(used + taken)], ["taken", share(used + taken), 100 - share(free)]]),
    );
  };
  return [
    h("h3", {}, `${coordination}, by ${key}`),
    h("p", {}, sentence, stop && h("span", { class: "bad" }, `; ${stop}`)),
    h("ul", { class: "domains" }, boxes.map(box)),
    more > 0 && h("p", { class: "faint" }, `and ${more} more`),
  ];
}
