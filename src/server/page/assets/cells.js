// Pods as cells: one picture for many, in words for who does not see it.

import { h } from "./dom.js";

// A letter of the stream for each pod: what it is called, its class, and how a cell of it is drawn at x, y.
const CELL = 10;
const STATES = {
  r: ["ready", "r", (x, y) => `M${x} ${y}h${CELL}v${CELL}h-${CELL}z`],
  s: ["scheduled, not ready", "s", (x, y) => `M${x} ${y}h${CELL}M${x} ${y}v${CELL}M${x + CELL} ${y}v${CELL}M${x} ${y + 4}h${CELL}v6h-${CELL}z`],
  g: ["released, without a node", "g", (x, y) => `M${x + 1} ${y + 1}h8v8h-8z`],
  h: ["held", "h", (x, y) => `M${x + 5} ${y + 1.5}l3.5 3.5l-3.5 3.5l-3.5 -3.5z`],
  "-": ["not there, or failed", "m", (x, y) => `M${x + 2} ${y + 5}h6`],
};

export function cells(replicas, label) {
  const size = Math.max(1, ...replicas.map((pods) => pods.length));
  // Replicas of several pods stay together, with more space between them.
  const gap = size > 1 ? 5 : 0;
  const perLine = Math.max(1, Math.floor(20 / size));
  const paths = {};
  const counts = {};
  let [width, height] = [0, 0];
  replicas.forEach((pods, at) => {
    const [left, top] = [(at % perLine) * (size * 12 + gap), Math.floor(at / perLine) * 13];
    [...pods].forEach((pod, number) => {
      const state = STATES[pod] ? pod : "-";
      const [x, y] = [left + (number % 20) * 12, top + Math.floor(number / 20) * 13];
      paths[state] = (paths[state] ?? "") + STATES[state][2](x + 1, y + 1);
      counts[state] = (counts[state] ?? 0) + 1;
      [width, height] = [Math.max(width, x + 12), Math.max(height, y + 12)];
    });
  });
  const states = Object.keys(STATES).filter((state) => counts[state]);
  const text = `${label}: ${states.map((state) => `${counts[state]} ${STATES[state][0]}`).join(", ") || "no pods"}`;
  return h(
    "svg:svg",
    { viewBox: `0 0 ${Math.max(width, 12)} ${Math.max(height, 12)}`, width: Math.max(width, 12), height: Math.max(height, 12), role: "img", "aria-label": text },
    h("svg:title", {}, text),
    states.map((state) => h("svg:path", { class: STATES[state][1], d: paths[state] })),
  );
}

export const legend = () =>
  h(
    "ul",
    { class: "legend", "aria-label": "What a cell means" },
    Object.entries(STATES).map(([, [name, style, draw]]) =>
      h("li", {}, h("svg:svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, h("svg:path", { class: style, d: draw(1, 1) })), ` ${name}`),
    ),
  );
