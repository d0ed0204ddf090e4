import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import type { EvictionSignal } from '../../config/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import type { DiskLayout, PodResourceUsage } from './eviction-stats.ts';
import { rankPods } from './rank.ts';

interface Sketch {
  readonly name: string;
  readonly priority?: number;
  readonly requests?: Readonly<Record<string, string>>;
  /** The resource usage of the pod; undefined for a pod without stats. */
  readonly measures?: Partial<PodResourceUsage> | undefined;
}

const none: PodResourceUsage = { memoryBytes: 0, processes: 0, containers: [], volumes: new Map() };
const volumes = [
  { name: 'scratch', emptyDir: {} },
  { name: 'fast', emptyDir: { medium: 'Memory' } },
  { name: 'settings', configMap: { name: 'c' } },
  { name: 'machine', hostPath: { path: '/x' } },
  { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
];

function podOf({ name, priority, requests }: Sketch): Pod {
  return aPod({
    metadata: { name, uid: podUid(name) },
    spec: { containers: [{ name: 'main', ...(requests && { resources: { requests } }) }], priority, volumes },
  });
}

function ranked(signal: EvictionSignal, sketches: readonly Sketch[], layout: DiskLayout = 'single'): string {
  const known = sketches.flatMap(({ name, measures }) =>
    measures === undefined ? [] : [[podUid(name), { ...none, ...measures }] as const],
  );
  const pods = rankPods(sketches.map(podOf), { signal, layout, measures: new Map(known) });
  return pods.map(({ metadata }) => metadata.name).join(' ');
}

const using = (memoryBytes: number) => ({ measures: { memoryBytes } });
const wrote = (rootfs: number, logs: number, named: Readonly<Record<string, number>> = {}) => ({
  measures: {
    containers: [
      {
        name: 'main',
        memoryBytes: 0,
        rootfs: { bytes: rootfs, inodes: rootfs },
        logs: { bytes: logs, inodes: logs },
      },
    ],
    volumes: new Map(Object.entries(named).map(([name, bytes]) => [name, { bytes, inodes: bytes }])),
  },
});

describe('rankPods: the eviction order', () => {
  it('ranks pods without stats first, then pods above their requests', () => {
    const sketches = [
      { name: 'within', requests: { memory: '200' }, ...using(150), priority: -5 },
      { name: 'above', requests: { memory: '100' }, ...using(150), priority: 5 },
      { name: 'unknown', priority: 9 },
    ];
    assert.equal(ranked('memory.available', sketches), 'unknown above within');
    assert.equal(ranked('allocatableMemory.available', sketches), 'unknown above within');
  });

  it('ranks pods by priority and then by the usage above the request', () => {
    const sketches = [
      { name: 'much', requests: { memory: '100' }, ...using(900), priority: 1 },
      { name: 'little', ...using(10) },
      { name: 'more', requests: { memory: '500' }, ...using(800) },
      { name: 'most', requests: { memory: '100' }, ...using(500) },
    ];
    assert.equal(ranked('memory.available', sketches), 'most more little much');
  });

  it('a usage equal to the request is not ranked as above the request', () => {
    const sketches = [
      { name: 'exact', requests: { memory: '500' }, ...using(500) },
      { name: 'one', ...using(1) },
    ];
    assert.equal(ranked('memory.available', sketches), 'one exact');
  });

  it('ranks by the usage of the disk under pressure', () => {
    const sketches = [
      { name: 'layers', ...wrote(300, 0) },
      { name: 'logs', ...wrote(0, 200) },
      { name: 'volumes', ...wrote(0, 0, { scratch: 60, settings: 40, machine: 20, fast: 999, claim: 999 }) },
    ];
    assert.equal(ranked('nodefs.available', sketches, 'single'), 'layers logs volumes');
    assert.equal(ranked('nodefs.available', sketches, 'dedicated'), 'logs volumes layers');
    assert.equal(ranked('imagefs.available', sketches, 'dedicated'), 'layers logs volumes');
    assert.equal(ranked('nodefs.inodesFree', sketches, 'dedicated'), 'logs volumes layers');
    assert.equal(ranked('containerfs.available', sketches, 'split'), 'layers logs volumes');
    assert.equal(ranked('imagefs.available', sketches.toReversed(), 'split'), 'volumes logs layers');
  });

  it('compares ephemeral-storage requests with bytes, not with inodes', () => {
    const requested = { name: 'asked', requests: { 'ephemeral-storage': '1000' }, ...wrote(500, 0) };
    const other = { name: 'other', ...wrote(400, 0) };
    assert.equal(ranked('nodefs.available', [requested, other]), 'other asked');
    assert.equal(ranked('nodefs.inodesFree', [other, requested]), 'asked other');
  });

  it('ranks by priority and then by the number of processes under PID pressure', () => {
    const running = (processes: number) => ({ measures: { processes, memoryBytes: 1_000 - processes } });
    const sketches = [
      { name: 'few', ...running(3) },
      { name: 'dear', ...running(500), priority: 7 },
      { name: 'many', ...running(400) },
    ];
    assert.equal(ranked('pid.available', sketches), 'many few dear');
  });

  it('never ranks a pod within its requests before a pod above its requests, and omits no pod', () => {
    const sketch = fc.record({
      name: fc.uuid(),
      priority: fc.integer({ min: -3, max: 3 }),
      request: fc.nat(50),
      usage: fc.option(fc.nat(100), { nil: undefined }),
    });
    const many = fc.uniqueArray(sketch, { selector: ({ name }) => name, maxLength: 12 });
    fc.assert(
      fc.property(many, (all) => {
        const order = ranked(
          'memory.available',
          all.map(({ name, priority, request, usage }) => ({
            name,
            priority,
            requests: { memory: `${request}` },
            measures: usage === undefined ? undefined : { memoryBytes: usage },
          })),
        );
        const names = order === '' ? [] : order.split(' ');
        assert.deepEqual(names.toSorted(), all.map(({ name }) => name).toSorted());
        const classes = names.map((name) => {
          const { usage, request } = all.find((each) => each.name === name) ?? assert.fail();
          if (usage === undefined) return 0;
          return usage > request ? 1 : 2;
        });
        assert.deepEqual(classes, classes.toSorted());
      }),
    );
  });
});
