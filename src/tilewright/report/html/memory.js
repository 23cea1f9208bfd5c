// One memory as a map: time to the right, addresses upwards, a rectangle for each buffer.

const memoryMap = { space: 0, boxes: [], left: () => gutter(), plotHeight: 400, fillHeight: 92 };

const ROLE_NAMES = {
  constant: 'weights and other constants',
  input: 'input',
  output: 'output',
  activation: 'activation',
};

function buffersOf(space) {
  const found = [];
  plan.buffers.space.forEach((of, number) => {
    if (of === space) found.push(number);
  });
  // By role, so that colours seldom change while drawing; by start, so that pixels fill in order.
  const { role, start } = plan.buffers;
  return found.sort((a, b) => role[a] - role[b] || start[a] - start[b] || a - b);
}

// Bytes in use wherever they change, as [cycle, bytes] pairs, and the first highest of them.
function fillCurve(buffers) {
  const changes = new Map();
  const { start, end, size } = plan.buffers;
  const add = (cycle, step) => changes.set(cycle, (changes.get(cycle) || 0) + step);
  for (const n of buffers) {
    add(start[n], size[n]);
    add(end[n], -size[n]);
  }
  let total = 0;
  const curve = [...changes.entries()].sort((a, b) => a[0] - b[0]).map(([cycle, step]) => {
    total += step;
    return [cycle, total];
  });
  const peak = curve.reduce((best, point) => (point[1] > best[1] ? point : best), [0, 0]);
  return { curve, peak };
}

function chooseSpace(space) {
  memoryMap.space = space;
  memoryMap.buffers = buffersOf(space);
  Object.assign(memoryMap, fillCurve(memoryMap.buffers));
  const { address, size } = plan.buffers;
  memoryMap.top = memoryMap.buffers.reduce((top, n) => Math.max(top, address[n] + size[n]), 1);
  for (const button of byId('memory-spaces').children) {
    button.setAttribute('aria-checked', String(Number(button.dataset.space) === space));
  }
  fillPeakTable();
  redrawMemory();
}

function redrawMemory() {
  memoryMap.view.redraw();
  memoryMap.fillView.redraw();
}

function shownBytes() {
  const { size } = plan.spaces[memoryMap.space];
  const capacity = byId('memory-capacity').checked && size < memoryMap.top * 1000 ? size : 0;
  return Math.max(memoryMap.top, capacity) * 1.04;
}

function drawMemory(context, width, height) {
  const scale = timeScale(memoryMap.left(), width);
  drawTimeAxis(context, scale, width, height);
  const bottom = height - 4;
  const perByte = (bottom - 24) / shownBytes();
  const y = (address) => bottom - address * perByte;
  memoryMap.boxes = [];
  drawReserved(context, scale, y, width);
  const crowd = { column: new Int32Array(height + 1).fill(-1), bottom: new Float64Array(height + 1) };
  for (let role = 0; role < plan.roles.length; role += 1) {
    context.fillStyle = colour(plan.roles[role]);
    drawRole(context, role, scale, y, width, crowd);
  }
  stripeRolling(context);
  nameBuffers(context);
  outlineBuffers(context);
  drawAddresses(context, scale, y, height);
  drawCapacity(context, y(plan.spaces[memoryMap.space].size), scale.left, width);
}

function drawReserved(context, scale, y, width) {
  context.fillStyle = colour('line');
  for (const [from, to] of plan.spaces[memoryMap.space].reserved) {
    context.fillRect(scale.left, y(to), width - scale.left, y(from) - y(to));
  }
}

function drawRole(context, role, scale, y, width, crowd) {
  const { start, end, address, size, role: roles } = plan.buffers;
  for (const n of memoryMap.buffers) {
    if (roles[n] !== role || end[n] <= viewport.start || start[n] >= viewport.end) continue;
    const left = Math.max(scale.left, scale.x(start[n]));
    const right = Math.min(width, scale.x(end[n]));
    const top = y(address[n] + size[n]);
    const bottom = y(address[n]);
    if (right - left < 1 && isHidden(crowd, left, top, bottom)) continue;
    const box = { buffer: n, left, top, width: Math.max(1, right - left), height: Math.max(1, bottom - top) };
    memoryMap.boxes.push(box);
    const gap = box.width > 4 && box.height > 4 ? 0.8 : 0;
    context.fillRect(left, top, box.width - gap, box.height - gap);
  }
}

