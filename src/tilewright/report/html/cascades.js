// Cascades in the drawing of the network: frames around ops that run side by side.

function cascadeText(number) {
  const { numbers, pace } = plan.cascades[number];
  return `cascade ${number + 1}: ${pace || `${numbers.length} ops whose tiles take turns`}`;
}

// Frames as {number, ops, text}. Where one frame would enclose another op, a cascade has several.
function cascadeFrames(column, layer) {
  const frames = [];
  plan.cascades.forEach(({ numbers }, number) => {
    const parts = [];
    for (const op of numbers) {
      const last = parts.at(-1);
      if (last && isFree([...last, op], numbers, column, layer)) last.push(op);
      else parts.push([op]);
    }
    parts.forEach((ops, place) => {
      const text = place ? `cascade ${number + 1}, continued` : cascadeText(number);
      frames.push({ number, ops, text });
    });
  });
  return frames;
}

// Whether the rectangle around some ops encloses none but those of their cascade.
function isFree(ops, cascade, column, layer) {
  const columns = ops.map((op) => column[op]);
  const layers = ops.map((op) => layer[op]);
  const inside = new Set(cascade);
  return column.every((at, op) =>
    inside.has(op) || layer[op] < Math.min(...layers) || layer[op] > Math.max(...layers) ||
    at <= Math.min(...columns) - 1 || at >= Math.max(...columns) + 1);
}

// By layer, the room that labels of frames take above it.
function labelRoom(frames, layer, layers) {
  const starts = new Set(frames.map(({ ops }) => Math.min(...ops.map((op) => layer[op]))));
  let room = 0;
  return Array.from({ length: layers }, (_, number) => (room += starts.has(number) ? graphSizes.label : 0));
}

// Measures texts of the drawing.
function labelPen() {
  const context = document.createElement('canvas').getContext('2d');
  context.font = '12px system-ui, sans-serif';
  return context;
}

// Draws the frames, and returns their labels: those belong on top of the edges.
function drawFrames(svg, places, frames) {
  const pen = labelPen();
  const { node, height, label } = graphSizes;
  return frames.map(({ number, ops, text }) => {
    const left = Math.min(...ops.map((op) => places[op].x)) - 9;
    const top = Math.min(...ops.map((op) => places[op].y)) - 5 - label;
    const right = Math.max(...ops.map((op) => places[op].x)) + node + 9;
    const bottom = Math.max(...ops.map((op) => places[op].y)) + height + 8;
    const width = Math.max(right - left, pen.measureText(text).width + 20);
    const group = drawn('g', { class: 'cascade' }, drawn('rect', { x: left, y: top, width, height: bottom - top, rx: 10 }));
    hoverText(group, `${cascadeText(number)}\n${plan.cascades[number].numbers.length} ops run side by side`);
    svg.append(group);
    return drawn('text', { x: left + 10, y: top + 15, class: 'cascade-label' }, text);
  });
}
