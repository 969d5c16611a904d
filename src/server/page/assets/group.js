// One group: why it waits, its pods batch by batch, rooms, rollouts, what was told of it.

import { cells, legend } from "./cells.js";
import { ago, h, kept } from "./dom.js";
import { bar, batchWord, where } from "./room.js";

/** Why nothing is held in the namespace of a group. */
const SERVED = { OptedOut: "has opted out", NotSelected: "is not selected", Observed: "is only observed", OfOther: "is another rolegate's" };

/** The one sentence why it waits, or how it is. */
export function why(group) {
  const held = group.holds.find((hold) => hold.reason === group.reason) ?? group.holds[0];
  if (held) return `${held.reason}: ${held.message}`;
  const told = ["Progressing", "Ready"].map((type) => group.told.find((condition) => condition.type === type));
  return told.find((condition) => condition?.message)?.message ?? "nothing is held";
}

export function parts(data) {
  const { group } = data;
  return [
    h("p", { class: "sentence" }, why(group)),
    h("dl", { class: "facts" }, facts(group).map(([term, text]) => h("div", {}, h("dt", {}, term), h("dd", {}, text)))),
    scale(group),
    segments(group),
    where(group, data.room),
    rollouts(group),
    recoveries(group),
    engines(group),
    requests(group),
    holds(group),
    conditions(group),
    timeline(data),
  ];
}

function facts(group) {
  const carrier = group.carrier ? `${group.carrier.kind} ${group.carrier.name}` : "not there: only pods name it";
  const all = [["carried by", carrier], ["segments", group.segments], ["pods ready", group.ready], ["pods held", String(group.held)]];
  const served = group.letsGo ? SERVED[group.letsGo] : group.mode === "warn" && "in mode warn";
  if (served) all.push(["namespace", served]);
  const { refused = [], holds = [] } = group.would ?? {};
  if (refused.length) all.push(["would be refused", refused.join(", ")]);
  if (holds.length) all.push(["would be held", holds.map(({ reason, pods }) => `${reason} (${pods})`).join(", ")]);
  return all.filter(([, text]) => text);
}

/** Replicas of a role, each the letters of its pods. */
const replicasOf = (role) => (role.size > 1 ? role.cells.split(" ") : [...role.cells]);

function segments(group) {
  const roles = Object.fromEntries(Object.entries(group.roles).map(([name, role]) => [name, replicasOf(role)]));
  const batched = new Set(group.coordinations.flatMap((coordination) => coordination.batches.flatMap((batch) => Object.keys(batch.roles))));
  const others = Object.keys(roles).filter((name) => !batched.has(name) && roles[name].length > 0);
  if (batched.size + others.length === 0) return null;
  const line = (name, replicas, from, to) => {
    const numbers = from === to ? `${from}` : `${from} to ${to}`;
    return h("div", { class: "role" }, h("span", {}, `${name} ${from === to ? from : `${from}–${to}`}`), cells(replicas, `${name} ${numbers}`));
  };
  const batch = (coordination) => (one) => {
    const drawn = Object.entries(one.roles).map(([name, share]) => {
      const [from, to] = share.ordinals;
      return [name, (roles[name] ?? []).slice(from, to + 1), from, to];
    });
    const inPart = one.state === "Held" && Object.values(one.roles).some((share) => share.released > 0);
    const state = inPart ? "held in part" : one.state.toLowerCase();
    return kept([coordination.name, one, drawn], () =>
      h(
        "li",
        { class: one.state },
        h("h4", { title: `rolegate.dev/segment=${one.index}` }, `${batchWord(coordination.strategy)} ${one.index + 1}: ${state}`, one.reason && h("span", { class: "faint" }, ` ${one.reason}`)),
        drawn.map((of) => line(...of)),
      ),
    );
  };
  return [
    h("h2", {}, "Pods"),
    legend(),
    group.coordinations.map((coordination) => [
      h("h3", {}, coordination.name, h("span", { class: "faint" }, ` ${coordination.progression}${coordination.state && `, ${coordination.state}`}`)),
      h("ol", { class: "batches" }, coordination.batches.map(batch(coordination))),
    ]),
    others.length > 0 && [h("h3", {}, "Roles without batches"), others.map((name) => line(name, roles[name], 0, roles[name].length - 1))],
  ];
}

