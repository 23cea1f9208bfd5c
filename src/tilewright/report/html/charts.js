// The roofline with a dot for each op, and energy by memory and operand.

const OPERAND_COLOURS = {
  multiplications: 'array',
  'vector unit': 'vector',
  I: 'input',
  W: 'constant',
  O: 'output',
  B: 'move',
  leakage: 'move',
};
const OPERAND_NAMES = { I: 'I, first input', W: 'W, second input', O: 'O, result', B: 'B, bias' };

function rooflinePoints() {
  const { macs, traffic_bytes: traffic, busy_cycles: busy, idle_cycles: idle, name } = plan.ops;
  const points = [];
  macs.forEach((amountMacs, op) => {
    if (!amountMacs) return;
    const rate = amountMacs / Math.max(1, (busy[op] + idle[op]) / plan.roofline.cores);
    points.push({ op, name: name[op], rate, intensity: traffic[op] ? amountMacs / traffic[op] : Infinity, busy: busy[op] });
  });
  return points;
}

function wholePlanPoint() {
  const macs = plan.ops.macs.reduce((sum, v) => sum + v, 0);
  const intensity = plan.roofline.traffic_bytes ? macs / plan.roofline.traffic_bytes : Infinity;
  return { op: -1, name: 'the whole plan', rate: macs / Math.max(1, plan.cycles), intensity };
}

function logScale(low, high, from, to) {
  const first = Math.log10(low);
  const span = Math.max(1e-9, Math.log10(high) - first);
  return (value) => from + ((Math.log10(value) - first) / span) * (to - from);
}

function rooflineScales(points, width, height) {
  const { macs_per_cycle: peak, bytes_per_cycle: rate } = plan.roofline;
  const ridge = peak / Math.max(rate, 1e-9);
  const finite = points.map((p) => p.intensity).filter((v) => Number.isFinite(v) && v > 0);
  const low = 10 ** Math.floor(Math.log10(Math.min(ridge / 10, ...finite)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(ridge * 10, ...finite)));
  const rates = points.map((p) => p.rate).filter((v) => v > 0);
  const least = 10 ** Math.floor(Math.log10(Math.min(peak / 10, ...rates)));
  return {
    low, high, least, most: peak * 1.6, ridge,
    x: logScale(low, high, 64, width - 20),
    y: logScale(least, peak * 1.6, height - 40, 14),
  };
}

function decades(low, high) {
  const found = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.0001; power += 1) found.push(10 ** power);
  return found;
}

function rooflineAxes(svg, scales, width, height) {
  for (const value of decades(scales.low, scales.high)) {
    const x = scales.x(value);
    svg.append(drawn('line', { x1: x, x2: x, y1: 14, y2: height - 40, stroke: 'var(--line)' }));
    svg.append(drawn('text', { x, y: height - 24, 'text-anchor': 'middle', class: 'soft' }, count2(value)));
  }
  for (const value of decades(scales.least, scales.most)) {
    const y = scales.y(value);
    svg.append(drawn('line', { x1: 64, x2: width - 20, y1: y, y2: y, stroke: 'var(--line)' }));
    svg.append(drawn('text', { x: 58, y: y + 4, 'text-anchor': 'end', class: 'soft' }, count2(value)));
  }
  svg.append(drawn('text', { x: width / 2, y: height - 6, 'text-anchor': 'middle', class: 'soft' }, 'multiplications for each byte from or to outside'));
  const turn = `rotate(-90 14 ${height / 2})`;
  svg.append(drawn('text', { x: 14, y: height / 2, 'text-anchor': 'middle', class: 'soft', transform: turn }, 'multiplications a cycle'));
}

const count2 = (value) => (value < 1 ? String(Number(value.toPrecision(2))) : shortCount(value, value));

function drawRoofline() {
  const holder = byId('roofline');
  const points = rooflinePoints();
  if (!points.length || !plan.roofline.bytes_per_cycle) {
    holder.replaceChildren(element('p', { className: 'hint' }, 'No op of this plan multiplies.'));
    return;
  }
  const width = Math.max(360, Math.min(1100, holder.clientWidth));
  const height = 400;
  const svg = drawn('svg', { width, height, role: 'img', 'aria-label': 'Roofline' });
  const scales = rooflineScales([...points, wholePlanPoint()], width, height);
  rooflineAxes(svg, scales, width, height);
  const { macs_per_cycle: peak, bytes_per_cycle: rate } = plan.roofline;
  const start = Math.max(scales.low, scales.least / rate);
  const corners = [[start, start * rate], [scales.ridge, peak], [scales.high, peak]];
  const path = corners.map(([x, y]) => `${scales.x(x)},${scales.y(y)}`).join(' ');
  svg.append(drawn('polyline', { points: path, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 2 }));
  const allowed = `${count(peak)} multiplications and ${digits(rate)} B a cycle`;
  svg.append(drawn('text', { x: width - 28, y: height - 52, 'text-anchor': 'end' }, allowed));
  const largest = Math.max(...points.map((p) => p.busy));
  points.sort((a, b) => b.busy - a.busy);
  for (const point of points) svg.append(dot(point, scales, 4 + 8 * Math.sqrt(point.busy / largest)));
  svg.append(planMark(wholePlanPoint(), scales));
  holder.replaceChildren(svg);
}

