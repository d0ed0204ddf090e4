import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { EncodedEvents } from './watch-response.ts';

/** Encodes a watch event and counts how often it is rendered. */
function createHarness() {
  const clock = new VirtualClock();
  const texts = new EncodedEvents(clock);
  let created = 0;
  const line = (object: object, form = 'whole', type: 'ADDED' | 'MODIFIED' = 'ADDED') =>
    texts.of({ type, object: object as Record<string, unknown> }, form, () => {
      created++;
      return { ...object, form };
    });
  return { clock, line, made: () => created };
}

test('encodes a watch event once for all watchers with the same output format', () => {
  const { line, made } = createHarness();
  const object = { a: 1 };
  const first = line(object);
  assert.equal(Buffer.from(first).toString(), '{"type":"ADDED","object":{"a":1,"form":"whole"}}\n');
  assert.equal(line(object), first);
  assert.equal(made(), 1);
});

test('encodes a watch event separately for each output format and event type', () => {
  const { line, made } = createHarness();
  const object = { a: 1 };
  const lines = [line(object), line(object, 'table'), line(object, 'whole', 'MODIFIED')];
  assert.equal(new Set(lines.map((each) => Buffer.from(each).toString())).size, 3);
  assert.deepEqual([line(object), line(object, 'table'), line(object, 'whole', 'MODIFIED')], lines);
  assert.equal(made(), 3);
});

test('encodes a watch event again after a second, because tables show ages', async () => {
  const { clock, line, made } = createHarness();
  const object = {};
  line(object);
  await clock.advance(999);
  line(object);
  assert.equal(made(), 1);
  await clock.advance(1);
  line(object);
  assert.equal(made(), 2);
});

test('caches a limited number of encoded watch events', () => {
  const { line, made } = createHarness();
  const objects = Array.from({ length: 100 }, () => ({}));
  for (const object of objects) line(object);
  for (const object of objects.slice(-60)) line(object);
  assert.equal(made(), 100);
  line(objects[0] ?? {});
  assert.equal(made(), 101);
});
