import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RuntimeWatcher } from './runtime.ts';

const settled = () => new Promise((resolve) => setImmediate(resolve));

test('retries the start of the runtime at each check, and reports only the first failure', async () => {
  const output: string[] = [];
  let tries = 0;
  const watcher = new RuntimeWatcher({
    print: (text) => output.push(text),
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
  assert.deepEqual(output, [
    'does not respond: gone',
    'cannot be restarted, retrying: no memory',
    'answers again',
  ]);
});

test('does not start the runtime while a start is in progress', async () => {
  let tries = 0;
  const never = new Promise(() => {});
  const watcher = new RuntimeWatcher({
    print() {},
    restart: () => {
      tries++;
      return never;
    },
  });
  for (let look = 0; look < 3; look++) watcher.observed(new Error('gone'));
  await settled();
  assert.equal(tries, 1);
});