/** The segments that are wanted of a group whose workloads are scaled together, and how far they are. */
function scale({ elastic }) {
  if (!elastic) return null;
  return [h("h2", {}, "Scale"), h("p", { class: elastic.ineffective ? "bad" : null }, elastic.sentence)];
}

/** Batches that have lost a replica within the window, and what becomes of them. */
function recoveries({ toldRecoveries }) {
  if (toldRecoveries.length === 0) return null;
  return [h("h2", {}, "Recoveries"), h("ul", {}, toldRecoveries.map((text) => h("li", {}, text)))];
}

/** Pods whose engine counts pods that are no longer as many. */
function engines({ outdatedEngines = [] }) {
  if (outdatedEngines.length === 0) return null;
  return [h("h2", {}, "Engines"), h("ul", {}, outdatedEngines.map(({ sentence }) => h("li", {}, sentence)))];
}

/** Requests for nodes for batches that fit nowhere, and what became of them. */
function requests({ toldRequests }) {
  if (toldRequests.length === 0) return null;
  return [h("h2", {}, "Requested nodes"), h("ul", {}, toldRequests.map((text) => h("li", {}, text)))];
}

function rollouts(group) {
  if (group.rollouts.length === 0) return null;
  const share = (part, of) => (of > 0 ? (100 * part) / of : 100);
  const bandOf = (role) => group.bands.find((band) => band.roles.includes(role));
  const one = (rollout) => {
    const band = bandOf(rollout.role);
    const others = group.rollouts.filter((other) => band?.roles.includes(other.role));
    const low = Math.min(...others.map((other) => share(other.updatedReady, other.desired)));
    const [updated, done] = [share(rollout.updated, rollout.desired), share(rollout.updatedReady, rollout.desired)];
    const text = `${rollout.role}: ${rollout.updated} of ${rollout.desired} updated, ${rollout.updatedReady} of these ready`;
    const bars = [["updated", 0, updated], ["done", 0, done]];
    if (band) bars.push(["band", low, low + band.maxSkew]);
    return h("li", {}, h("div", {}, text, h("span", { class: "faint" }, ` ${rollout.state}${rollout.waits ? `: ${rollout.waits}` : ""}`)), bar(text, bars));
  };
  const skews = group.bands.map((band) => `${band.coordination}: updated shares differ by ${band.maxSkew} % at most (the dashed band)`);
  const steps = (group.rolloutSteps ?? []).map(({ sentence }) => h("p", {}, sentence));
  return [h("h2", {}, "Rollout"), steps, skews.map((text) => h("p", { class: "faint" }, text)), h("ul", {}, group.rollouts.map(one))];
}

function holds(group) {
  if (group.holds.length === 0) return null;
  const line = (hold) => h("li", {}, h("span", { class: "reason" }, hold.reason), `: ${hold.message}${hold.pods > 0 ? ` (${hold.pods} pods)` : ""}`);
  return [h("h2", {}, "What is held"), h("ul", {}, group.holds.map(line))];
}

function conditions(group) {
  if (group.told.length === 0) return null;
  const cell = (text) => h("td", {}, text ?? "");
  const line = (of) => h("tr", {}, h("th", { scope: "row" }, of.type), [of.status, of.reason, ago(of.lastTransitionTime), of.message].map(cell));
  const heads = ["Condition", "Status", "Reason", "Since", "Message"].map((text) => h("th", { scope: "col" }, text));
  const table = h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, group.told.map(line)));
  return [h("h2", {}, "Conditions"), h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Conditions" }, table)];
}

function timeline({ events, silence }) {
  if (events.length === 0 && !silence) return null;
  const line = (event) =>
    h(
      "li",
      { class: event.warning ? "warning" : null },
      h("time", { datetime: event.time, title: event.time }, ago(event.time)),
      h("strong", {}, event.reason),
      h("span", { class: "message" }, event.message),
    );
  return [h("h2", {}, "Timeline"), silence && h("p", { class: "bad" }, `Events cannot be read: ${silence}`), h("ol", { class: "times" }, events.map(line))];
}
