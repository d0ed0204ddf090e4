import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../../pods/index.ts';
import { nestedMountPoints } from './payload-paths.ts';

type Mount = readonly [volume: string, mountPath: string];

function podWith(...containers: readonly (readonly Mount[])[]): Pod {
  const mounted = containers.map((mounts, index) => ({
    name: `c${index}`,
    image: 'i',
    volumeMounts: mounts.map(([name, mountPath]) => ({ name, mountPath })),
  }));
  return { metadata: { name: 'p', namespace: 'n', uid: 'u' }, spec: { containers: mounted } } as never;
}

function cpuMs(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

describe('the mount points that volumes must contain for other volumes', () => {
  it('lists the outermost mounts below each mount of the volume in any container, sorted', () => {
    const pod = podWith(
      [
        ['v', '/etc/app/'],
        ['a', '/etc/app//z'],
        ['b', '/etc/app/d/e'],
        ['c', '/etc/app/d/e/f'],
        ['d', '/etc/app-2/x'],
      ],
      [
        ['v', '/'],
        ['a', '/m/n'],
        ['v', '/k'],
        ['b', '/k/l'],
      ],
    );
    assert.deepEqual(nestedMountPoints(pod, 'v'), ['d/e', 'k', 'l', 'm/n', 'z']);
    assert.deepEqual(nestedMountPoints(pod, 'b'), ['f']);
    assert.deepEqual(nestedMountPoints(pod, 'a'), []);
  });

  it('rejects only the volume whose mount path leads out of the container', () => {
    const pod = podWith([
      ['v', '../x'],
      ['w', '/w'],
    ]);
    const message = 'invalid container mount point ../x';
    assert.throws(() => nestedMountPoints(pod, 'v'), { code: 'VOLUME_UNUSABLE', message });
    assert.deepEqual(nestedMountPoints(pod, 'w'), []);
  });

  it('computes the nested mount points of 8,000 volumes with 8,000 mounts, and of 200 nested mounts, within 2 s of CPU time', () => {
    const base = (depth: number) => '/x'.repeat(depth);
    const nested = Array.from({ length: 200 }, (_, depth): Mount => [`v${depth}`, base(depth + 1)]);
    const inner = Array.from({ length: 8_000 }, (_, index): Mount => [`e${index}`, `${base(200)}/p${index}`]);
    const pod = podWith([...inner, ...nested]);
    const ms = cpuMs(() => {
      for (const [volume] of [...nested, ...inner]) nestedMountPoints(pod, volume);
    });
    assert.equal(nestedMountPoints(pod, 'v199').length, 8_000);
    assert.deepEqual(nestedMountPoints(pod, 'v0'), ['x']);
    assert.ok(ms < 2_000, `took ${ms} ms`);
  });

  it('rejects the volumes of a pod that needs 4,000 mount points inside each of 4,000 volumes', () => {
    const spelled = Array.from(
      { length: 4_000 },
      (_, index): Mount => [`v${index}`, `/x${'/'.repeat(index)}`],
    );
    const inner = Array.from({ length: 4_000 }, (_, index): Mount => ['e', `/x/p${index}`]);
    const pod = podWith([...spelled, ...inner]);
    const ms = cpuMs(() => assert.equal(nestedMountPoints(pod, 'v0').length, 4_000));
    const message = 'the pod needs more than 65536 mount points inside its volumes';
    assert.throws(() => nestedMountPoints(pod, 'v3999'), { code: 'VOLUME_UNUSABLE', message });
    assert.ok(ms < 2_000, `took ${ms} ms`);
  });
});
