// The ops as a table that can be sorted and searched, with bars.

const ALL_OP_COLUMNS = [
  { key: 'name', title: 'Op', text: (v) => shortened(firstName(v), 24) },
  { key: 'kind', title: 'Kind', text: (v) => v },
  { key: 'tiles', title: 'Tiles', text: count, numeric: true },
  { key: 'cascade', title: 'Cascade', text: (v) => (v === null ? '' : String(v + 1)), numeric: true, hint: 'the cascade that it runs in, by number' },
  { key: 'busy_cycles', title: 'Cycles', text: count, numeric: true, bar: true, hint: 'busy cycles of arrays and vector units' },
  { key: 'idle_cycles', title: 'Waiting', text: count, numeric: true, bar: true, hint: 'cycles its engines stood idle before its tiles' },
  { key: 'stall_cycles', title: 'Stalls', text: count, numeric: true, bar: true, hint: 'cycles in its tiles in which a port holds the array up' },
  { key: 'utilisation', title: 'Utilisation', text: (v) => (v === null ? '' : percent(v)), numeric: true, bar: true, most: 1, hint: 'multipliers at work over all multipliers and busy cycles' },
  { key: 'energy_pj', title: 'Energy', text: energy, numeric: true, bar: true },
  { key: 'traffic_bytes', title: 'Traffic', text: bytes, numeric: true, bar: true, hint: 'bytes that cross the edge of the chip' },
  { key: 'bound_by', title: 'Bound by', text: (v) => v },
];
// Columns without a single figure are left out.
const OP_COLUMNS = ALL_OP_COLUMNS.filter((column) => plan.ops[column.key].some((value) => value !== null));

const opsTable = { column: null, descending: false, rows: [] };

function opCell(column, op, most) {
  const value = plan.ops[column.key][op];
  const cell = element('td', { className: column.numeric ? 'number' : '' }, column.text(value));
  if (column.key === 'name') cell.title = value;
  if (column.bar && value) {
    cell.classList.add('measure');
    cell.style.setProperty('--share', Math.min(1, value / most));
  }
  return cell;
}

function opRow(op, largest) {
  const row = element('tr', { tabIndex: 0 });
  row.dataset.op = op;
  OP_COLUMNS.forEach((column, place) => row.append(opCell(column, op, largest[place])));
  row.addEventListener('click', () => select('op', op));
  row.addEventListener('keydown', (event) => opRowKey(event, op));
  return row;
}

function opRowKey(event, op) {
  const steps = { ArrowDown: 'nextElementSibling', ArrowUp: 'previousElementSibling' };
  if (event.key === 'Enter' || event.key === ' ') select('op', op);
  else if (event.key in steps) {
    let next = event.currentTarget[steps[event.key]];
    while (next && next.hidden) next = next[steps[event.key]];
    if (next) next.focus();
  } else return;
  event.preventDefault();
}

function compared(a, b, column) {
  const values = plan.ops[column.key];
  const first = values[a] ?? -1;
  const second = values[b] ?? -1;
  const order = column.numeric ? first - second : String(first).localeCompare(String(second));
  return (opsTable.descending ? -order : order) || a - b;
}

function sortOps(column) {
  if (opsTable.column === column) opsTable.descending = !opsTable.descending;
  else Object.assign(opsTable, { column, descending: Boolean(column.numeric) });
  const headers = byId('ops').querySelectorAll('th');
  OP_COLUMNS.forEach((other, place) => {
    if (other !== column) headers[place].removeAttribute('aria-sort');
    else headers[place].setAttribute('aria-sort', opsTable.descending ? 'descending' : 'ascending');
  });
  const rows = [...opsTable.rows];
  rows.sort((a, b) => compared(Number(a.dataset.op), Number(b.dataset.op), column));
  byId('ops').tBodies[0].append(...rows);
}

function searchOps() {
  const wanted = byId('ops-search').value.trim().toLowerCase();
  let shown = 0;
  for (const row of opsTable.rows) {
    const op = Number(row.dataset.op);
    const { name, kind, bound_by: boundBy, fused } = plan.ops;
    const text = `${name[op]} ${kind[op]} ${boundBy[op]} ${fused[op].join(' ')}`.toLowerCase();
    row.hidden = !text.includes(wanted);
    shown += row.hidden ? 0 : 1;
  }
  byId('ops-count').textContent = `${count(shown)} of ${count(opsTable.rows.length)} ops`;
}

function markOp(chosen) {
  const op = chosen === null ? -1 : chosen.kind === 'op' ? chosen.number : chosen.kind === 'task' ? plan.tasks.op[chosen.number] : -1;
  for (const row of opsTable.rows) row.classList.toggle('chosen', Number(row.dataset.op) === op);
}

function setUpOps() {
  const largest = OP_COLUMNS.map((column) => column.most || (column.bar ? plan.ops[column.key].reduce((most, v) => Math.max(most, v || 0), 1e-9) : 1));
  const head = element('tr', {});
  for (const column of OP_COLUMNS) {
    const properties = { type: 'button', title: column.hint || '', onclick: () => sortOps(column) };
    head.append(element('th', { scope: 'col', className: column.numeric ? 'number' : '' }, element('button', properties, column.title)));
  }
  opsTable.rows = plan.ops.name.map((_, op) => opRow(op, largest));
  byId('ops').append(element('thead', {}, head), element('tbody', {}, ...opsTable.rows));
  byId('ops-search').addEventListener('input', searchOps);
  selection.listeners.push(markOp);
  searchOps();
}
