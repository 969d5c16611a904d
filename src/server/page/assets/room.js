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

function domains({ coordination, key, next, takes, boxes, more }, word, stop) {
  const asks = Object.entries(takes).map(([resource, number]) => `${amount(resource, number)} ${resource}`).join(", ");
  const sentence = next === null ? `every ${word} is bound` : `${word} ${next + 1} takes ${asks || "nothing that is counted"}`;
  const box = (domain) => {
    const bars = Object.entries(domain.room).map(([resource, { free, of }]) => {
      const [taken, wants] = [of > 0 ? (100 * (of - free)) / of : 100, domain.next && of > 0 ? (100 * (takes[resource] ?? 0)) / of : 0];
      const text = `${amount(resource, free)} of ${amount(resource, of)} ${resource} free`;
      return [h("div", {}, text), bar(text, [["taken", 0, taken], ["takes", taken, taken + wants]])];
    });
    const batches = domain.batches.map((batch) => batch + 1);
    return h(
      "li",
      { class: domain.next ? "next" : null },
      h("h4", {}, domain.name, h("span", { class: "faint" }, ` ${domain.nodes} ${domain.nodes === 1 ? "node" : "nodes"}`)),
      batches.length > 0 && h("div", {}, `${word}${batches.length > 1 ? "s" : ""} ${batches.join(", ")}`),
      domain.next && h("div", {}, `${word} ${next + 1} goes here`),
      bars,
    );
  };
  return [
    h("h3", {}, `${coordination}, by ${key}`),
    h("p", {}, sentence, stop && h("span", { class: "bad" }, `; ${stop}`)),
    h("ul", { class: "domains" }, boxes.map(box)),
    more > 0 && h("p", { class: "faint" }, `and ${more} more`),
  ];
}
