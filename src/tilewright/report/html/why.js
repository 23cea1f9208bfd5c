// Why the plan takes as long as it does: what would help, idle engines, the critical path.

const REASONS = {
  engine: 'its engine was busy',
  data: 'its data came then',
  room: 'its address was in use',
  port: 'a port was in use',
  choice: '',
};

// A table from columns of [title, is a number] and rows of texts; `share` of a row draws a bar.
function plainTable(table, columns, rows) {
  const head = element('tr', {});
  for (const [title, numeric] of columns) {
    head.append(element('th', { scope: 'col', className: numeric ? 'number' : '' }, title));
  }
  const body = rows.map(({ cells, share, onclick }) => {
    const made = cells.map((text, place) => element('td', { className: columns[place][1] ? 'number' : '' }, text));
    if (share !== undefined) {
      const last = made[made.length - 1];
      last.classList.add('measure');
      last.style.setProperty('--share', Math.max(0, Math.min(1, share)));
    }
    const row = element('tr', {}, ...made);
    if (onclick) activeRow(row, onclick);
    return row;
  });
  table.replaceChildren(element('thead', {}, head), element('tbody', {}, ...body));
}

function remedyRows(why) {
  const least = Math.min(...why.remedies.map((r) => r.cycles));
  const most = Math.max(1, why.replay_cycles - least);
  return why.remedies.map(({ what, cycles: then }) => {
    const gain = Math.max(0, why.replay_cycles - then);
    return { cells: [what, count(then), percent(gain / Math.max(1, why.replay_cycles))], share: gain / most };
  });
}

function idleRows(why) {
  const causes = Object.entries(why.idle_cycles);
  const most = Math.max(1, ...causes.map(([, amountCycles]) => amountCycles));
  return causes.map(([cause, amountCycles]) => ({ cells: [cause, count(amountCycles)], share: amountCycles / most }));
}

function pathRows(why) {
  return why.critical_path.map((step) => ({
    cells: [
      step.engine,
      step.tasks === 1 ? step.first : `${step.first} … ${step.last}`,
      count(step.tasks),
      count(step.start_cycle),
      count(step.end_cycle),
      REASONS[step.reason],
      percent((step.end_cycle - step.start_cycle) / Math.max(1, why.replay_cycles)),
    ],
    share: (step.end_cycle - step.start_cycle) / Math.max(1, why.replay_cycles),
    onclick: () => {
      showTab('timeline');
      goToTask(step.task);
    },
  }));
}

function whySentence(why) {
  const [best] = why.remedies;
  if (why.bottleneck === null || !best) return 'No single improvement would make it 1\u00a0% shorter.';
  const gain = percent(1 - best.cycles / Math.max(1, why.replay_cycles));
  return `With ${best.what}, these tasks would take ${cycles(best.cycles)}, ${gain} fewer.`;
}

function setUpWhy() {
  const { why } = plan;
  if (why === null) {
    byId('why-text').textContent = 'This plan has too many tasks to be explained here; `tilewright explain` does it.';
    return;
  }
  plainTable(byId('why-remedies'), [['Improved', false], ['Cycles then', true], ['Fewer', true]], remedyRows(why));
  plainTable(byId('why-idle'), [['Because of', false], ['Cycles', true]], idleRows(why));
  const columns = [['Engine', false], ['Tasks', false], ['How many', true], ['Start', true], ['End', true], ['Not earlier because', false], ['Share', true]];
  plainTable(byId('why-path'), columns, pathRows(why));
}
