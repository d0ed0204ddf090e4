import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Ingest } from '../../cri/index.ts';
import { KubelingError } from '../../lib/index.ts';
import { IngestWatcher } from './ingest-watcher.ts';

function rigOf() {
  const clock = new VirtualClock();
  const now: { ingests: readonly Ingest[]; failure: KubelingError | undefined; asked: number } = {
    ingests: [],
    failure: undefined,
    asked: 0,
  };
  const containerdIngests = async () => {
    now.asked++;
    if (now.failure !== undefined) throw now.failure;
    return now.ingests;
  };
  const known: Record<string, readonly string[]> = { 'r.io/one': ['a', 'b'], 'r.io/two': ['c'] };
  const containerdContentOf = async (repository: string) => new Set(known[repository] ?? []);
  const cri = { containerdIngests, containerdContentOf };
  return { clock, now, watch: new IngestWatcher({ cri, clock }) };
}

const part = (ref: string, bytes: number, totalBytes: number): Ingest => ({ ref, bytes, totalBytes });

describe('watching ingests of containerd', () => {
  it('the progress of a pull is the sum of its ingests; finished ingests count as complete', async () => {
    const { clock, now, watch } = rigOf();
    using look = watch.watch('r.io/app');
    const seen = () => look.progress;
    assert.equal(seen(), undefined);
    now.ingests = [part('a', 10, 100), part('b', 0, 50)];
    await clock.advance(500);
    assert.deepEqual([seen()?.bytes, seen()?.totalBytes, seen()?.state], [10, 150, 'arriving']);
    now.ingests = [part('b', 20, 50), part('c', 5, 0)];
    await clock.advance(500);
    assert.deepEqual([seen()?.bytes, seen()?.totalBytes], [125, 155]);
    const changedMs = seen()?.changedMs;
    await clock.advance(5_000);
    assert.equal(seen()?.changedMs, changedMs, 'no ingest since');
    now.ingests = [];
    await clock.advance(500);
    assert.deepEqual([seen()?.bytes, seen()?.state], [155, 'arrived']);
  });

  it('assigns ingests to their images when several images are pulled concurrently', async () => {
    const { clock, now, watch } = rigOf();
    using one = watch.watch('r.io/one');
    now.ingests = [part('layer-a', 10, 100), part('layer-x', 1, 1)];
    await clock.advance(500);
    assert.deepEqual(
      [one.progress?.bytes, one.progress?.of],
      [10, 'this-image'],
      'x belongs to no image any more',
    );
    using two = watch.watch('r.io/two');
    using none = watch.watch('r.io/none');
    now.ingests = [part('layer-a', 20, 100), part('layer-c', 5, 50)];
    await clock.advance(500);
    assert.deepEqual(
      [one.progress?.bytes, one.progress?.totalBytes, one.progress?.of],
      [20, 100, 'this-image'],
    );
    assert.deepEqual([two.progress?.bytes, two.progress?.totalBytes], [5, 50]);
    assert.equal(none.progress, undefined, 'no progress yet, and all ingests belong to other images');
  });

  it('counts no ingest that may belong to another image', async () => {
    const { clock, now, watch } = rigOf();
    using app = watch.watch('r.io/app');
    const other = watch.watch('r.io/other');
    now.ingests = [part('layer-p', 10, 100), part('layer-q', 20, 50)];
    await clock.advance(500);
    assert.deepEqual([app.progress?.bytes, app.progress?.of], [30, 'all-images']);
    other[Symbol.dispose]();
    assert.equal(app.progress?.of, 'all-images', 'the last sample');
    now.ingests = [part('layer-p', 30, 100)];
    await clock.advance(500);
    const { bytes, totalBytes, of } = app.progress ?? {};
    assert.deepEqual({ bytes, totalBytes, of }, { bytes: 30, totalBytes: 100, of: 'this-image' });
  });

  it('polls ingests only while pulls run, and not on runtimes without ingests', async () => {
    const { clock, now, watch } = rigOf();
    const look = watch.watch('r.io/app');
    await clock.advance(1_000);
    look[Symbol.dispose]();
    const { asked } = now;
    assert.ok(asked >= 2);
    await clock.advance(10_000);
    assert.equal(now.asked, asked);
    now.failure = new KubelingError('CRI_UNAVAILABLE', 'temporarily unavailable');
    using _again = watch.watch('r.io/app');
    await clock.advance(2_000);
    assert.ok(now.asked > asked + 1, 'retries after the runtime was unavailable');
    now.failure = new KubelingError('CRI_UNSUPPORTED', 'unknown service');
    await clock.advance(1_000);
    const last = now.asked;
    using _third = watch.watch('r.io/app');
    await clock.advance(10_000);
    assert.equal(now.asked, last);
  });
});
