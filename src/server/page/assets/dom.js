// Elements: made, and made like others in place. Texts only ever become text nodes.

export const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; strings become text. */
export function h(tag, attributes = {}, ...children) {
  const element = tag.startsWith("svg:") ? document.createElementNS(SVG, tag.slice(4)) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0));
  return element;
}

/** A part that is built only when its data are not those that the part in its place was built of. */
export function kept(data, build) {
  const stub = h("li", { "data-stub": true });
  stub.stub = { sign: JSON.stringify(data), build };
  return stub;
}

function built({ stub }) {
  return Object.assign(stub.build(), { sign: stub.sign });
}

/** What goes into the page as a whole, with all its parts built. */
function whole(fresh) {
  if (fresh.stub) return built(fresh);
  fresh.querySelectorAll?.("[data-stub]").forEach((stub) => stub.replaceWith(built(stub)));
  return fresh;
}

/** Makes what is there like what is to be, in place, so that focus and scroll position stay. */
export function morph(old, fresh) {
  if (fresh.stub) {
    if (old.sign === fresh.stub.sign) return;
    fresh = built(fresh);
  }
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return old.replaceWith(whole(fresh));
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  old.sign = fresh.sign;
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const [before, after] = [[...old.childNodes], [...fresh.childNodes]];
  after.forEach((child, at) => (before[at] ? morph(before[at], child) : old.append(whole(child))));
  before.slice(after.length).forEach((child) => child.remove());
}

/** `4m ago`: to the second in the first minute, then to the minute, the hour, the day. */
export function ago(time) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (Number.isNaN(seconds)) return "";
  const [size, unit] = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]].find(([size]) => seconds >= size) ?? [1, "s"];
  return `${Math.floor(seconds / size)}${unit} ago`;
}
