// The machine as a drawing: what lies outside on top, then what moves bytes, then the cores.

const machineSizes = { width: 900, gap: 14, row: 46, memory: 60, coreWidth: 270, most: 3 };

function bits(value) {
  return value % 8 || value < 8192 ? `${count(value)} bit` : bytes(value / 8);
}

function several(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

function machineBox(svg, box, title, lines, fill, share) {
  svg.append(drawn('rect', { x: box.x, y: box.y, width: box.width, height: box.height, rx: 6, fill: 'var(--raised)', stroke: 'var(--line)' }));
  if (share) {
    const meter = drawn('rect', { x: box.x, y: box.y + box.height - 5, width: box.width * Math.min(1, share), height: 5, rx: 2, fill: `var(--${fill})` });
    hoverText(meter, `${title}: ${percent(share)}`);
    svg.append(meter);
  }
  const room = Math.floor((box.width - 20) / 6.8);
  svg.append(drawn('text', { x: box.x + 10, y: box.y + 17, 'font-weight': 600 }, title));
  lines.forEach((line, place) => {
    const text = line.length > room ? `${line.slice(0, room - 1)}…` : line;
    const made = drawn('text', { x: box.x + 10, y: box.y + 33 + 15 * place, class: 'soft' }, text);
    hoverText(made, line);
    svg.append(made);
  });
}

function memoryLines(memory) {
  const ports = memory.ports.map(([name, kind, width]) => `${name} ${width}`).join(', ');
  const size = memory.peak ? `${bytes(memory.peak)} of ${bits(memory.bits)} used` : bits(memory.bits);
  return [`${size}; holds ${memory.operands.join(' ')}`, `bit a cycle: ${ports}`];
}

function memoryShare(memory) {
  return memory.peak ? (8 * memory.peak) / memory.bits : 0;
}

function arrow(svg, x, from, to, text) {
  svg.append(drawn('line', { x1: x, x2: x, y1: from + 2, y2: to - 2, stroke: 'var(--soft)', 'stroke-width': 2, 'marker-start': 'url(#tip-mark)', 'marker-end': 'url(#tip-mark)' }));
  if (text) svg.append(drawn('text', { x: x + 8, y: (from + to) / 2 + 4, class: 'soft' }, text));
}

function drawOutside(svg, y) {
  const { drawing } = plan;
  const above = [
    ...drawing.shared.map((m) => [m.name, memoryLines(m), memoryShare(m)]),
    ...drawing.memories.filter((m) => m.role === 'external').map((m) => [m.name, memoryLines(m), memoryShare(m)]),
    ...drawing.sources.map((e) => [`source ${e.name}`, [`${e.kind}, ${e.operands.join(' ')} to ${e.memory}`], drawing.busy[e.name] || 0]),
    ...drawing.sinks.map((e) => [`sink ${e.name}`, [`${e.kind}, ${e.operands.join(' ')} from ${e.memory}`], drawing.busy[e.name] || 0]),
  ];
  for (const [title, lines, share] of above) {
    const height = lines.length > 1 ? machineSizes.memory : machineSizes.row;
    machineBox(svg, { x: 0, y, width: machineSizes.width, height }, title, lines, 'activation', share);
    y += height + 6;
  }
  return y - 6;
}

function drawMovers(svg, y) {
  const { drawing } = plan;
  const movers = [
    ...drawing.dma.map((d) => [`DMA ${d.name}`, [`${several(d.ports, 'port')}, ${several(d.queues, 'queue')}, ${d.bits_per_cycle} bit a cycle, ${count(d.setup_cycles)} cycles to set up`], drawing.busy[d.name] || drawing.busy[`${d.name}.0`] || 0]),
    ...drawing.links.map((l) => [`${l.kind} ${l.name}`, [`${l.bits_per_cycle} bit a cycle, connects ${l.connects.join(', ')}`], drawing.busy[l.name] || 0]),
  ];
  if (!drawing.dma.length && drawing.busy.dma !== undefined) movers.unshift(['DMA (assumed)', ['as wide as what lies outside'], drawing.busy.dma]);
  if (!movers.length) return y;
  const width = (machineSizes.width - machineSizes.gap * (movers.length - 1)) / movers.length;
  movers.forEach(([title, lines, share], place) => {
    machineBox(svg, { x: place * (width + machineSizes.gap), y, width, height: machineSizes.row }, title, lines, 'ahead', share);
  });
  return y + machineSizes.row;
}

function coreHeight() {
  const inside = plan.drawing.memories.filter((m) => m.role !== 'external');
  return 34 + inside.length * (machineSizes.memory + 6) + 2 * (machineSizes.row + 6) + 4;
}

function drawCore(svg, number, x, y, width) {
  const { drawing } = plan;
  svg.append(drawn('rect', { x, y, width, height: coreHeight(), rx: 8, fill: 'none', stroke: 'var(--soft)', 'stroke-dasharray': '4 3' }));
  svg.append(drawn('text', { x: x + 10, y: y + 20, 'font-weight': 600 }, drawing.cores > 1 ? `core[${number}] (${drawing.core})` : drawing.core));
  let at = y + 32;
  const inner = { x: x + 8, width: width - 16, height: machineSizes.row };
  for (const memory of drawing.memories.filter((m) => m.role !== 'external').reverse()) {
    const box = { ...inner, y: at, height: machineSizes.memory };
    machineBox(svg, box, memory.name, memoryLines(memory), 'activation', memoryShare(memory));
    at += machineSizes.memory + 6;
  }
  const dims = drawing.array.map(([name, size]) => `${name} ${size}`).join(' × ');
  machineBox(svg, { ...inner, y: at }, `array of ${count(drawing.units)}`, [dims], 'array', drawing.busy[`core[${number}]`]);
  at += machineSizes.row + 6;
  const lanes = drawing.lanes === null ? 'not declared; a default serves' : `${drawing.lanes} lanes`;
  machineBox(svg, { ...inner, y: at }, 'vector unit', [lanes], 'vector', drawing.busy[`core[${number}].vector`]);
}

function drawMachine() {
  const { drawing } = plan;
  byId('machine-text').textContent = `${drawing.description} The bars at the bottom of the boxes show how busy an engine is, and how full a memory.`.trim();
  const shown = Math.min(drawing.cores, machineSizes.most);
  machineSizes.width = Math.max(340, Math.min(1240, byId('machine').clientWidth - 4));
  const svg = drawn('svg', { width: machineSizes.width, role: 'img', 'aria-label': `Machine ${plan.machine}` });
  const marker = drawn('marker', { id: 'tip-mark', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto-start-reverse' }, drawn('path', { d: 'M0 0L8 4L0 8z', fill: 'var(--soft)' }));
  svg.append(drawn('defs', {}, marker));
  let y = drawOutside(svg, 0);
  const movers = drawing.dma.length || drawing.links.length || drawing.busy.dma !== undefined;
  if (movers) {
    arrow(svg, machineSizes.width / 2, y, y + 30, '');
    y = drawMovers(svg, y + 30);
  }
  const width = (machineSizes.width - machineSizes.gap * (shown - 1)) / shown;
  for (let core = 0; core < shown; core += 1) {
    const x = core * (width + machineSizes.gap);
    arrow(svg, x + width / 2, y, y + 30, '');
    drawCore(svg, core, x, y + 30, width);
  }
  y += 30 + coreHeight();
  if (drawing.cores > shown) {
    svg.append(drawn('text', { x: 4, y: y + 20, class: 'soft' }, `and ${drawing.cores - shown} more cores like these`));
    y += 28;
  }
  svg.setAttribute('height', y + 4);
  byId('machine').replaceChildren(svg);
}