// Whether a box narrower than a pixel lies behind one that was drawn there already.
function isHidden(crowd, left, top, bottom) {
  const row = Math.max(0, Math.floor(top));
  const column = Math.floor(left);
  if (crowd.column[row] === column && crowd.bottom[row] >= bottom) return true;
  crowd.column[row] = column;
  crowd.bottom[row] = bottom;
  return false;
}

// What a buffer is called in the map; of a rolling one, how much of its tensor it holds.
function bufferName(n) {
  const { name, rolling } = plan.buffers;
  return rolling[n] ? `${rolling[n]} of ${firstName(name[n])}` : firstName(name[n]);
}

// Stripes over rolling buffers, as their contents change while they stand.
function stripeRolling(context) {
  const tile = document.createElement('canvas');
  [tile.width, tile.height] = [8, 8];
  const pen = tile.getContext('2d');
  pen.strokeStyle = colour('stripe');
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const x of [-8, 0, 8]) {
    pen.moveTo(x, 8);
    pen.lineTo(x + 8, 0);
  }
  pen.stroke();
  context.fillStyle = context.createPattern(tile, 'repeat');
  for (const box of memoryMap.boxes) {
    if (plan.buffers.rolling[box.buffer] && box.width > 3 && box.height > 3) {
      context.fillRect(box.left, box.top, box.width - 0.8, box.height - 0.8);
    }
  }
}

function nameBuffers(context) {
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillStyle = colour('dark-over');
  for (const box of memoryMap.boxes) {
    if (box.width <= 50 || box.height <= 14) continue;
    const text = fitting(context, bufferName(box.buffer), box.width - 8);
    if (text) context.fillText(text, box.left + 4, box.top + Math.min(box.height / 2, 30));
  }
}

function outlineBuffers(context) {
  const chosen = selection.current;
  if (chosen === null) return;
  const tasks = chosen.kind === 'task' ? plan.tasks : null;
  const touched = tasks ? new Set([...tasks.reads[chosen.number], ...tasks.writes[chosen.number]]) : new Set();
  context.strokeStyle = colour('select');
  context.lineWidth = 2;
  for (const box of memoryMap.boxes) {
    const same = chosen.kind === 'buffer' && chosen.number === box.buffer;
    if (same || touched.has(plan.buffers.number[box.buffer])) {
      context.strokeRect(box.left, box.top, box.width, box.height);
    }
  }
}

function drawAddresses(context, scale, y, height) {
  context.fillStyle = colour('ground');
  context.fillRect(0, 0, scale.left - 1, height);
  context.fillStyle = colour('line');
  context.fillRect(scale.left - 1, 20, 1, height - 20);
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.fillStyle = colour('soft');
  for (const address of byteTicks(shownBytes())) context.fillText(bytes(address), scale.left - 6, y(address));
}

function byteTicks(most) {
  let step = 1;
  while (most / step > 8) step *= 2;
  const found = [];
  for (let at = 0; at <= most; at += step) found.push(at);
  return found;
}

function drawCapacity(context, y, left, width) {
  if (y < 20) return;
  context.strokeStyle = colour('select');
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(width, y);
  context.stroke();
  context.setLineDash([]);
  const text = `capacity ${bytes(plan.spaces[memoryMap.space].size)}`;
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  context.textBaseline = 'bottom';
  context.fillStyle = colour('select');
  context.fillText(text, width - 4, y - 2);
}

function drawFill(context, width, height) {
  const scale = timeScale(memoryMap.left(), width);
  const most = shownBytes();
  const y = (amountBytes) => height - 4 - (amountBytes / most) * (height - 10);
  context.fillStyle = colour('bar');
  let [level, highest, from] = [0, 0, scale.left];
  for (const [cycle, total] of [...memoryMap.curve, [Infinity, 0]]) {
    const x = Math.max(scale.left, Math.min(width, scale.x(cycle)));
    highest = Math.max(highest, level);
    // Steps closer than a pixel are drawn as one, as high as the highest.
    if (x - from >= 1) {
      context.fillRect(from, y(highest), x - from, y(0) - y(highest));
      [from, highest] = [x, 0];
    }
    level = total;
  }
  drawCapacity(context, y(plan.spaces[memoryMap.space].size), scale.left, width);
  const peakX = scale.x(memoryMap.peak[0]);
  context.fillStyle = colour('accent');
  if (peakX >= scale.left && peakX <= width) context.fillRect(peakX - 1, 0, 2, height - 4);
  context.fillStyle = colour('ground');
  context.fillRect(0, 0, scale.left - 1, height);
  context.font = '11px system-ui, sans-serif';
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  context.fillStyle = colour('soft');
  context.fillText('in use', scale.left - 6, height / 2);
}

