// The network as a graph of its ops, from top to bottom; cascades are framed.

const graphSizes = { node: 240, height: 38, across: 26, down: 26, margin: 24, label: 18 };

// The length of the longest way to each op decides its layer.
function graphLayers() {
  const { edges } = plan.graph;
  const before = plan.ops.name.map(() => []);
  const after = plan.ops.name.map(() => []);
  const missing = plan.ops.name.map(() => 0);
  for (const [from, to] of edges) {
    before[to].push(from);
    after[from].push(to);
    missing[to] += 1;
  }
  const layer = plan.ops.name.map(() => 0);
  const ready = missing.flatMap((number, op) => (number ? [] : [op]));
  for (let place = 0; place < ready.length; place += 1) {
    for (const next of after[ready[place]]) {
      layer[next] = Math.max(layer[next], layer[ready[place]] + 1);
      missing[next] -= 1;
      if (!missing[next]) ready.push(next);
    }
  }
  return { layer, before };
}

// In a layer, ops stand below the middle of what they read.
function graphPlaces() {
  const { layer, before } = graphLayers();
  const layers = [];
  layer.forEach((number, op) => (layers[number] = layers[number] || []).push(op));
  const column = layer.map(() => 0);
  for (const ops of layers) {
    const wish = (op) => {
      const known = before[op].map((other) => column[other]);
      return known.length ? known.reduce((sum, v) => sum + v, 0) / known.length : 0;
    };
    const wishes = new Map(ops.map((op) => [op, wish(op)]));
    ops.sort((a, b) => wishes.get(a) - wishes.get(b) || a - b);
    const middle = ops.reduce((sum, op) => sum + wishes.get(op), 0) / ops.length;
    ops.forEach((op, place) => (column[op] = middle + place - (ops.length - 1) / 2));
  }
  const least = Math.min(...column);
  const { node, height, across, down, margin } = graphSizes;
  const frames = cascadeFrames(column, layer);
  const labels = labelRoom(frames, layer, layers.length);
  const places = column.map((at, op) => ({
    x: margin + (at - least) * (node + across),
    y: margin + layer[op] * (height + down) + labels[layer[op]],
  }));
  return { places, layer, frames };
}

// An edge to the next layer is a curve; others run down beside all ops between, at `side`.
function edgePath(from, to, side) {
  const { node, height, down } = graphSizes;
  const startX = from.x + node / 2;
  const endX = to.x + node / 2;
  const startY = from.y + height;
  if (side === null) {
    const bend = (to.y - startY) / 2;
    return `M${startX} ${startY}C${startX} ${startY + bend} ${endX} ${to.y - bend} ${endX} ${to.y}`;
  }
  const right = startX + node / 2 - 20;
  const back = endX + node / 2 - 20;
  return `M${right} ${startY}C${right} ${startY + down} ${side} ${startY} ${side} ${startY + down}` +
    `L${side} ${to.y - down}C${side} ${to.y} ${back} ${to.y - down} ${back} ${to.y}`;
}

function drawEdges(svg, places, layer) {
  const rights = [];
  places.forEach((place, op) => {
    rights[layer[op]] = Math.max(rights[layer[op]] || 0, place.x + graphSizes.node);
  });
  plan.graph.edges.forEach(([from, to], number) => {
    const between = rights.slice(layer[from], layer[to] + 1);
    const side = layer[to] - layer[from] > 1 ? Math.max(...between) + 18 + 7 * (number % 3) : null;
    svg.append(drawn('path', {
      d: edgePath(places[from], places[to], side),
      fill: 'none',
      stroke: 'var(--soft)',
      'stroke-width': 1.2,
      'marker-end': 'url(#edge-mark)',
    }));
  });
}

function drawNode(op, place, most, pen) {
  const { node, height } = graphSizes;
  const { name, kind, busy_cycles: busy, bound_by: boundBy } = plan.ops;
  const share = busy[op] / most;
  const group = drawn('g', { class: 'clickable', tabindex: 0, role: 'button', 'aria-label': name[op], 'data-op': op });
  const fill = `color-mix(in srgb, var(--array) ${Math.round(8 + 62 * share)}%, var(--raised))`;
  group.append(drawn('rect', { x: place.x, y: place.y, width: node, height, rx: 7, style: `fill: ${fill}`, stroke: 'var(--line)' }));
  group.append(drawn('text', { x: place.x + 10, y: place.y + 16 }, fittingEnd(pen, firstName(name[op]), node - 20)));
  group.append(drawn('text', { x: place.x + 10, y: place.y + 31, class: share > 0.5 ? '' : 'soft' }, `${kind[op]}, ${count(busy[op])} cycles`));
  hoverText(group, `${name[op]}\n${cycles(busy[op])}\nbound by ${boundBy[op]}`);
  onActivate(group, () => select('op', op));
  return group;
}

function drawNetwork() {
  const { places, layer, frames } = graphPlaces();
  if (!places.length) return;
  const { node, height, margin } = graphSizes;
  const width = Math.max(...places.map((p) => p.x)) + node + margin + 40;
  const tall = Math.max(...places.map((p) => p.y)) + height + margin;
  const svg = drawn('svg', { width, height: tall, 'aria-label': `Network ${plan.network}` });
  const marker = drawn('marker', { id: 'edge-mark', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, orient: 'auto' }, drawn('path', { d: 'M0 0L8 4L0 8z', fill: 'var(--soft)' }));
  svg.append(drawn('defs', {}, marker));
  const labels = drawFrames(svg, places, frames);
  drawEdges(svg, places, layer);
  svg.append(...labels);
  const most = Math.max(1, ...plan.ops.busy_cycles);
  const pen = labelPen();
  places.forEach((place, op) => svg.append(drawNode(op, place, most, pen)));
  const holder = byId('network');
  holder.replaceChildren(svg);
  holder.scrollLeft = places[0].x + node / 2 - holder.clientWidth / 2;
}

function markNode(chosen) {
  for (const node of byId('network').querySelectorAll('g[data-op]')) {
    const same = chosen !== null && chosen.kind === 'op' && chosen.number === Number(node.dataset.op);
    node.firstChild.setAttribute('stroke', same ? 'var(--select)' : 'var(--line)');
    node.firstChild.setAttribute('stroke-width', same ? 3 : 1);
  }
}
