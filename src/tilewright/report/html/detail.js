// What is known about the selected task, buffer or op, with links to what it depends on.

function facts(pairs) {
  const list = element('dl', {});
  for (const [name, value] of pairs) {
    if (value === '' || value === null || value === undefined) continue;
    list.append(element('dt', {}, name), element('dd', {}, value));
  }
  return list;
}

function link(text, onclick) {
  return element('button', { className: 'link', type: 'button', onclick }, text);
}

function linkList(title, entries) {
  if (!entries.length) return '';
  const items = entries.slice(0, 40).map(([text, note, onclick]) =>
    element('li', {}, onclick ? link(text, onclick) : element('span', {}, text), element('span', {}, note)));
  if (entries.length > 40) items.push(element('li', {}, `and ${count(entries.length - 40)} more`));
  return element('div', {}, element('h3', {}, title), element('ul', {}, ...items));
}

function taskLinks(title, tasks) {
  return linkList(title, tasks.map((n) => [plan.tasks.name[n], `ends ${count(plan.tasks.start[n] + plan.tasks.cycles[n])}`, () => goToTask(n)]));
}

const bufferPlace = new Map(plan.buffers.number.map((number, place) => [number, place]));

function bufferLinks(title, numbers) {
  const known = numbers.map((number) => bufferPlace.get(number)).filter((place) => place !== undefined);
  return linkList(title, known.map((n) => [plan.buffers.name[n], bytes(plan.buffers.size[n]), () => showBuffer(n)]));
}

function showBuffer(n) {
  showTab('memory');
  chooseSpace(plan.buffers.space[n]);
  select('buffer', n);
  showCycles(plan.buffers.start[n], plan.buffers.end[n]);
}

function taskDetail(task) {
  const { tasks } = plan;
  const op = tasks.op[task];
  const end = tasks.start[task] + tasks.cycles[task];
  return [
    element('h2', {}, tasks.name[task]),
    facts([
      ['what', PURPOSE_NAMES[purposeOf(task)]],
      ['engine', plan.tracks[tasks.track[task]].name],
      ['op', op < 0 ? '' : link(plan.ops.name[op], () => select('op', op))],
      ['start', cycles(tasks.start[task])],
      ['end', cycles(end)],
      ['takes', `${cycles(tasks.cycles[task])}${plan.clock_hz ? `, ${duration(tasks.cycles[task])}` : ''}`],
      ['bytes', tasks.bytes[task] ? `${count(tasks.bytes[task])} B` : ''],
      ['energy', energy(tasks.pj[task])],
    ]),
    taskLinks('Waits for', tasks.after[task]),
    taskLinks('Waits for room that these leave', tasks.room[task]),
    taskLinks('Waited for by', followers[task]),
    bufferLinks('Reads', tasks.reads[task]),
    bufferLinks('Writes', tasks.writes[task]),
    tasks.mapping[task] < 0 ? '' : nest(tasks.mapping[task], 'Mapping, outermost loop first'),
  ];
}

// The first of joined names as a heading, and all of them below.
function nameHeading(name) {
  const heading = element('h2', {}, firstName(name));
  return firstName(name) === name ? [heading] : [heading, element('p', { className: 'hint all-names' }, name)];
}

function bufferDetail(n) {
  const { name, size, address, start, end, box, role, space, number, rolling } = plan.buffers;
  const users = [];
  plan.tasks.reads.forEach((reads, task) => {
    if (reads.includes(number[n]) || plan.tasks.writes[task].includes(number[n])) users.push(task);
  });
  return [
    ...nameHeading(name[n]),
    facts([
      ['role', ROLE_NAMES[plan.roles[role[n]]]],
      ['memory', plan.spaces[space[n]].name],
      rolling[n] ? ['rolling buffer', `${rolling[n]} at once`] : ['elements', box[n]],
      ['size', `${count(size[n])} B`],
      ['address', count(address[n])],
      ['from', cycles(start[n])],
      ['to', cycles(end[n])],
      ['buffer', `number ${number[n]}`],
    ]),
    linkList('Tasks that touch it', users.map((t) => [plan.tasks.name[t], PURPOSE_NAMES[purposeOf(t)], () => { showTab('timeline'); goToTask(t); }])),
  ];
}

