// All engines over time, on one canvas: a row for each instance of an engine and lane of a port.

const timeline = { rowHeight: 30, top: 26, heights: [24, 46], wanted: 340, tracks: slicesByTrack(), hover: null };

const PURPOSE_NAMES = {
  array: 'array',
  vector: 'vector unit',
  ahead: 'load ahead of use',
  waited: 'load that is waited for',
  again: 'load again',
  spill: 'spill',
  store: 'store',
  move: 'move on chip',
};

function gutter() {
  return innerWidth < 700 ? 74 : 148;
}

function purposeOf(task) {
  return plan.purposes[plan.tasks.purpose[task]];
}

function drawTimeline(context, width, height) {
  const scale = timeScale(gutter(), width);
  drawTimeAxis(context, scale, width, height);
  timeline.tracks.forEach((slices, row) => drawTrack(context, slices, row, scale, width));
  drawTrackNames(context, scale, height);
  if (byId('timeline-arrows').checked) drawDependencies(context, scale, width);
}

function setRowHeight() {
  const [least, most] = timeline.heights;
  const wanted = timeline.wanted / Math.max(1, plan.tracks.length);
  timeline.rowHeight = Math.max(least, Math.min(most, Math.floor(wanted)));
}

function rowTop(row) {
  return timeline.top + row * timeline.rowHeight;
}

function drawTrack(context, slices, row, scale, width) {
  const y = rowTop(row) + 3;
  const height = timeline.rowHeight - 6;
  const chosen = selection.current;
  let place = firstEndingAfter(slices, viewport.start);
  let last = '';
  while (place < slices.length && slices[place].start < viewport.end) {
    const slice = slices[place];
    const left = Math.max(scale.left, scale.x(slice.start));
    const right = Math.min(width, scale.x(slice.end));
    const fill = colour(purposeOf(slice.task));
    if (fill !== last) {
      context.fillStyle = fill;
      last = fill;
    }
    context.globalAlpha = faded(chosen, slice.task) ? 0.3 : 1;
    context.fillRect(left, y, Math.max(right - left - 0.5, 0.8), height);
    if (right - left > 34) {
      drawSliceName(context, slice.task, left, right, y, height);
      last = '';
    }
    // Below a pixel nobody sees more: go on with what ends behind it.
    place = right - left >= 1 ? place + 1 : firstEndingAfter(slices, scale.cycle(left + 1), place + 1);
  }
  context.globalAlpha = 1;
}

function faded(chosen, task) {
  return chosen !== null && chosen.kind === 'op' && plan.tasks.op[task] !== chosen.number;
}

function drawSliceName(context, task, left, right, y, height) {
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillStyle = colour(['array', 'again', 'spill', 'move'].includes(purposeOf(task)) ? 'over' : 'dark-over');
  const text = fitting(context, plan.tasks.name[task], right - left - 8);
  if (text) context.fillText(text, left + 4, y + height / 2 + 0.5);
}

function drawTrackNames(context, scale, height) {
  context.fillStyle = colour('ground');
  context.fillRect(0, 0, scale.left - 1, height);
  context.fillStyle = colour('line');
  context.fillRect(scale.left - 1, 0, 1, height);
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.font = '11px system-ui, sans-serif';
  context.fillStyle = colour('soft');
  context.fillText('cycles', 0, 10);
  const narrow = scale.left < 100;
  plan.tracks.forEach((track, row) => {
    const y = rowTop(row) + timeline.rowHeight / 2;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = colour('ink');
    context.fillText(fittingEnd(context, track.name, scale.left - (narrow ? 6 : 42)), 0, y);
    if (narrow) return;
    context.fillStyle = colour('soft');
    context.textAlign = 'right';
    context.font = '11px system-ui, sans-serif';
    context.fillText(`${Math.round((100 * track.busy) / Math.max(1, plan.cycles))} %`, scale.left - 6, y);
    context.textAlign = 'left';
  });
}

function taskBox(task, scale) {
  const { start, cycles: length, track } = plan.tasks;
  return {
    left: scale.x(start[task]),
    right: scale.x(start[task] + length[task]),
    y: rowTop(track[task]) + timeline.rowHeight / 2,
  };
}

function drawDependencies(context, scale, width) {
  const chosen = selection.current;
  if (chosen === null || chosen.kind !== 'task') return;
  context.save();
  context.beginPath();
  context.rect(scale.left, 0, width - scale.left, timeline.top + timeline.rowHeight * plan.tracks.length);
  context.clip();
  const { after, room } = plan.tasks;
  for (const other of after[chosen.number]) drawArrow(context, scale, other, chosen.number, []);
  for (const other of room[chosen.number]) drawArrow(context, scale, other, chosen.number, [3, 3]);
  for (const other of followers[chosen.number]) drawArrow(context, scale, chosen.number, other, []);
  outlineTask(context, scale, chosen.number);
  context.restore();
}

