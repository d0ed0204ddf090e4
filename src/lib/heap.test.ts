import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Heap, type HeapItem } from './heap.ts';

interface Ranked extends HeapItem {
  rank: number;
}

const ranked = (rank: number): Ranked => ({ rank, heapIndex: -1 });
const byRank = () => new Heap<Ranked>((a, b) => a.rank < b.rank);

function drain(heap: Heap<Ranked>): number[] {
  const ranks: number[] = [];
  for (let item = heap.pop(); item !== undefined; item = heap.pop()) ranks.push(item.rank);
  return ranks;
}

test('a heap returns its items in the order of their rank', () => {
  const heap = byRank();
  for (const rank of [5, 1, 4, 1, 3]) heap.push(ranked(rank));
  assert.equal(heap.peek()?.rank, 1);
  assert.deepEqual(drain(heap), [1, 1, 3, 4, 5]);
  assert.equal(heap.pop(), undefined);
});

test('a removed item cannot be removed again', () => {
  const heap = byRank();
  const item = ranked(1);
  heap.push(item);
  assert.equal(heap.delete(item), true);
  assert.equal(heap.delete(item), false);
  assert.equal(heap.has(item), false);
  assert.equal(heap.size, 0);
});

test('clear releases every item of the heap', () => {
  const heap = byRank();
  const item = ranked(1);
  heap.push(item);
  heap.clear();
  assert.equal(heap.has(item), false);
  assert.equal(heap.size, 0);
});

test('a heap returns its items in the order of their rank after any sequence of pushes, removals and moves', () => {
  const step = fc.record({
    act: fc.constantFrom('push', 'delete', 'move'),
    at: fc.nat(50),
    rank: fc.integer(),
  });
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const heap = byRank();
      const inside: Ranked[] = [];
      for (const { act, at, rank } of steps) {
        const chosen = inside[at % Math.max(1, inside.length)];
        if (act === 'push' || chosen === undefined) {
          const item = ranked(rank);
          inside.push(item);
          heap.push(item);
        } else if (act === 'delete') {
          inside.splice(inside.indexOf(chosen), 1);
          assert.equal(heap.delete(chosen), true);
        } else {
          chosen.rank = rank;
          heap.update(chosen);
        }
      }
      assert.deepEqual(
        drain(heap),
        inside.map((item) => item.rank).sort((a, b) => a - b),
      );
    }),
  );
});
