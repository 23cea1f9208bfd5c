// The data of the plan, numbers as people read them, and what is selected.

const plan = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);

const grouped = new Intl.NumberFormat('en-GB', { maximumFractionDigits: 0 });
const count = (value) => grouped.format(value);

function digits(value) {
  if (value >= 1000) return count(value);
  return String(Number(value.toPrecision(3)));
}

function scaled(value, units, step) {
  let place = 0;
  while (value >= step && place < units.length - 1) {
    value /= step;
    place += 1;
  }
  return `${digits(value)}\u00a0${units[place]}`;
}

const bytes = (value) => scaled(value, ['B', 'KiB', 'MiB', 'GiB'], 1024);
const energy = (value) => scaled(value, ['pJ', 'nJ', 'µJ', 'mJ', 'J'], 1000);
const percent = (share) => `${(100 * share).toFixed(1)}\u00a0%`;
const cycles = (value) => `${count(value)} cycles`;

function duration(value) {
  if (!plan.clock_hz) return cycles(value);
  return scaled((value / plan.clock_hz) * 1e9, ['ns', 'µs', 'ms', 's'], 1000);
}

// Without a clock, cycles in short: the exact figure stands beside them.
function latency(value) {
  if (plan.clock_hz) return duration(value);
  return scaled(value, ['cycles', 'k\u00a0cycles', 'M\u00a0cycles', 'G\u00a0cycles'], 1000);
}

function amount(value, unit) {
  return { cycles: latency, pJ: energy, bytes }[unit](value);
}

function exact(value, unit) {
  return `${count(value)} ${unit === 'bytes' ? 'B' : unit}`;
}

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawn(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const colourCache = new Map();

function colour(name) {
  if (!colourCache.has(name)) {
    const style = getComputedStyle(document.documentElement);
    colourCache.set(name, style.getPropertyValue(`--${name}`).trim());
  }
  return colourCache.get(name);
}

// As much of a text as a width has room for; too little of it says nothing.
function fitting(context, text, width) {
  const wide = context.measureText(text).width;
  if (wide <= width) return text;
  let room = Math.floor((text.length * width) / wide) - 1;
  while (room >= 5 && context.measureText(`${text.slice(0, room)}…`).width > width) room -= 1;
  return room < 5 ? '' : `${text.slice(0, room)}…`;
}

function shortened(text, length) {
  return text.length <= length ? text : `…${text.slice(text.length - length + 1)}`;
}

// The first of joined names, as converters make them of all that an op stands for.
function firstName(text) {
  return text.split(';', 1)[0];
}

// The end of a text, as much as a width has room for.
function fittingEnd(context, text, width) {
  let length = text.length;
  while (length > 1 && context.measureText(shortened(text, length)).width > width) length -= 1;
  return shortened(text, length);
}

// What is selected: {kind: 'task' | 'buffer' | 'op', number}, or null. Views redraw on a change.
const selection = { current: null, listeners: [] };

function select(kind, number) {
  selection.current = kind === null ? null : { kind, number };
  for (const listener of selection.listeners) listener(selection.current);
}

function isSelected(kind, number) {
  const now = selection.current;
  return now !== null && now.kind === kind && now.number === number;
}

const tip = byId('tip');

function showTip(event, text) {
  if (!text) {
    tip.hidden = true;
    return;
  }
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = Math.min(event.clientX + 14, innerWidth - box.width - 6);
  const below = event.clientY + 18;
  const fits = below + box.height < innerHeight;
  tip.style.left = `${Math.max(6, right)}px`;
  tip.style.top = `${fits ? below : Math.max(6, event.clientY - box.height - 10)}px`;
}

// Slices by track, sorted by start: tasks on engines and, for ports, the tasks that hold them.
function slicesByTrack() {
  const tracks = plan.tracks.map(() => []);
  const { tasks, holds } = plan;
  for (let n = 0; n < tasks.start.length; n += 1) {
    const start = tasks.start[n];
    tracks[tasks.track[n]].push({ task: n, start, end: start + tasks.cycles[n] });
  }
  for (let n = 0; n < holds.task.length; n += 1) {
    const start = holds.start[n];
    tracks[holds.track[n]].push({ task: holds.task[n], start, end: start + holds.cycles[n] });
  }
  for (const slices of tracks) slices.sort((a, b) => a.start - b.start || a.end - b.end);
  return tracks;
}

// The first slice that ends behind a cycle; slices of a track do not overlap.
function firstEndingAfter(slices, cycle, low = 0) {
  let high = slices.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices[middle].end > cycle) high = middle;
    else low = middle + 1;
  }
  return low;
}

const followers = plan.tasks.start.map(() => []);
plan.tasks.after.forEach((before, task) => before.forEach((n) => followers[n].push(task)));
