/**
 * Measures the latency of writes to the store of the embedded API, from the change in memory until
 * it is on the disk, with many objects and several concurrent writers. usage: local-store.ts
 * [--objects N] [--writes N] [--dir PATH]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { type ApiResource, apiResources } from '../src/api/index.ts';
import { realClock } from '../src/lib/index.ts';
import { StoreRig } from '../test/fakes/store-rig.ts';
import { percentile, print } from './figures.ts';

const { values } = parseArgs({
  options: { objects: { type: 'string' }, writes: { type: 'string' }, dir: { type: 'string' } },
});
const objects = Number(values.objects ?? 10_000);
const writes = Number(values.writes ?? 2_000);
const clock = realClock();
const dir = await mkdtemp(join(values.dir ?? tmpdir(), 'bench-store-'));
const path = join(dir, 'api', 'objects.db');

/** The content of each stored object, about as large as a pod with its status. */
const fields = { spec: { text: 's'.repeat(1_500) }, status: { text: 't'.repeat(1_500) } };

try {
  await filled();
  await using harness = await reopened();
  for (const writers of [1, 8, 64])
    await measure(harness, `pods, ${writers} at once`, writers, apiResources.pods);
  for (const writers of [1, 64])
    await measure(harness, `events, ${writers} at once`, writers, apiResources.events);
  const { fileBytes, walBytes, logRows, logBytes } = harness.store.stats();
  print('file, and its write-ahead log', `${megabytes(fileBytes)}, ${megabytes(walBytes)}`);
  print('changes in the log', `${logRows}, ${megabytes(logBytes)}`);
} finally {
  await rm(dir, { recursive: true });
}

async function filled(): Promise<void> {
  await using harness = await StoreRig.open(path);
  const startMs = clock.monotonicMs();
  for (let index = 0; index < objects; index++) {
    harness.put(`pod-${index}`, fields);
    if (index % 500 === 499)
      await harness.store.whenCommitted(harness.objects.version, AbortSignal.timeout(60_000));
  }
  await harness.store.whenCommitted(harness.objects.version, AbortSignal.timeout(60_000));
  print(`${objects} objects written, 500 at once`, `${(clock.monotonicMs() - startMs).toFixed(0)} ms`);
}

async function reopened(): Promise<StoreRig> {
  const startMs = clock.monotonicMs();
  const harness = await StoreRig.open(path);
  print('opened, checked and read', `${(clock.monotonicMs() - startMs).toFixed(0)} ms`);
  return harness;
}

async function measure(
  harness: StoreRig,
  what: string,
  writers: number,
  resource: ApiResource,
): Promise<void> {
  const took: number[] = [];
  // Concurrent writes share commits, so with more writers more writes are needed to measure enough
  // commits.
  const all = writes * Math.max(1, writers / 4);
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const before = harness.store.stats().commits;
  const startMs = clock.monotonicMs();
  loop.enable();
  const writer = async (own: number) => {
    for (let count = own; count < all; count += writers) {
      const beganMs = clock.monotonicMs();
      await harness.write(`pod-${(count * 7) % objects}`, { ...fields, count }, resource);
      took.push(clock.monotonicMs() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: writers }, (_, own) => writer(own)));
  loop.disable();
  const perSecond = (took.length * 1_000) / (clock.monotonicMs() - startMs);
  const commits = harness.store.stats().commits - before;
  const at = (share: number) => percentile(took, share).toFixed(2);
  print(
    what,
    `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms, ${perSecond.toFixed(0)}/s in ${commits} commits, loop held ${(loop.max / 1e6).toFixed(1)} ms at most`,
  );
}

function megabytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MB`;
}
