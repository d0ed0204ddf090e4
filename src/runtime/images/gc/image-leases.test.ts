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

test('an image that is held is not removed until the last one lets go', async () => {
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

test('one that is being removed cannot be held before that is over, and must be asked for again', async () => {
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
  assert.equal(await leases.hold('a', mark, never), undefined, 'an answer from before says nothing');
  assert.ok(await leases.hold('a', leases.mark(), never));
});

test('a removal that failed may have been done', async () => {
  const leases = new ImageLeases();
  const mark = leases.mark();
  await assert.rejects(leases.remove('a', () => Promise.reject(new Error('no answer'))));
  assert.deepEqual([await leases.hold('a', mark, never), leases.wasRemoved('a')], [undefined, true]);
  assert.ok(await leases.hold('b', mark, never));
});

test('what somebody looks for by its name is not removed, and who looks for what is being removed waits', async () => {
  const leases = new ImageLeases();
  const isNamed = (reference: string) => reference === 'one:1';
  const remove = (act = async () => 'removed') => leases.remove('a', act, isNamed);
  const wanted = await leases.reserve('one:1', never);
  await leases.reserve('two:1', never);
  assert.equal(await remove(), 'held');
  wanted[Symbol.dispose]();
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

test('who gives up waiting wants nothing any more', async () => {
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
