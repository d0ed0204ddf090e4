import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { aPod } from '../../../test/fakes/pods.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { collectLogs } from '../../lib/index.ts';
import { type Pod, podUid } from '../../pods/index.ts';
import { unaligned } from '../topology/hint-provider.ts';
import { CpuManager } from './cpu-manager.ts';
import { formatCpuSet } from './cpu-set.ts';
import { decodeCpuCheckpoint } from './cpu-state.ts';
import { CpuTopology } from './cpu-topology.ts';
import { type CpuPolicyOptions, StaticCpuPolicy } from './static-cpu-policy.ts';

const plain: CpuPolicyOptions = {
  fullPcpusOnly: false,
  strictCpuReservation: false,
  preferAlignByUncoreCache: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
};
/** A machine with two threads per core, whose CPU numbers differ by four. */
const cpus = new Map(
  Array.from({ length: 8 }, (_, cpu) => [cpu, { numaNode: 0, socket: 0, core: cpu % 4, uncoreCache: 0 }]),
);
const signal = new AbortController().signal;
const terms = { affinity: unaligned, signal };

function guaranteed(name: string, cpu: string, init?: string): Pod {
  const asks = (amount: string) => ({
    requests: { cpu: amount, memory: '1Mi' },
    limits: { cpu: amount, memory: '1Mi' },
  });
  return aPod({
    metadata: { uid: podUid(name), name },
    spec: {
      containers: [{ name: 'main', resources: asks(cpu) }],
      ...(init !== undefined && { initContainers: [{ name: 'init', resources: asks(init) }] }),
    },
  });
}

class Rig {
  readonly active = new Map<string, Pod>();
  readonly running = new Map<string, { name: string; id: string }[]>();
  readonly updates: string[] = [];
  readonly lingering = new Set<string>();
  text: string | undefined;
  failing = false;
  readonly clock = new VirtualClock();
  manager: CpuManager;
  readonly #options: Partial<CpuPolicyOptions>;

  constructor(options: Partial<CpuPolicyOptions> = {}) {
    this.#options = options;
    this.manager = this.make();
  }

  make(): CpuManager {
    const { clock } = this;
    const groups = new CpuTopology({ cpus });
    this.manager = new CpuManager({
      clock,
      logger: collectLogs(clock).logger,
      policy: new StaticCpuPolicy({
        groups,
        reserved: { count: 1, cpus: new Set([0]) },
        options: { ...plain, ...this.#options },
      }),
      file: {
        read: async () => this.text,
        write: async (text) => {
          if (this.failing) throw new Error('no space');
          this.text = text;
        },
      },
      activePods: () => [...this.active.values()],
      mayRun: (uid) => this.lingering.has(uid),
      runningContainers: (uid) => this.running.get(uid) ?? [],
      fromRuntime: async () => [],
      update: async (id, where) => void this.updates.push(`${id} ${where}`),
      reconcileMs: 10_000,
    });
    return this.manager;
  }

  async add(pod: Pod): Promise<string> {
    this.active.set(pod.metadata.uid, pod);
    for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
      const rejection = await this.manager.allocate(pod, container, terms);
      if (rejection !== undefined) return rejection.message;
    }
    return this.own(pod.metadata.name);
  }

  own(name: string, container = 'main'): string {
    return formatCpuSet(this.manager.exclusiveCpus(podUid(name), container));
  }
}

