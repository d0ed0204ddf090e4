import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { StreamTable } from './stream-table.ts';

test('behaves like a Map for any sequence of operations', () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.constant({ is: 'open' as const }) },
    { weight: 2, arbitrary: fc.record({ is: fc.constant('close' as const), which: fc.nat(200) }) },
    { weight: 1, arbitrary: fc.record({ is: fc.constant('skip' as const), ids: fc.nat(1_000) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: 'max' }), (steps) => {
      const table = new StreamTable<{ readonly id: number }>();
      const model = new Map<number, { readonly id: number }>();
      let nextId = 1;
      for (const act of steps) {
        if (act.is === 'open') {
          const stream = { id: nextId };
          nextId += 2;
          table.add(stream);
          model.set(stream.id, stream);
        } else if (act.is === 'skip') {
          nextId += act.ids * 2;
        } else {
          const id = [...model.keys()][act.which % (model.size || 1)] ?? nextId;
          assert.equal(table.delete(id), model.delete(id));
          assert.equal(table.get(id), undefined);
        }
        assert.equal(table.size, model.size);
        for (const [id, stream] of model) assert.equal(table.get(id), stream);
      }
      assert.deepEqual(
        table.all().sort((a, b) => a.id - b.id),
        [...model.values()],
      );
    }),
    { numRuns: 200 },
  );
});

test('finds a long-lived stream among thousands of short-lived ones', () => {
  const table = new StreamTable<{ readonly id: number }>();
  const stays = { id: 1 };
  table.add(stays);
  for (let id = 3; id < 20_000; id += 2) {
    table.add({ id });
    if (id > 20) table.delete(id - 18);
    assert.equal(table.get(1), stays);
  }
  assert.equal(table.size, 10);
});
