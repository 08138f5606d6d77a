// What pages do by themselves: they follow events, draw plots, and say when the gateway is away.
"use strict";

const connection = document.getElementById("connection");
let wasLost = false;

// Says that the gateway does not answer; the page stays as it is and goes on by itself.
function lost() {
  wasLost = true;
  connection.className = "connection";
  connection.textContent = "The gateway does not answer. This page shows what was last known and tries again.";
}

function found() {
  if (!wasLost) return;
  wasLost = false;
  connection.className = "connection good";
  connection.textContent = "Connected again.";
  setTimeout(() => { if (!wasLost) connection.textContent = ""; }, 5000);
}

function signIn() {
  location.assign("/console/sign-in");
}

// htmx asks for parts of the page. A session that has ended leads to the page to sign in.
document.addEventListener("htmx:sendError", lost);
document.addEventListener("htmx:timeout", lost);
document.addEventListener("htmx:responseError", (event) => {
  if (event.detail.xhr.status === 401) signIn(); else lost();
});
document.addEventListener("htmx:afterOnLoad", found);

// Follows server-sent events: <tbody data-follow="URL" data-max="200">. Each `row` replaces the element with its id, or comes
// to the top. An element of `note` replaces the one with its id anywhere in the page. Without a session the server answers 401.
// After a pause, or where a browser has given up, the id of the last event goes along as `last`.
function follow(list) {
  const max = Number(list.dataset.max || 200);
  let source = null;
  let last = "";
  const start = () => {
    source = new EventSource(list.dataset.follow + (last && `&last=${encodeURIComponent(last)}`));
    source.addEventListener("open", found);
    source.addEventListener("error", async () => {
      lost();
      // A browser gives up where it was answered with an error.
      if (source.readyState !== EventSource.CLOSED) return;
      const answer = await fetch(list.dataset.follow, { redirect: "manual" }).catch(() => null);
      if (answer !== null && (answer.type === "opaqueredirect" || answer.status === 401)) return signIn();
      const retry = Number(answer?.headers.get("retry-after") || 2);
      // There is no place for this page: the server says why.
      if (answer?.status === 503) connection.textContent = `${await answer.text()} This page tries again in ${retry} s.`;
      else answer?.body?.cancel();
      setTimeout(start, 1000 * retry);
    });
    const take = (into) => (event) => {
      last = event.lastEventId;
      put(event.data, into, max);
    };
    source.addEventListener("row", take(list));
    source.addEventListener("note", take(null));
  };
  start();
  const pause = document.querySelector(`[data-pauses="${list.id}"]`);
  pause?.addEventListener("click", () => {
    const isPaused = pause.getAttribute("aria-pressed") === "true";
    pause.setAttribute("aria-pressed", String(!isPaused));
    if (isPaused) start(); else source.close();
  });
  addEventListener("pagehide", () => source.close());
}

function put(text, list, max) {
  const template = document.createElement("template");
  template.innerHTML = text;
  for (const element of [...template.content.children]) {
    const before = element.id && document.getElementById(element.id);
    if (before) before.replaceWith(element);
    else if (list) {
      element.classList.add("new");
      list.prepend(element);
      while (list.children.length > max) list.lastElementChild.remove();
    }
  }
}

// Streams the answer of a form into an element: <form data-stream="ID">. The server sends text.
function stream(form) {
  const target = document.getElementById(form.dataset.stream);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    target.textContent = "";
    try {
      const body = new URLSearchParams(new FormData(form));
      const answer = await fetch(form.action, { method: "POST", body });
      if (answer.status === 401) return signIn();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        target.append(value);
      }
      const id = target.textContent.match(/– request (\S+)\s*$/)?.[1];
      if (id) {
        const link = document.createElement("a");
        link.href = "/console/calls/" + encodeURIComponent(id);
        link.textContent = "How this call went";
        target.append(link);
      }
    } catch {
      target.append("\nThe answer ended early: the connection broke.");
    } finally {
      button.disabled = false;
    }
  });
}

// Okabe and Ito's colours, which those who see few colours can tell apart.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#7a5fd0", "#888888"];

function plot(element) {
  const data = JSON.parse(element.dataset.plot);
  const style = getComputedStyle(document.documentElement);
  const [text, line] = [style.getPropertyValue("--muted").trim(), style.getPropertyValue("--line").trim()];
  const own = data.series.map((series) => series.values);
  const shown = data.is_stacked ? stacked(own) : own;
  const unit = { usd: (value) => "$" + +value.toPrecision(3), ms: (value) => +value.toPrecision(3) + " ms" }[data.unit];
  const number = unit || ((value) => (value >= 1e6 ? +(value / 1e6).toPrecision(3) + " M" : String(+value.toPrecision(6))));
  const bars = data.is_stacked ? uPlot.paths.bars({ size: [0.7, 60] }) : undefined;
  const series = data.series.map((it, at) => ({
    label: it.name,
    stroke: COLOURS[at % COLOURS.length],
    fill: data.is_stacked ? COLOURS[at % COLOURS.length] : undefined,
    width: data.is_stacked ? 0 : 2,
    paths: bars,
    points: { show: !data.is_stacked && own[at].filter((value) => value !== null).length < 40 },
    value: (_, __, ___, index) => (index === null || own[at][index] === null ? "–" : number(own[at][index])),
  }));
  const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  const options = {
    width: element.clientWidth,
    height: 220,
    cursor: { drag: { x: false, y: false } },
    scales: { y: { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 1] } },
    // The highest sum is drawn first, so that the others stand in front of it.
    series: [{ label: "Time", value: (_, at) => (at === null ? "–" : new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ")) }, ...series],
    axes: [{ ...axis, values: (_, times) => times.map((at) => timeOf(at, data.at)) }, { ...axis, size: 64, values: (_, values) => values.map(number) }],
    tzDate: (at) => uPlot.tzDate(new Date(at * 1000), "UTC"),
  };
  if (data.is_stacked) {
    options.series = [options.series[0], ...series.reverse()];
    shown.reverse();
  }
  const drawn = new uPlot(options, [data.at, ...shown], element);
  new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: 220 })).observe(element);
}

// A time in UTC: the hour, or the day where the plot has many of them.
function timeOf(at, all) {
  const text = new Date(at * 1000).toISOString();
  const isLong = all[all.length - 1] - all[0] > 2 * 86400;
  return isLong ? text.slice(5, 10) : text.slice(11, 16);
}

// Sums of each series and those before it.
function stacked(rows) {
  const sums = [];
  for (const row of rows) {
    const below = sums[sums.length - 1];
    sums.push(row.map((value, at) => (value || 0) + (below ? below[at] : 0)));
  }
  return sums;
}

const begun = new WeakSet();

function begin() {
  const each = (selector, start) => {
    for (const element of document.querySelectorAll(selector)) {
      if (begun.has(element)) continue;
      begun.add(element);
      start(element);
    }
  };
  each("[data-follow]", follow);
  each("form[data-stream]", stream);
  each("[data-plot]", plot);
}

begin();
// What htmx has put into the page begins too.
document.addEventListener("htmx:load", begin);
