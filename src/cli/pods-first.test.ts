import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cancelled } from '../lib/index.ts';
import { PodsFirst } from './pods-first.ts';

function begun() {
  const parent = new AbortController();
  let done = () => {};
  const ended = new Promise<void>((resolve) => {
    done = resolve;
  });
  let isAsked = false;
  const first = new PodsFirst(parent.signal, () => {
    isAsked = true;
    return ended;
  });
  return { parent, done, first, isAsked: () => isAsked };
}

test('SIGTERM ends the pods, and then everything else', async () => {
  const { parent, done, first, isAsked } = begun();
  parent.abort(cancelled('SIGTERM received'));
  assert.deepEqual([isAsked(), first.signal.aborted], [true, false]);
  done();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal((first.signal.reason as Error).message, 'SIGTERM received');
});

test('Ctrl-C, and any other end, leaves the pods alone', () => {
  for (const why of ['SIGINT received', 'another reason']) {
    const { parent, first, isAsked } = begun();
    parent.abort(cancelled(why));
    assert.deepEqual([isAsked(), first.signal.aborted], [false, true]);
  }
});
