import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import { NodeImages } from './images.ts';
import type { NodeImageFacts } from './inputs.ts';

const { signal } = new AbortController();
const image = (name: string, sizeBytes: number): NodeImageFacts => ({
  repoDigests: [],
  repoTags: [name],
  sizeBytes,
});

function imagesOf(list: () => Promise<readonly NodeImageFacts[]>) {
  const clock = new VirtualClock();
  return { clock, images: new NodeImages({ clock, runtime: { images: list } }) };
}

test('lists images by size, the largest first, and by name for equal sizes', async () => {
  const { images } = imagesOf(async () => [image('b', 5), image('small', 1), image('a', 5), image('big', 9)]);
  await images.refresh(signal);
  assert.deepEqual(
    images.latest(-1).map(({ names }) => names[0]),
    ['big', 'a', 'b', 'small'],
  );
  assert.deepEqual(
    images.latest(2).map(({ names }) => names[0]),
    ['big', 'a'],
  );
  assert.equal(images.latest(0).length, 0);
  assert.equal(images.all.length, 4);
});

test('limits an image to five names, digests first', async () => {
  const { images } = imagesOf(async () => [
    { repoDigests: ['d1', 'd2'], repoTags: ['t1', 't2', 't3', 't4'], sizeBytes: 1 },
  ]);
  await images.refresh(signal);
  assert.deepEqual(images.latest(-1)[0]?.names, ['d1', 'd2', 't1', 't2', 't3']);
});

test('lists the images of the runtime at most every thirty seconds, and keeps the last list after a failure', async () => {
  let requestCount = 0;
  let fail = false;
  const { clock, images } = imagesOf(async () => {
    requestCount++;
    if (fail) throw new Error('away');
    return [image('a', 1)];
  });
  await images.refresh(signal);
  await clock.advance(29_999);
  await images.refresh(signal);
  assert.equal(requestCount, 1);
  await clock.advance(1);
  fail = true;
  await assert.rejects(images.refresh(signal), /away/);
  await images.refresh(signal);
  assert.equal(requestCount, 2);
  assert.equal(images.latest(-1).length, 1);
});

test('aborts a call for the images that hangs', async () => {
  const { clock, images } = imagesOf(() => new Promise(() => {}));
  const refreshed = assert.rejects(images.refresh(signal), { code: 'DEADLINE_EXCEEDED' });
  await clock.advance(10_000);
  await refreshed;
});