function drawArrow(context, scale, from, to, dashes) {
  const first = taskBox(from, scale);
  const second = taskBox(to, scale);
  const bend = Math.max(16, Math.abs(second.left - first.right) / 3);
  context.strokeStyle = colour('select');
  context.fillStyle = colour('select');
  context.lineWidth = 1.4;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(first.right, first.y);
  context.bezierCurveTo(first.right + bend, first.y, second.left - bend, second.y, second.left, second.y);
  context.stroke();
  context.setLineDash([]);
  context.beginPath();
  context.moveTo(second.left, second.y);
  context.lineTo(second.left - 6, second.y - 3.5);
  context.lineTo(second.left - 6, second.y + 3.5);
  context.fill();
}

function outlineTask(context, scale, task) {
  const box = taskBox(task, scale);
  context.strokeStyle = colour('select');
  context.lineWidth = 2;
  const height = timeline.rowHeight - 6;
  context.strokeRect(box.left - 1, box.y - height / 2, Math.max(4, box.right - box.left + 2), height);
}

// The task under a point: of several below a pixel the one that begins last before it.
function taskAt(x, y) {
  const row = Math.floor((y - timeline.top) / timeline.rowHeight);
  const slices = timeline.tracks[row];
  const scale = timeScale(gutter(), timeline.view.width);
  if (!slices || x < scale.left) return -1;
  const reach = 2 / scale.perCycle;
  const cycle = scale.cycle(x);
  const slice = slices[firstEndingAfter(slices, cycle - reach)];
  return slice && slice.start <= cycle + reach ? slice.task : -1;
}

function taskText(task) {
  const { tasks } = plan;
  const op = tasks.op[task] < 0 ? '' : `\nop ${plan.ops.name[tasks.op[task]]}`;
  const moved = tasks.bytes[task] ? `\n${bytes(tasks.bytes[task])}` : '';
  const end = tasks.start[task] + tasks.cycles[task];
  return `${tasks.name[task]}\n${PURPOSE_NAMES[purposeOf(task)]} on ${plan.tracks[tasks.track[task]].name}${op}` +
    `\n${count(tasks.start[task])} to ${count(end)}: ${cycles(tasks.cycles[task])}${moved}`;
}

function neighbour(task, step) {
  const slices = timeline.tracks[plan.tasks.track[task]];
  const place = slices.findIndex((slice) => slice.task === task);
  const next = slices[place + step];
  return next ? next.task : task;
}

function timelineKey(event) {
  const chosen = selection.current;
  if (chosen !== null && chosen.kind === 'task' && !event.shiftKey) {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    if (event.key in steps) {
      event.preventDefault();
      goToTask(neighbour(chosen.number, steps[event.key]));
      return;
    }
    if (event.key === 'ArrowUp' || event.key === 'ArrowDown') {
      const others = event.key === 'ArrowUp' ? plan.tasks.after[chosen.number] : followers[chosen.number];
      event.preventDefault();
      if (others.length) goToTask(others[others.length - 1]);
      return;
    }
  }
  zoomKey(event);
}

function goToTask(task) {
  select('task', task);
  const start = plan.tasks.start[task];
  showCycles(start, start + plan.tasks.cycles[task]);
}

function findTask(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return;
  const names = plan.tasks.name;
  const from = selection.current !== null && selection.current.kind === 'task' ? selection.current.number + 1 : 0;
  for (let step = 0; step < names.length; step += 1) {
    const task = (from + step) % names.length;
    if (names[task].toLowerCase().includes(wanted)) {
      goToTask(task);
      return;
    }
  }
}

function legend(holder, names, text) {
  for (const name of names) {
    const mark = element('i');
    mark.style.background = `var(--${name})`;
    holder.append(element('span', {}, mark, text[name] || name));
  }
}

function setUpTimeline() {
  const canvas = byId('timeline');
  setRowHeight();
  const height = () => timeline.top + timeline.rowHeight * plan.tracks.length + 6;
  timeline.view = canvasView(canvas, height, drawTimeline);
  attachPointer(timeline.view, gutter, {
    hover: (event) => {
      const task = taskAt(event.offsetX, event.offsetY);
      showTip(event, task < 0 ? '' : taskText(task));
    },
    leave: (event) => showTip(event, ''),
    click: (event) => {
      const task = taskAt(event.offsetX, event.offsetY);
      if (task < 0) select(null);
      else select('task', task);
    },
  });
  canvas.addEventListener('keydown', timelineKey);
  byId('timeline-arrows').addEventListener('change', timeline.view.redraw);
  byId('timeline-find').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') findTask(event.target.value);
  });
  zoomButtons(byId('timeline-zoom'));
  const used = plan.purposes.filter((_, number) => plan.tasks.purpose.includes(number));
  legend(byId('timeline-legend'), used, PURPOSE_NAMES);
  viewport.listeners.push(timeline.view.redraw);
  selection.listeners.push(timeline.view.redraw);
}