function opDetail(op) {
  const { ops } = plan;
  const cascade = ops.cascade[op];
  const strips = plan.together.groups.find(({ numbers, strips: many }) => many > 1 && numbers.includes(op));
  const tasks = [];
  plan.tasks.op.forEach((of, task) => {
    if (of === op) tasks.push(task);
  });
  return [
    ...nameHeading(ops.name[op]),
    facts([
      ['kind', ops.kind[op]],
      ['applied in passing', ops.fused[op].join(', ')],
      ['multiplications', ops.macs[op] ? count(ops.macs[op]) : ''],
      ['tiles', count(ops.tiles[op])],
      ['from', cycles(ops.start_cycle[op])],
      ['to', cycles(ops.end_cycle[op])],
      ['busy', cycles(ops.busy_cycles[op])],
      ['utilisation', ops.utilisation[op] === null ? '' : percent(ops.utilisation[op])],
      ['energy', energy(ops.energy_pj[op])],
      ['traffic', bytes(ops.traffic_bytes[op])],
      ['bound by', ops.bound_by[op]],
      cascade === null ? ['runs', ops.pace[op]] : ['cascade', `${cascade + 1}: ${ops.pace[op]}`],
      ['strips', strips ? `${strips.strips} strips of columns` : ''],
    ]),
    cascade === null ? '' : linkList('Ops of the cascade', plan.cascades[cascade].numbers.map((other) => [firstName(ops.name[other]), ops.kind[other], other === op ? null : () => select('op', other)])),
    element('p', {}, link('Show in the timeline', () => {
      showTab('timeline');
      changeRange(ops.start_cycle[op] - 50, ops.end_cycle[op] + 50);
    })),
    linkList('Engines waited', ops.idle_causes[op].map(([cause, idle]) => [cause, cycles(idle), null])),
    ops.mapping[op] === null ? '' : nest(ops.mapping[op], 'Mapping of its largest tile, outermost loop first'),
    taskLinks('Tasks', tasks),
  ];
}

// Which memory holds which operands from this loop on, where that changes.
function heldAnew(letters, before, now) {
  const byMemory = new Map();
  now.forEach((memory, place) => {
    if (memory === before[place]) return;
    byMemory.set(memory, [...(byMemory.get(memory) || []), letters[place]]);
  });
  return [...byMemory].map(([memory, held]) => `${held.join(', ')} in ${memory}`);
}

// A mapping as nested loops, outermost first, with the memory that holds each operand.
function nest(mapping, title) {
  const lines = plan.mappings[mapping].trim().split('\n');
  const [sizes, unroll, header, ...loops] = lines;
  const letters = header.trim().split(/\s+/).slice(1);
  const block = element('pre', { className: 'nest' });
  block.append(`${sizes.replace('nest ', 'loops: ')}\n`);
  let held = [];
  loops.forEach((line, depth) => {
    const [loop, size, ...memories] = line.trim().split(/\s+/);
    for (const text of heldAnew(letters, held, memories)) block.append(`${' '.repeat(depth)}# ${text}\n`);
    block.append(`${' '.repeat(depth)}for `, element('b', {}, loop), ` in ${size}\n`);
    held = memories;
  });
  block.append(`${' '.repeat(loops.length)}at once: ${unroll.replace('unroll ', '')}\n`);
  return element('div', {}, element('h3', {}, title), block);
}

function showDetail(chosen) {
  const detail = byId('detail');
  if (chosen === null) {
    detail.replaceChildren(element('p', { className: 'hint' }, 'Select a task, a buffer or an op to see what it does and what it depends on.'));
    return;
  }
  const parts = { task: taskDetail, buffer: bufferDetail, op: opDetail };
  detail.replaceChildren(...parts[chosen.kind](chosen.number));
  detail.scrollTop = 0;
}