function dot(point, scales, radius) {
  const made = drawn('circle', {
    cx: scales.x(Math.min(point.intensity, scales.high)),
    cy: scales.y(Math.max(point.rate, scales.least)),
    r: radius,
    fill: 'var(--array)',
    'fill-opacity': 0.65,
    stroke: 'var(--ground)',
    class: 'clickable',
    tabindex: 0,
  });
  hoverText(made, pointText(point));
  onActivate(made, () => select('op', point.op));
  return made;
}

function pointText(point) {
  const reuse = Number.isFinite(point.intensity) ? `${digits(point.intensity)} a byte` : 'no traffic from outside';
  return `${point.name}\n${digits(point.rate)} multiplications a cycle, ${reuse}`;
}

function planMark(point, scales) {
  const x = scales.x(Math.min(point.intensity, scales.high));
  const y = scales.y(Math.max(point.rate, scales.least));
  const made = drawn('path', { d: `M${x} ${y - 9}l9 9l-9 9l-9 -9z`, fill: 'var(--select)', stroke: 'var(--ground)' });
  hoverText(made, pointText(point));
  return made;
}

function hoverText(node, text) {
  node.addEventListener('pointermove', (event) => showTip(event, text));
  node.addEventListener('pointerleave', (event) => showTip(event, ''));
  node.append(drawn('title', {}, text));
}

function onActivate(node, action) {
  node.addEventListener('click', action);
  node.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      action();
    }
  });
}

// A row of a table that can be clicked, and reached by keyboard.
function activeRow(row, action) {
  Object.assign(row, { className: 'clickable', tabIndex: 0 });
  onActivate(row, action);
}

function energyTotals() {
  const sum = (row) => Object.values(row.operands).reduce((total, v) => total + v, 0);
  return plan.energy.map((row) => ({ ...row, total: sum(row) })).sort((a, b) => b.total - a.total);
}

function drawEnergy() {
  const rows = energyTotals();
  const whole = rows.reduce((sum, row) => sum + row.total, 0) || 1;
  const largest = rows.length ? rows[0].total || 1 : 1;
  const width = Math.max(300, Math.min(1100, byId('energy').clientWidth));
  const names = rows.map((row) => shortened(row.memory, width < 520 ? 16 : 24));
  const left = 7.4 * Math.max(8, ...names.map((name) => name.length));
  const plot = width - left - 140;
  const svg = drawn('svg', { width, height: rows.length * 30 + 8, role: 'img', 'aria-label': 'Energy by memory and operand' });
  rows.forEach((row, place) => {
    const y = place * 30 + 4;
    svg.append(drawn('text', { x: left, y: y + 16, 'text-anchor': 'end' }, names[place]));
    let x = left + 10;
    for (const [operand, value] of Object.entries(row.operands)) {
      const part = drawn('rect', { x, y, width: (plot * value) / largest, height: 22, fill: `var(--${OPERAND_COLOURS[operand] || 'move'})` });
      hoverText(part, `${row.memory}, ${OPERAND_NAMES[operand] || operand}\n${energy(value)}, ${percent(value / whole)} of the plan`);
      svg.append(part);
      x += (plot * value) / largest;
    }
    svg.append(drawn('text', { x: x + 8, y: y + 16 }, `${energy(row.total)}, ${percent(row.total / whole)}`));
  });
  byId('energy').replaceChildren(svg);
}

function drawCharts() {
  drawRoofline();
  drawEnergy();
}

function setUpCharts() {
  const used = new Set(plan.energy.flatMap((row) => Object.keys(row.operands)));
  for (const operand of Object.keys(OPERAND_COLOURS).filter((name) => used.has(name))) {
    const mark = element('i');
    mark.style.background = `var(--${OPERAND_COLOURS[operand]})`;
    byId('energy-legend').append(element('span', {}, mark, OPERAND_NAMES[operand] || operand));
  }
}
