// All groups, and PodGroups that place their pods: those that wait come first.

import { $, h, morph } from "./dom.js";

/** Draws those that the filter lets through. */
export function drawGroups(all) {
  const words = $("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const has = (group) => {
    const text = `${group.namespace}/${group.name} ${group.reason ?? ""} ${group.sentence ?? ""}`.toLowerCase();
    return words.every((word) => text.includes(word)) && (!$("waiting").checked || group.held > 0);
  };
  const shown = all.groups.filter(has).sort((one, other) => Number(other.held > 0) - Number(one.held > 0));
  const trees = all.podGroups.filter(has);
  const fresh = h(
    "div",
    { id: "groups" },
    h("p", { class: "faint" }, `${shown.length} of ${all.groups.length} groups`),
    h("ul", { class: "rows" }, shown.map(row)),
    trees.length > 0 && [h("h2", {}, "PodGroups"), h("ul", { class: "rows" }, trees.map(treeRow))],
  );
  morph($("groups"), fresh);
}

function row(group) {
  const where = `#/${encodeURIComponent(group.namespace)}/${encodeURIComponent(group.name)}`;
  return h(
    "li",
    {},
    h("span", { class: "name" }, h("a", { href: where }, `${group.namespace}/${group.name}`)),
    h("span", {}, group.segments && `${group.segments} segments`),
    h("span", {}, group.ready && `${group.ready} ready`),
    h("span", {}, group.held > 0 && `${group.held} held`),
    h("span", { class: "why" }, group.reason && h("span", { class: "reason" }, `${group.reason} `), group.sentence),
  );
}

function treeRow(tree) {
  const why = tree.error ?? tree.holds.map((hold) => `${hold.reason}: ${hold.message}`).join("; ");
  return h(
    "li",
    {},
    h("span", { class: "name" }, `${tree.namespace}/${tree.name}`),
    h("span", {}, `${tree.scheduled}/${tree.pods} on nodes`),
    h("span", {}),
    h("span", {}, tree.held > 0 && `${tree.held} held`),
    h("span", { class: "why" }, why),
  );
}
