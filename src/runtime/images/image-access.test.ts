import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../../test/fakes/memory-runtime-files.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { settings } from '../../../test/simulation/kubelet-life.ts';
import type { CriClient } from '../../cri/index.ts';
import { collectLogs, MetricRegistry } from '../../lib/index.ts';
import type { PodJournal } from '../../pods/index.ts';
import { ImageAccess } from './image-access.ts';

const { signal } = new AbortController();
const image = 'r.io/app:1';

function aNode() {
  const clock = new VirtualClock();
  const { logger, records: logs } = collectLogs(clock);
  const store = mapFileStore();
  const runtime = { lists: 0, fails: false };
  const cri = {
    async listImages() {
      runtime.lists++;
      if (runtime.fails) throw new Error('busy');
      return { images: [] };
    },
  } as Pick<CriClient, 'listImages'>;
  const access = new ImageAccess(settings, {
    clock,
    logger,
    metrics: new MetricRegistry({ onError: () => {} }),
    journal: {} as PodJournal,
    cri,
    machine: { files: memoryRuntimeFiles(store) },
  });
  return { clock, logs, store, runtime, access };
}

describe('pull records of removed images', () => {
  it('pull records of removed images are removed hourly, except records of the last minutes', async () => {
    const { clock, store, runtime, access } = aNode();
    await access.records?.begin(image, signal);
    await access.records?.end(image, { kind: 'pulled', imageRef: 'sha256:1', used: 'anonymous' });
    await access.prune(signal);
    assert.deepEqual([store.paths().length, runtime.lists], [1, 1]);
    await clock.advance(3_599_000);
    await access.prune(signal);
    assert.deepEqual([store.paths().length, runtime.lists], [1, 1]);
    await clock.advance(1_000);
    await access.prune(signal);
    assert.deepEqual([store.paths().length, runtime.lists], [0, 2]);
  });

  it('pull records are kept when listing images fails, and the next collection runs as usual', async () => {
    const { clock, store, runtime, access, logs } = aNode();
    runtime.fails = true;
    await access.records?.begin(image, signal);
    await access.records?.end(image, { kind: 'pulled', imageRef: 'sha256:1', used: 'anonymous' });
    await clock.advance(600_000);
    await access.prune(signal);
    assert.deepEqual([store.paths().length, [...logs].length], [1, 1]);
  });
});
