// The headline, tabs and theme; and what tests may look at.

const TABS = [
  ['timeline', 'Timeline', () => timeline.view.redraw()],
  ['memory', 'Memory', () => redrawMemory()],
  ['ops', 'Ops', () => {}],
  ['why', 'Why', () => {}],
  ['charts', 'Roofline & energy', () => drawCharts()],
  ['machine', 'Machine', () => drawMachine()],
  ['network', 'Network', () => { if (!byId('network').firstChild) drawNetwork(); }],
  ['assumptions', 'Assumptions', () => {}],
];
const WITHOUT_DETAIL = ['why', 'machine', 'assumptions'];

const WORDS = [
  ['load ahead of use', 'bytes that arrive while the engine that needs them still works on something else: it does not wait for them'],
  ['load that is waited for', 'bytes for which an array or vector unit stands idle'],
  ['load again', 'bytes that were on the chip before, or were spilled, and had to leave for want of room'],
  ['spill', 'a result that is written out and read back later'],
  ['waiting', 'cycles in which the engine of an op stood idle before its tiles'],
  ['stalls', 'cycles inside a tile in which a port between memories holds the array up'],
  ['the machine’s bound', 'what no plan of the network can beat on this machine'],
  ['these tiles’ bound', 'what no schedule of these tiles in this order can beat'],
  ['these lives’ bound', 'what no placement can beat of buffers that live as long as these'],
  ['outside traffic', 'bytes read from and written to memories, sources and sinks outside the chip'],
  ['cascade', 'ops that run side by side, some rows of their results at a time'],
  ['strips', 'ops that run some columns of their last result at a time; columns near the border of two strips are computed for both'],
  ['layer by layer', 'one op after the other, each with all of its inputs and results at once'],
  ['rolling buffer', 'holds those rows of a tensor that are still needed; later ones are written over earlier ones'],
];

function againstBound(figure, { bound, whose }) {
  if (!(bound > 0)) return 'no bound is known';
  const ratio = figure.value / bound;
  return `${ratio < 10 ? ratio.toFixed(2) : digits(ratio)} × ${whose}, ${amount(bound, figure.unit)}`;
}

function card(figure) {
  const bounds = figure.also ? [figure, figure.also] : [figure];
  const fill = element('i');
  fill.style.width = `${figure.value > 0 ? Math.min(100, (100 * figure.bound) / figure.value) : 0}%`;
  const capacity = figure.capacity ? ` of ${bytes(figure.capacity)}` : '';
  return element(
    'div',
    { className: 'card', title: bounds.map(({ whose, meaning }) => `${whose}: ${meaning}.`).join(' ') },
    element('div', { className: 'name' }, figure.name),
    element('div', { className: 'value' }, amount(figure.value, figure.unit)),
    element('div', { className: 'exact' }, `${exact(figure.value, figure.unit)}${capacity}`),
    element('div', { className: 'meter' }, fill),
    ...bounds.map((bound) => element('div', { className: 'exact' }, againstBound(figure, bound))),
  );
}

function boundSentence() {
  const { why, busiest } = plan;
  const busy = `${busiest.name} is busy ${percent(busiest.share)} of the time.`;
  if (why === null) return [busy];
  const name = element('b', {}, why.bottleneck === null ? 'no part alone' : why.bottleneck);
  return ['What bounds the plan: ', name, `. ${whySentence(why)} `, busy];
}

function setUpHeadline() {
  byId('subtitle').textContent =
    `Planned for ${plan.objective} by Tilewright ${plan.version}: ${count(plan.tasks.start.length)} tasks, ` +
    `${count(plan.buffer_count)} buffers, ${plan.checked ? 'checked' : 'not checked'}` +
    `${plan.verified ? ', replayed' : ''}` +
    `${plan.clock_hz ? `, clock ${digits(plan.clock_hz / 1e6)} MHz` : ''}.`;
  byId('headline').append(...plan.cards.map(card));
  byId('bound').append(...boundSentence());
  const assumed = plan.assumptions.length ? plan.assumptions : ['Nothing.'];
  byId('assumptions').append(...assumed.map((text) => element('li', {}, text)));
  for (const [word, meaning] of WORDS) byId('words').append(element('dt', {}, word), element('dd', {}, meaning));
}

function showTab(name) {
  for (const [other, , draw] of TABS) {
    const shown = other === name;
    byId(`panel-${other}`).hidden = !shown;
    const tab = byId(`tab-${other}`);
    tab.setAttribute('aria-selected', String(shown));
    tab.tabIndex = shown ? 0 : -1;
    if (shown) {
      byId('content').classList.toggle('wide', WITHOUT_DETAIL.includes(other));
      tab.scrollIntoView({ block: 'nearest', inline: 'nearest' });
      draw();
    }
  }
  if (location.hash !== `#tab=${name}`) history.replaceState(null, '', `#tab=${name}`);
}

function tabKey(event, place) {
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const [name] = TABS[(place + steps[event.key] + TABS.length) % TABS.length];
  showTab(name);
  byId(`tab-${name}`).focus();
}

function setUpTabs() {
  TABS.forEach(([name, title], place) => {
    const tab = element('button', { type: 'button', id: `tab-${name}`, onclick: () => showTab(name) }, title);
    tab.setAttribute('role', 'tab');
    tab.setAttribute('aria-controls', `panel-${name}`);
    tab.addEventListener('keydown', (event) => tabKey(event, place));
    byId('tabs').append(tab);
  });
  const wanted = () => TABS.find(([name]) => location.hash === `#tab=${name}`);
  addEventListener('hashchange', () => wanted() && showTab(wanted()[0]));
  showTab(wanted() ? wanted()[0] : 'timeline');
}

const systemDark = matchMedia('(prefers-color-scheme: dark)');
const theme = { chosen: 'system' };

function applyTheme() {
  const dark = theme.chosen === 'system' ? systemDark.matches : theme.chosen === 'dark';
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  colourCache.clear();
  byId('theme').textContent = { system: 'Theme: system', light: 'Theme: light', dark: 'Theme: dark' }[theme.chosen];
  for (const listener of viewport.listeners) listener();
}

function nextTheme() {
  const order = ['system', 'light', 'dark'];
  theme.chosen = order[(order.indexOf(theme.chosen) + 1) % order.length];
  applyTheme();
}

function setUp() {
  setUpHeadline();
  setUpTimeline();
  setUpMemory();
  setUpOps();
  setUpCharts();
  setUpWhy();
  setUpTogether();
  selection.listeners.push(showDetail, markNode);
  applyTheme();
  byId('theme').addEventListener('click', nextTheme);
  systemDark.addEventListener('change', applyTheme);
  setUpTabs();
  showDetail(null);
  addEventListener('resize', () => ['charts', 'machine'].forEach((name) => {
    if (!byId(`panel-${name}`).hidden) TABS.find(([other]) => other === name)[2]();
  }));
}

setUp();
window.tilewrightReport = { plan, viewport, timeline, memoryMap, selection, select, showTab, changeRange, taskAt, chooseSpace };
