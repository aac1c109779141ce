"use strict";

// Moments in the time of whoever looks.
function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    const pad = (number) => String(number).padStart(2, "0");
    time.title = time.dateTime;
    time.textContent =
      `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())} ` +
      `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
  }
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function offerTheme(button) {
  const tell = () => {
    button.setAttribute("aria-pressed", String(isDark()));
    button.hidden = false;
  };
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    try { localStorage.setItem("golden-theme", theme); } catch { /* Then it holds for this page. */ }
    tell();
  });
  tell();
}

// What control and direction signs would hide is shown as the pages show it.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = (text) =>
  String(text).slice(0, 300).replace(UNSEEN, (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));

function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = visible(text);
  return made;
}

// The cards of running gates. What is said twice changes nothing, since a stream that was lost may repeat itself.
class LiveGates {
  constructor(section) {
    this.section = section;
    this.gates = new Map();
    this.lost = document.getElementById("live-lost");
  }

  watch() {
    const stream = new EventSource(this.section.dataset.events);
    stream.addEventListener("open", () => { this.lost.hidden = true; });
    stream.addEventListener("error", () => { this.lost.hidden = false; });
    const hear = (kind, act) => stream.addEventListener(kind, (event) => {
      const data = JSON.parse(event.data);
      if (this.section.dataset.only && this.section.dataset.only !== data.run_id) return;
      act(data);
      this.draw(data.run_id);
    });
    hear("gate_started", (data) => this.gates.set(data.run_id, {
      counts: data.counts, total: data.total_count, running: new Map(data.running.map((one) => [one.project, one.step])),
    }));
    hear("project_started", (data) => this.get(data.run_id).running.set(data.project, ""));
    hear("step", (data) => this.get(data.run_id).running.set(data.project, data.step));
    hear("project_finished", (data) => {
      const gate = this.get(data.run_id);
      gate.running.delete(data.project);
      gate.counts = data.counts;
      gate.total = data.total_count;
      this.refresh();
    });
    hear("gate_finished", (data) => {
      const gate = this.get(data.run_id);
      gate.end = data.final_status ? `ended: ${data.final_status.replace("_", " ").toUpperCase()}` : "was interrupted";
      gate.running.clear();
      this.refresh();
    });
  }

  get(run) {
    if (!this.gates.has(run)) this.gates.set(run, { counts: {}, total: null, running: new Map() });
    return this.gates.get(run);
  }

  draw(run) {
    const gate = this.get(run);
    const cards = document.getElementById("live-gates");
    const card = element("article", gate.end ? "over" : "");
    card.dataset.run = run;
    const done = Object.values(gate.counts).reduce((sum, count) => sum + count, 0);
    const link = element("a", "", gate.end ? `The gate ${gate.end}` :
      `A gate is running: ${done}${gate.total ? ` of ${gate.total}` : ""} projects done`);
    link.href = `${this.section.dataset.runs}/${encodeURIComponent(run)}`;
    const line = element("div", "line");
    for (const [project, step] of gate.running) {
      const now = element("span", "");
      now.append(element("bdi", "", project), ...(step ? [": ", element("bdi", "", step)] : []));
      line.append(now);
    }
    card.append(link, line);
    const old = [...cards.children].find((one) => one.dataset.run === run);
    if (old) old.replaceWith(card); else cards.prepend(card);
  }

  // The list below is asked for anew, once for all that is heard within a second.
  refresh() {
    clearTimeout(this.due);
    this.due = setTimeout(async () => {
      if (!window.htmx) return;
      const returnTo = keepPlace();
      await htmx.ajax("GET", location.href, { target: "#list", select: "#list", swap: "outerHTML" });
      returnTo();
    }, 700);
  }
}

// Whoever reads or points at the list finds the same line at the same place after it was drawn anew, and keeps the focus.
function keepPlace() {
  const list = document.getElementById("list");
  const links = (root) => [...root.querySelectorAll("a[href]")];
  const isAlike = (one, other) => one.href === other.href && one.className === other.className && !one.closest(".strip") === !other.closest(".strip");
  const focused = list.contains(document.activeElement) ? document.activeElement : null;
  const isRead = scrollY > 0 || focused || list.matches(":hover");
  const edge = document.querySelector(".top").getBoundingClientRect().bottom;
  const seen = isRead && links(list).find((one) => !one.closest(".strip") && one.getBoundingClientRect().top >= edge);
  const top = seen && seen.getBoundingClientRect().top;
  return () => {
    const now = links(document.getElementById("list"));
    if (focused) now.find((one) => isAlike(one, focused))?.focus({ preventScroll: true });
    const same = seen && now.find((one) => isAlike(one, seen));
    if (same) scrollBy(0, same.getBoundingClientRect().top - top);
  };
}

document.addEventListener("DOMContentLoaded", () => {
  localise(document);
  const button = document.getElementById("theme");
  if (button) offerTheme(button);
  const live = document.getElementById("live");
  if (live) new LiveGates(live).watch();
  // A slash goes to the search, unless somebody is writing.
  const everything = document.getElementById("everything");
  document.addEventListener("keydown", (event) => {
    const isWriting = event.target.closest("input, select, textarea, [contenteditable]");
    if (!everything || event.key !== "/" || isWriting || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    everything.focus();
  });
  // What cannot be undone is asked about once more.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  document.body.addEventListener("htmx:afterSwap", () => localise(document));
});
