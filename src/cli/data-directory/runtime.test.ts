import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeWatcher } from './runtime.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('a runtime that cannot be started at first is tried again at each look, and told of once', async () => {
  const said: string[] = [];
  let tries = 0;
  const watcher = new RuntimeWatcher({
    say: (text) => said.push(text),
    restart: async () => {
      tries++;
      if (tries < 4) throw new Error('no memory');
    },
  });
  for (let look = 0; look < 4; look++) {
    watcher.observed(new Error('gone'));
    await settled();
  }
  watcher.observed(undefined);
  watcher.observed(undefined);
  assert.equal(tries, 4);
  assert.deepEqual(said, [
    'does not answer: gone',
    'cannot be started again, which is tried until it can: no memory',
    'answers again',
  ]);
});

test('while one start is under way no other begins', async () => {
  let tries = 0;
  const never = new Promise(() => {});
  const watcher = new RuntimeWatcher({
    say() {},
    restart: () => {
      tries++;
      return never;
    },
  });
  for (let look = 0; look < 3; look++) watcher.observed(new Error('gone'));
  await settled();
  assert.equal(tries, 1);
});
