// Where we are, what is followed there, and who may look.

import { $, h, morph } from "./dom.js";
import { parts, why } from "./group.js";
import { drawGroups } from "./groups.js";
import { follow } from "./stream.js";

let token = sessionStorage.getItem("token");
let open = null;
let all = null;
let said = "";
let seen = null;

// Times grow old while nothing else changes.
let again = null;
setInterval(() => again?.(), 15000);

function show(path, draw) {
  open?.abort();
  open = new AbortController();
  seen = null;
  const drawn = (data) => {
    seen = new Date();
    draw(data);
  };
  const connected = () => {
    $("token").hidden = true;
    connection("live");
  };
  const broken = (why) => {
    const asOf = seen ? `, as of ${seen.toLocaleTimeString()}` : "";
    connection(`not connected (${why})${asOf}, trying again`, true, seen !== null);
  };
  follow(path, { token, signal: open.signal, show: drawn, connected, broken, refused: askForToken });
}

function connection(text, bad = false, stale = false) {
  $("main").classList.toggle("stale", stale);
  morph($("connection"), h("p", { id: "connection", role: "status", class: bad ? "bad" : "faint" }, text));
}

function askForToken() {
  connection("asks for a token", true);
  $("overview").hidden = $("detail").hidden = true;
  $("token").hidden = false;
  $("refused").textContent = token ? "This is not the token." : "";
  $("secret").focus();
}

$("token").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("secret").value;
  sessionStorage.setItem("token", token);
  $("secret").value = "";
  route();
});

/** `#/` or `#/NAMESPACE/NAME`; other fragments are places in the page, which begins with all groups. */
function route() {
  const [namespace, name] = location.hash.slice(2).split("/").map(decodeURIComponent);
  $("overview").hidden = Boolean(name);
  $("detail").hidden = !name;
  $("detail").replaceChildren();
  [said, again] = ["", null];
  if (name) {
    document.title = `${namespace}/${name} · rolegate`;
    show(`groups/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`, (data) => showOne(namespace, name, data));
  } else {
    document.title = "rolegate";
    show("groups", showAll);
  }
}

addEventListener("hashchange", () => {
  if (location.hash && !location.hash.startsWith("#/")) return;
  route();
  if (location.hash) $("main").focus({ preventScroll: true });
});

function showReplica({ identity, leads, failing, listing, mode }) {
  const parts = [`${identity} ${leads ? "leads" : "does not lead, and shows the same"}`];
  if (listing) parts.push("is still listing: this is a part");
  if (mode !== "enforce") parts.push(`mode ${mode}`);
  failing.forEach(([check, why]) => parts.push(`${check}: ${why}`));
  const bad = listing || mode !== "enforce" || failing.length > 0;
  morph($("replica"), h("p", { id: "replica", class: bad ? "bad" : "faint" }, parts.join("; ")));
}

function showAll(data) {
  all = data;
  showReplica(data.replica);
  drawGroups(all);
}

$("filter").addEventListener("input", () => all && drawGroups(all));
$("filter").addEventListener("submit", (event) => event.preventDefault());

function showOne(namespace, name, data) {
  again = () => showOne(namespace, name, data);
  showReplica(data.replica);
  const { group } = data;
  const absent = () => h("p", {}, "Neither this group nor a pod that names it is there.");
  morph($("detail"), h("div", { id: "detail" }, h("h1", {}, `${namespace}/${name}`), group ? parts(data) : absent()));
  if (group) document.title = `${group.segments || group.ready} ${namespace}/${name} · rolegate`;
  const sentence = group ? why(group) : "not there";
  if (sentence !== said) $("say").textContent = said = sentence;
}

route();
