import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { Node } from '../kinds/index.ts';
import { NodeView } from './node-view.ts';

const node = (uid: string, resourceVersion: string): Node => ({
  metadata: { name: 'n1', uid, resourceVersion },
});

function viewOf(first?: Node) {
  const watch = { node: first };
  const clock = new VirtualClock();
  return { watch, clock, view: new NodeView({ current: () => watch.node }, clock) };
}

test("returns the API server's response until the watch of the Node has caught up", () => {
  const { watch, view } = viewOf(node('a', '9'));
  view.update(node('a', '10'));
  assert.equal(view.current()?.metadata?.resourceVersion, '10');
  watch.node = node('a', '11');
  assert.equal(view.current()?.metadata?.resourceVersion, '11');
});

test('returns a created Node before the watch delivers it', () => {
  const { view } = viewOf();
  assert.equal(view.current(), undefined);
  view.update(node('a', '5'));
  assert.equal(view.current()?.metadata?.uid, 'a');
  view.deleted();
  assert.equal(view.current(), undefined);
});

test('reports a Node as deleted when the watch no longer has it', () => {
  const { watch, view } = viewOf(node('a', '5'));
  view.update(node('a', '7'));
  assert.equal(view.current()?.metadata?.resourceVersion, '7');
  watch.node = undefined;
  assert.equal(view.current(), undefined);
});

test('returns a recreated Node while the watch still has the old one', () => {
  const { view } = viewOf(node('old', '5'));
  view.update(node('new', '8'));
  assert.equal(view.current()?.metadata?.uid, 'new');
});

test('prefers the watch when resource versions cannot be compared', () => {
  const { view } = viewOf(node('a', 'x'));
  view.update(node('a', 'y'));
  assert.equal(view.current()?.metadata?.resourceVersion, 'x');
});

test('reports the Node as stale when the watch does not confirm a response within half a minute', async () => {
  const { watch, clock, view } = viewOf(node('a', '5'));
  await clock.advance(60_000);
  assert.equal(view.isStale(), false);
  view.update(node('a', '6'));
  await clock.advance(29_999);
  assert.equal(view.isStale(), false);
  await clock.advance(1);
  assert.equal(view.isStale(), true);
  watch.node = node('a', '6');
  assert.equal(view.isStale(), false);
});
