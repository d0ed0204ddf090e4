import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ImageLeases } from './image-leases.ts';

const never = new AbortController().signal;

function latch() {
  let open: () => void = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

test('does not remove an image until its last lease is released', async () => {
  const leases = new ImageLeases();
  const one = await leases.hold('a', leases.mark(), never);
  const other = await leases.hold('a', leases.mark(), never);
  one?.[Symbol.dispose]();
  one?.[Symbol.dispose]();
  const remove = () => leases.remove('a', async () => 'removed');
  assert.equal(await remove(), 'held');
  other?.[Symbol.dispose]();
  assert.deepEqual([await remove(), leases.size], ['removed', 0]);
});

test('an image that is being removed cannot be leased, and must be inspected again after the removal', async () => {
  const leases = new ImageLeases();
  const mark = leases.mark();
  const { open, opened } = latch();
  const removal = leases.remove('a', () => opened);
  let held: unknown = 'waits';
  const holding = leases.hold('a', mark, never).then((lease) => {
    held = lease;
  });
  assert.equal(await leases.remove('a', async () => {}), 'held');
  await new Promise(setImmediate);
  assert.equal(held, 'waits');
  open();
  await Promise.all([removal, holding]);
  assert.equal(held, undefined);
  assert.equal(await leases.hold('a', mark, never), undefined, 'an earlier inspection is no longer valid');
  assert.ok(await leases.hold('a', leases.mark(), never));
});

test('after a failed removal, the image counts as possibly removed, so it must be inspected again', async () => {
  const leases = new ImageLeases();
  const mark = leases.mark();
  await assert.rejects(leases.remove('a', () => Promise.reject(new Error('no response'))));
  assert.deepEqual([await leases.hold('a', mark, never), leases.wasRemoved('a')], [undefined, true]);
  assert.ok(await leases.hold('b', mark, never));
});

test('does not remove an image whose name is reserved; reserving a name waits for a running removal of the image', async () => {
  const leases = new ImageLeases();
  const isNamed = (reference: string) => reference === 'one:1';
  const remove = (act = async () => 'removed') => leases.remove('a', act, isNamed);
  const expected = await leases.reserve('one:1', never);
  await leases.reserve('two:1', never);
  assert.equal(await remove(), 'held');
  expected[Symbol.dispose]();
  const { open, opened } = latch();
  const removal = remove(() => opened.then(() => 'removed'));
  let state = 'waits';
  const again = leases.reserve('one:1', never).then(() => {
    state = 'wanted';
  });
  await leases.reserve('two:1', never);
  assert.equal(state, 'waits');
  open();
  assert.equal(await removal, 'removed');
  await again;
  assert.deepEqual([state, await remove()], ['wanted', 'held']);
});

test('cancelling a reservation of an image name releases it', async () => {
  const leases = new ImageLeases();
  const { open, opened } = latch();
  const removal = leases.remove(
    'a',
    () => opened,
    () => true,
  );
  const controller = new AbortController();
  const waiting = leases.reserve('one:1', controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(waiting, /enough/);
  open();
  await removal;
  assert.equal(
    await leases.remove(
      'a',
      async () => 'removed',
      () => true,
    ),
    'removed',
  );
});