function bufferText(n) {
  const { name, size, address, start, end, box, role, rolling } = plan.buffers;
  const held = rolling[n] ? `rolling buffer: ${rolling[n]} at once` : `[${box[n]}]`;
  return `${name[n]}\n${ROLE_NAMES[plan.roles[role[n]]]}, ${held}\n${count(size[n])} B at ${count(address[n])}` +
    `\n${count(start[n])} to ${count(end[n])}`;
}

function bufferAt(x, y) {
  for (let place = memoryMap.boxes.length - 1; place >= 0; place -= 1) {
    const box = memoryMap.boxes[place];
    if (x >= box.left && x < box.left + box.width && y >= box.top && y < box.top + box.height) return box.buffer;
  }
  return -1;
}

function fillPeakTable() {
  const { start, end, size, name, address, role, rolling } = plan.buffers;
  const [cycle, total] = memoryMap.peak;
  const alive = memoryMap.buffers.filter((n) => start[n] <= cycle && end[n] > cycle);
  alive.sort((a, b) => size[b] - size[a] || a - b);
  const share = percent(total / Math.max(1, plan.spaces[memoryMap.space].size));
  byId('peak-title').textContent =
    `Alive at the peak: ${bytes(total)} in ${plan.spaces[memoryMap.space].name} at cycle ${count(cycle)}, ${share} of it`;
  const head = element('tr', {});
  for (const [text, kind] of [['buffer', ''], ['role', ''], ['size', 'number'], ['address', 'number'], ['from', 'number'], ['to', 'number']]) {
    head.append(element('th', { className: kind, scope: 'col' }, text));
  }
  const rows = alive.slice(0, 200).map((n) => {
    const bar = element('td', { className: 'number measure' }, `${count(size[n])} B`);
    bar.style.setProperty('--share', size[n] / Math.max(1, size[alive[0]]));
    const cells = [count(address[n]), count(start[n]), count(end[n])];
    const row = element(
      'tr',
      {},
      element('td', { title: name[n] }, rolling[n] ? bufferName(n) : shortened(bufferName(n), 40)),
      element('td', {}, plan.roles[role[n]]),
      bar,
      ...cells.map((text) => element('td', { className: 'number' }, text)),
    );
    activeRow(row, () => select('buffer', n));
    return row;
  });
  byId('peak').replaceChildren(element('thead', {}, head), element('tbody', {}, ...rows));
}

function setUpMemory() {
  memoryMap.view = canvasView(byId('memory'), () => memoryMap.plotHeight, drawMemory);
  memoryMap.fillView = canvasView(byId('fill'), () => memoryMap.fillHeight, drawFill);
  attachPointer(memoryMap.view, memoryMap.left, {
    hover: (event) => {
      const n = bufferAt(event.offsetX, event.offsetY);
      showTip(event, n < 0 ? '' : bufferText(n));
    },
    leave: (event) => showTip(event, ''),
    click: (event) => {
      const n = bufferAt(event.offsetX, event.offsetY);
      if (n < 0) select(null);
      else select('buffer', n);
    },
  });
  byId('memory').addEventListener('keydown', zoomKey);
  byId('memory-capacity').addEventListener('change', redrawMemory);
  zoomButtons(byId('memory-zoom'));
  plan.spaces.forEach((space, number) => {
    const properties = { type: 'button', role: 'radio', onclick: () => chooseSpace(number) };
    const button = element('button', properties, space.name);
    button.setAttribute('role', 'radio');
    button.dataset.space = number;
    byId('memory-spaces').append(button);
  });
  legend(byId('memory-legend'), plan.roles, ROLE_NAMES);
  if (plan.buffers.rolling.some(Boolean)) {
    byId('memory-legend').append(element('span', {}, element('i', { className: 'striped' }), 'rolling buffer'));
  }
  viewport.listeners.push(redrawMemory);
  selection.listeners.push(redrawMemory);
  if (plan.spaces.length) chooseSpace(0);
}
