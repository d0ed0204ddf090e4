import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { LineTexts } from './watch-response.ts';

/** Lines, and how often one was made. */
function rig() {
  const clock = new VirtualClock();
  const texts = new LineTexts(clock);
  let made = 0;
  const line = (object: object, form = 'whole', type: 'ADDED' | 'MODIFIED' = 'ADDED') =>
    texts.of({ type, object: object as Record<string, unknown> }, form, () => {
      made++;
      return { ...object, form };
    });
  return { clock, line, made: () => made };
}

test('a change is made into a line once for all who want it alike', () => {
  const { line, made } = rig();
  const object = { a: 1 };
  const first = line(object);
  assert.equal(Buffer.from(first).toString(), '{"type":"ADDED","object":{"a":1,"form":"whole"}}\n');
  assert.equal(line(object), first);
  assert.equal(made(), 1);
});

test('and once for each other way to show it, and for what it is to others', () => {
  const { line, made } = rig();
  const object = { a: 1 };
  const lines = [line(object), line(object, 'table'), line(object, 'whole', 'MODIFIED')];
  assert.equal(new Set(lines.map((each) => Buffer.from(each).toString())).size, 3);
  assert.deepEqual([line(object), line(object, 'table'), line(object, 'whole', 'MODIFIED')], lines);
  assert.equal(made(), 3);
});

test('a line that tells an age is not told again when that is over', async () => {
  const { clock, line, made } = rig();
  const object = {};
  line(object);
  await clock.advance(999);
  line(object);
  assert.equal(made(), 1);
  await clock.advance(1);
  line(object);
  assert.equal(made(), 2);
});

test('no more lines are kept than are told at about the same time', () => {
  const { line, made } = rig();
  const objects = Array.from({ length: 100 }, () => ({}));
  for (const object of objects) line(object);
  for (const object of objects.slice(-60)) line(object);
  assert.equal(made(), 100);
  line(objects[0] ?? {});
  assert.equal(made(), 101);
});
