// Ops that run together, side by side or in strips: a sentence, and a table of what that saves.

// A longer table opens on a click, so that the parts of the report stay in sight.
const MOST_GROUPS_SHOWN = 3;

function togetherRows(groups, someAgain) {
  return groups.map(({ name, numbers, how, layer_by_layer: whole, held, again }) => ({
    cells: [name, count(numbers.length), how, whole, held, ...(someAgain ? [again] : [])],
    onclick: () => {
      showTab('network');
      select('op', numbers[0]);
    },
  }));
}

function setUpTogether() {
  const { text, groups } = plan.together;
  const part = byId('together');
  part.hidden = groups.length === 0;
  if (part.hidden) return;
  part.open = groups.length <= MOST_GROUPS_SHOWN;
  byId('together-text').append(element('b', {}, 'Run together: '), `${text}.`);
  const someAgain = groups.some(({ again }) => again);
  const columns = [['Ops', false], ['How many', true], ['How', false], ['Layer by layer', true], ['Held at once', true]];
  if (someAgain) columns.push(['Done again', true]);
  plainTable(byId('together-table'), columns, togetherRows(groups, someAgain));
}
