import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SimulatedCgroupHost } from '../../../test/fakes/simulated-cgroup-host.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { realClock } from '../clock.ts';
import { realCgroupHost } from './host.ts';
import { cgroupPids, killCgroup, removeCgroup, removeEmptyCgroup } from './remove.ts';

describe('removal of cgroups in real directories', () => {
  const host = realCgroupHost();
  const signal = new AbortController().signal;
  let dir = '';
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'cgroups-'));
  });
  after(() => rm(dir, { recursive: true }));

  it('finds processes in the cgroup and below, in every hierarchy, once', async () => {
    await mkdir(join(dir, 'p/k8s.io/x/inner'), { recursive: true });
    await mkdir(join(dir, 'q/k8s.io/x'), { recursive: true });
    await writeFile(join(dir, 'p/k8s.io/x/cgroup.procs'), '11\n12\n');
    await writeFile(join(dir, 'p/k8s.io/x/inner/cgroup.procs'), '13\n');
    await writeFile(join(dir, 'q/k8s.io/x/cgroup.procs'), '12\n');
    const found = await cgroupPids(
      host,
      ['p', 'q', 'none'].map((name) => join(dir, name, 'k8s.io/x')),
    );
    assert.deepEqual(found.toSorted(), [11, 12, 13]);
  });

  it('removes children before parents and leaves siblings', async () => {
    await mkdir(join(dir, 'r/k8s.io/x/a/b'), { recursive: true });
    await mkdir(join(dir, 'r/k8s.io/y'), { recursive: true });
    const { removed, problems } = await removeCgroup(host, [join(dir, 'r/k8s.io/x')], realClock(), signal);
    assert.deepEqual(problems, []);
    assert.equal(removed.length, 3);
    assert.deepEqual(await readdir(join(dir, 'r/k8s.io')), ['y']);
    assert.deepEqual(await removeEmptyCgroup(host, [join(dir, 'r/k8s.io')]), []);
    assert.deepEqual(await removeEmptyCgroup(host, [join(dir, 'r/k8s.io/y')]), [join(dir, 'r/k8s.io/y')]);
  });

  it('reports the cgroups that it cannot remove', async () => {
    await mkdir(join(dir, 's/x'), { recursive: true });
    await writeFile(join(dir, 's/x/file'), '');
    const { problems } = await removeCgroup(host, [join(dir, 's/x')], realClock(), signal);
    assert.match(String(problems[0]), /Cannot remove the cgroup .*\/s\/x: ENOTEMPTY/);
  });
});

describe('removal of cgroups with processes in them', () => {
  const signal = new AbortController().signal;
  const dir = '/sys/fs/cgroup/memory/x';

  async function withChild(): Promise<SimulatedCgroupHost> {
    const host = new SimulatedCgroupHost({ mode: 'v1' });
    await host.mkdir(dir);
    await host.mkdir(`${dir}/inner`);
    host.attach(70, dir);
    host.attach(71, `${dir}/inner`);
    return host;
  }

  it('kills every process in the cgroup and its descendants, then removes the cgroup', async () => {
    const host = await withChild();
    const clock = new VirtualClock();
    assert.deepEqual(await killCgroup(host, [dir], clock, signal), []);
    const { problems } = await removeCgroup(host, [dir], clock, signal);
    assert.deepEqual([problems, host.directories()], [[], []]);
  });

  it('reports the processes that survive five rounds of killing', async () => {
    const host = await withChild();
    host.makeUnkillable(71);
    assert.deepEqual(await onVirtualTime((clock) => killCgroup(host, [dir], clock, signal)), [71]);
  });

  it('retries the removal of a busy cgroup for about a second before it reports it', async () => {
    const host = await withChild();
    const { result, tookMs } = await measured((clock) => removeCgroup(host, [dir], clock, signal));
    assert.match(String(result.problems[0]), /Cannot remove the cgroup .*EBUSY/);
    assert.equal(tookMs, 1023);
  });

  it('never kills process 1 or its own process', async () => {
    const host = await withChild();
    host.attach(1, dir);
    host.attach(process.pid, dir);
    const left = await onVirtualTime((clock) => killCgroup(host, [dir], clock, signal));
    assert.deepEqual(left, [1, process.pid]);
  });
});

async function onVirtualTime<T>(work: (clock: VirtualClock) => Promise<T>): Promise<T> {
  return (await measured(work)).result;
}

async function measured<T>(
  work: (clock: VirtualClock) => Promise<T>,
): Promise<{ result: T; tookMs: number }> {
  const clock = new VirtualClock();
  const startMs = clock.monotonicMs();
  let ended: { result: T } | undefined;
  const running = work(clock).then((result) => {
    ended = { result };
    return result;
  });
  assert.ok(await clock.advanceUntil(() => ended !== undefined, 60_000));
  return { result: await running, tookMs: clock.monotonicMs() - startMs };
}