describe('the CPU manager', () => {
  it('assigns exclusive CPUs only to Guaranteed pods with integer CPU requests', async () => {
    const harness = new Rig();
    assert.equal(await harness.add(guaranteed('whole', '2')), '1,5');
    assert.equal(await harness.add(guaranteed('part', '1500m')), '');
    assert.equal(await harness.add(aPod({ metadata: { uid: podUid('free') } })), '');
    assert.equal(harness.manager.cpusetFor(podUid('part'), 'main'), '0,2-4,6-7');
  });

  it('persists an allocation of CPUs before it returns, and restores it', async () => {
    const harness = new Rig();
    await harness.add(guaranteed('one', '2'));
    const noted = decodeCpuCheckpoint(harness.text ?? '').state;
    assert.equal(formatCpuSet(noted.defaultCpuSet), '0,2-4,6-7');
    await harness.make().restore(signal);
    assert.equal(harness.own('one'), '1,5');
    assert.equal(await harness.add(guaranteed('one', '2')), '1,5', 'a repeated allocation changes nothing');
  });

  it('allocates CPUs while the disk rejects writes, and persists them later', async () => {
    const harness = new Rig();
    harness.failing = true;
    assert.equal(await harness.add(guaranteed('one', '2')), '1,5');
    harness.failing = false;
    await harness.manager.reconcile(signal);
    assert.equal(decodeCpuCheckpoint(harness.text ?? '').state.assignments.size, 1);
  });

  it('reuses the exclusive CPUs of init containers that have exited', async () => {
    const harness = new Rig();
    await harness.add(guaranteed('one', '2', '4'));
    assert.equal(harness.own('one', 'init'), '1-2,5-6');
    assert.equal(harness.own('one'), '1,5');
  });

  it('rejects a request for a part of a core with full-pcpus-only', async () => {
    const harness = new Rig({ fullPcpusOnly: true });
    assert.equal(
      await harness.add(guaranteed('odd', '3')),
      'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2',
    );
    assert.equal(
      await harness.add(guaranteed('many', '8')),
      'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2',
    );
  });

  it('updates the cpuset of a running container once when its CPUs change', async () => {
    const harness = new Rig();
    const shared = aPod({ metadata: { uid: podUid('shared'), name: 'shared' } });
    await harness.add(shared);
    harness.running.set('shared', [{ name: 'main', id: 's1' }]);
    await harness.manager.reconcile(signal);
    assert.deepEqual(harness.updates, ['s1 0-7'], 'the current CPUs are unknown');
    await harness.add(guaranteed('one', '2'));
    await harness.manager.reconcile(signal);
    await harness.manager.reconcile(signal);
    assert.deepEqual(harness.updates.slice(1), ['s1 0,2-4,6-7']);
  });

  it('does not update the cpuset of a container that was created with the right CPUs', async () => {
    const harness = new Rig();
    await harness.add(guaranteed('one', '2'));
    assert.equal(harness.manager.cpusetFor(podUid('one'), 'main'), '1,5');
    harness.running.set('one', [{ name: 'main', id: 'o1' }]);
    await harness.manager.reconcile(signal);
    assert.deepEqual(harness.updates, []);
  });

  it('releases the CPUs of inactive pods', async () => {
    const harness = new Rig();
    await harness.add(guaranteed('one', '6'));
    await assert.rejects(harness.add(guaranteed('two', '2')), /requested=2, available=1/);
    harness.active.delete('one');
    harness.lingering.add('one');
    await assert.rejects(
      harness.add(guaranteed('two', '2')),
      /available=1/,
      'it is terminating but still runs',
    );
    harness.lingering.delete('one');
    assert.equal(await harness.add(guaranteed('two', '2')), '1,5');
    assert.equal(harness.own('one'), '');
  });
});

describe('the CPU manager, for any sequence of pods', () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    what: fc.constantFrom('add', 'add', 'remove', 'restart'),
    count: fc.integer({ min: 1, max: 5 }),
    init: fc.option(fc.integer({ min: 1, max: 4 })),
  });

  it('for any sequence of pods, assigns each CPU to at most one pod, assigns exactly the requested number, and loses no CPU', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, fullPcpusOnly) => {
        const harness = new Rig({ fullPcpusOnly });
        const refused = new Set<string>();
        for (const { name, what, count, init } of steps) {
          if (what === 'restart') await harness.make().restore(signal);
          else if (what === 'remove') harness.active.delete(name);
          else if (!harness.active.has(name)) {
            await harness.manager.reconcile(signal);
            const pod = guaranteed(name, `${count}`, init === null ? undefined : `${init}`);
            refused.delete(name);
            const own = await harness.add(pod).catch(() => 'refused');
            if (!/^[\d,-]*$/.test(own)) {
              harness.active.delete(name);
              refused.add(name);
            } else assert.equal(harness.manager.exclusiveCpus(pod.metadata.uid, 'main').size, count);
          }
          await harness.manager.reconcile(signal);
          const { defaultCpuSet, assignments } = decodeCpuCheckpoint(harness.text ?? '').state;
          const all = [...defaultCpuSet];
          for (const own of assignments.values()) {
            const ofPod = new Set([...own.values()].flatMap((set) => [...set]));
            all.push(...ofPod);
            const cores = new Set([...(own.get('main') ?? [])].map((cpu) => cpu % 4));
            if (fullPcpusOnly) assert.equal(cores.size * 2, own.get('main')?.size ?? 0, 'whole cores');
          }
          assert.deepEqual(
            all.toSorted((each, other) => each - other),
            [0, 1, 2, 3, 4, 5, 6, 7],
          );
          assert.ok(defaultCpuSet.has(0), 'the reserved CPUs stay');
          assert.ok(
            [...assignments.keys()].every((uid) => harness.active.has(uid)),
            'only active pods have CPUs',
          );
        }
      }),
      { numRuns: 200 },
    );
  });
});
