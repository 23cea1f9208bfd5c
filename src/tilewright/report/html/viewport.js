// The range of cycles on screen, shared by timeline and memory map; zoom and pan for canvases.

const viewport = {
  start: 0,
  end: Math.max(1, plan.cycles),
  listeners: [],
};

function changeRange(start, end) {
  const whole = Math.max(1, plan.cycles);
  const least = Math.min(whole, 20);
  const length = Math.min(whole * 1.04, Math.max(least, end - start));
  const margin = Math.max(0, (length - whole) / 2, whole * 0.02);
  const first = Math.max(-margin, Math.min(start, whole + margin - length));
  viewport.start = first;
  viewport.end = first + length;
  for (const listener of viewport.listeners) listener();
}

function zoomAt(cycle, factor) {
  const { start, end } = viewport;
  changeRange(cycle - (cycle - start) * factor, cycle + (end - cycle) * factor);
}

function zoomMiddle(factor) {
  zoomAt((viewport.start + viewport.end) / 2, factor);
}

function panBy(share) {
  const step = (viewport.end - viewport.start) * share;
  changeRange(viewport.start + step, viewport.end + step);
}

const fitAll = () => changeRange(0, plan.cycles);

function showCycles(start, end) {
  const span = Math.max(end - start, 1);
  if (start >= viewport.start && end <= viewport.end && span * 60 > viewport.end - viewport.start) return;
  changeRange(start - span * 4, end + span * 4);
}

function zoomButtons(holder) {
  const buttons = [
    ['+', 'Zoom in', () => zoomMiddle(0.5)],
    ['−', 'Zoom out', () => zoomMiddle(2)],
    ['Fit', 'Show all', fitAll],
  ];
  for (const [text, title, onclick] of buttons) {
    holder.append(element('button', { type: 'button', title, onclick }, text));
  }
}

// A canvas that is drawn at most once a frame, at the screen's resolution.
function canvasView(canvas, height, draw) {
  const view = { canvas, width: 0, height: 0, pending: false, context: canvas.getContext('2d') };
  view.redraw = () => {
    if (view.pending || !canvas.offsetParent) return;
    view.pending = true;
    requestAnimationFrame(() => {
      view.pending = false;
      paint(view, height(), draw);
    });
  };
  new ResizeObserver(view.redraw).observe(canvas);
  return view;
}

function paint(view, height, draw) {
  const width = view.canvas.clientWidth;
  if (!width) return;
  const scale = devicePixelRatio || 1;
  if (view.width !== width || view.height !== height || view.scale !== scale) {
    Object.assign(view, { width, height, scale });
    view.canvas.style.height = `${height}px`;
    view.canvas.width = Math.round(width * scale);
    view.canvas.height = Math.round(height * scale);
  }
  view.context.setTransform(scale, 0, 0, scale, 0, 0);
  view.context.clearRect(0, 0, width, height);
  draw(view.context, width, height);
}

// Cycles and pixels of a canvas whose plot begins `left` pixels from its edge.
function timeScale(left, width) {
  const { start, end } = viewport;
  const perCycle = (width - left) / (end - start);
  return {
    left,
    perCycle,
    x: (cycle) => left + (cycle - start) * perCycle,
    cycle: (x) => start + (x - left) / perCycle,
  };
}

// Drag pans, two fingers or the wheel zoom, double click is handed on.
function attachPointer(view, left, handlers) {
  const { canvas } = view;
  const fingers = new Map();
  let moved = 0;
  const scale = () => timeScale(left(), view.width);
  canvas.addEventListener('pointerdown', (event) => {
    fingers.set(event.pointerId, event.offsetX);
    if (event.pointerType !== 'mouse' || event.button === 0) canvas.setPointerCapture(event.pointerId);
    moved = 0;
  });
  canvas.addEventListener('pointermove', (event) => {
    if (!fingers.has(event.pointerId)) {
      handlers.hover(event);
      return;
    }
    moved += Math.abs(event.offsetX - fingers.get(event.pointerId));
    if (moved > 3) canvas.classList.add('dragging');
    dragFingers(fingers, event, scale());
    showTip(event, '');
  });
  for (const name of ['pointerup', 'pointercancel']) {
    canvas.addEventListener(name, (event) => {
      const clicked = name === 'pointerup' && fingers.size === 1 && moved <= 3;
      fingers.delete(event.pointerId);
      canvas.classList.remove('dragging');
      if (clicked) handlers.click(event);
    });
  }
  canvas.addEventListener('pointerleave', (event) => handlers.leave(event));
  canvas.addEventListener('dblclick', (event) => zoomAt(scale().cycle(event.offsetX), 0.4));
  canvas.addEventListener('wheel', (event) => wheel(event, canvas, scale()), { passive: false });
}

function dragFingers(fingers, event, scale) {
  const before = [...fingers.values()];
  fingers.set(event.pointerId, event.offsetX);
  const now = [...fingers.values()];
  if (now.length === 1) {
    const step = (before[0] - now[0]) / scale.perCycle;
    changeRange(viewport.start + step, viewport.end + step);
  } else if (Math.abs(now[0] - now[1]) > 8) {
    const middle = scale.cycle((now[0] + now[1]) / 2);
    zoomAt(middle, Math.abs(before[0] - before[1]) / Math.abs(now[0] - now[1]));
  }
}

function wheel(event, canvas, scale) {
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    panBy(event.deltaX / 800);
  } else if (event.ctrlKey || event.metaKey || document.activeElement === canvas) {
    event.preventDefault();
    zoomAt(scale.cycle(event.offsetX), Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))));
  }
}

function zoomKey(event) {
  const actions = {
    '+': () => zoomMiddle(0.6),
    '=': () => zoomMiddle(0.6),
    '-': () => zoomMiddle(1.6),
    f: fitAll,
    F: fitAll,
    ArrowLeft: () => panBy(-0.15),
    ArrowRight: () => panBy(0.15),
    Home: () => changeRange(0, viewport.end - viewport.start),
    End: () => changeRange(plan.cycles - (viewport.end - viewport.start), plan.cycles),
    Escape: () => select(null),
  };
  if (!(event.key in actions) || event.ctrlKey || event.metaKey) return false;
  event.preventDefault();
  actions[event.key]();
  return true;
}

// Round steps: 1, 2 or 5 times a power of ten, about `wanted` of them.
function ticks(low, high, wanted) {
  const rough = (high - low) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

function shortCount(value, span) {
  const units = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [unit, letter] of units) {
    if (span >= unit / 5 && value >= unit) return `${Number((value / unit).toFixed(3))}${letter}`;
  }
  return count(value);
}

function drawTimeAxis(context, scale, width, height) {
  context.font = '11px system-ui, sans-serif';
  context.textBaseline = 'top';
  context.textAlign = 'center';
  const span = viewport.end - viewport.start;
  for (const cycle of ticks(Math.max(0, viewport.start), Math.min(viewport.end, plan.cycles), (width - scale.left) / 110)) {
    const x = Math.round(scale.x(cycle)) + 0.5;
    context.fillStyle = colour('line');
    context.fillRect(x - 0.5, 20, 1, height - 20);
    context.fillStyle = colour('soft');
    context.fillText(shortCount(cycle, span), Math.max(x, scale.left + 8), 4);
  }
}
