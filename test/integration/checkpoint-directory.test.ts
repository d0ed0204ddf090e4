import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { collectLogs } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import { CheckpointDirectory, type CheckpointDirectoryDeps } from '../../src/server/remote/index.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

const { signal } = new AbortController();
const pod: Pod = {
  metadata: { name: 'web', namespace: 'default', uid: podUid('u1') },
  spec: { containers: [{ name: 'main' }] } as Pod['spec'],
  status: {},
};

function open(context: TestContext, change: Partial<CheckpointDirectoryDeps> = {}) {
  const root = mkdtempSync(join(tmpdir(), 'kubeling-checkpoints-'));
  context.after(() => rmSync(root, { recursive: true, force: true }));
  const directory = join(root, 'checkpoints');
  const clock = new VirtualClock();
  const freezer = {
    checkpoint: async (_pod: Pod, container: string, location: string) => {
      writeFileSync(location, 'x'.repeat(100));
      if (container === 'bad') throw new Error('the runtime cannot checkpoint');
    },
  };
  const folder = new CheckpointDirectory({
    directory,
    freezer,
    clock,
    logger: collectLogs(clock).logger,
    ...change,
  });
  let created = 0;
  const make = async (container = 'main') => {
    await clock.advance(1_000);
    const path = await folder.checkpoint(pod, container, undefined, signal);
    created += 1;
    utimesSync(path, created, created);
    return path;
  };
  return { directory, make };
}

test('creates a checkpoint in a directory only its owner can enter', async (context) => {
  const { directory, make } = open(context);
  mkdirSync(directory, { mode: 0o755 });
  const path = await make();
  assert.match(path, /\/checkpoints\/checkpoint-web_default-main-[\dT:-]+Z\.tar$/);
  assert.equal(statSync(directory).mode & 0o777, 0o700);
});

test('removes the oldest checkpoints above the limit of their number or total size, and keeps other files', async (context) => {
  for (const limit of [{ keep: 3 }, { maxBytes: 250 }]) {
    const { directory, make } = open(context, limit);
    const paths = [];
    for (let count = 0; count < 3; count++) paths.push(await make());
    writeFileSync(join(directory, 'notes.txt'), 'mine');
    const last = await make();
    const left = readdirSync(directory).map((name) => join(directory, name));
    assert.deepEqual(new Set(left), new Set([...paths.slice(1), last, join(directory, 'notes.txt')]));
  }
});

test('leaves nothing of a failed checkpoint', async (context) => {
  const { directory, make } = open(context);
  await assert.rejects(make('bad'), /the runtime cannot/);
  assert.deepEqual(readdirSync(directory), []);
});
