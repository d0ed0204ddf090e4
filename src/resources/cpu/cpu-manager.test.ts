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
/** Two threads per core, numbered four apart. */
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
  it('assigns exclusive CPUs only to Guaranteed pods with integer requests', async () => {
    const rig = new Rig();
    assert.equal(await rig.add(guaranteed('whole', '2')), '1,5');
    assert.equal(await rig.add(guaranteed('part', '1500m')), '');
    assert.equal(await rig.add(aPod({ metadata: { uid: podUid('free') } })), '');
    assert.equal(rig.manager.cpusetFor(podUid('part'), 'main'), '0,2-4,6-7');
  });

  it('persists an allocation before it returns and restores it', async () => {
    const rig = new Rig();
    await rig.add(guaranteed('one', '2'));
    const noted = decodeCpuCheckpoint(rig.text ?? '').state;
    assert.equal(formatCpuSet(noted.defaultCpuSet), '0,2-4,6-7');
    await rig.make().restore(signal);
    assert.equal(rig.own('one'), '1,5');
    assert.equal(await rig.add(guaranteed('one', '2')), '1,5', 'a repeated allocation changes nothing');
  });

  it('continues while the disk rejects writes and persists later', async () => {
    const rig = new Rig();
    rig.failing = true;
    assert.equal(await rig.add(guaranteed('one', '2')), '1,5');
    rig.failing = false;
    await rig.manager.reconcile(signal);
    assert.equal(decodeCpuCheckpoint(rig.text ?? '').state.assignments.size, 1);
  });

  it('reuses the CPUs of init containers', async () => {
    const rig = new Rig();
    await rig.add(guaranteed('one', '2', '4'));
    assert.equal(rig.own('one', 'init'), '1-2,5-6');
    assert.equal(rig.own('one'), '1,5');
  });

  it('rejects a request of partial cores with full-pcpus-only', async () => {
    const rig = new Rig({ fullPcpusOnly: true });
    assert.equal(
      await rig.add(guaranteed('odd', '3')),
      'SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2',
    );
    assert.equal(
      await rig.add(guaranteed('many', '8')),
      'SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 6, requested CPUs = 8, CPUs per core = 2',
    );
  });

  it('moves running containers once when their CPUs change', async () => {
    const rig = new Rig();
    const shared = aPod({ metadata: { uid: podUid('shared'), name: 'shared' } });
    await rig.add(shared);
    rig.running.set('shared', [{ name: 'main', id: 's1' }]);
    await rig.manager.reconcile(signal);
    assert.deepEqual(rig.updates, ['s1 0-7'], 'the current CPUs are unknown');
    await rig.add(guaranteed('one', '2'));
    await rig.manager.reconcile(signal);
    await rig.manager.reconcile(signal);
    assert.deepEqual(rig.updates.slice(1), ['s1 0,2-4,6-7']);
  });

  it('does not update a container created with the right CPUs', async () => {
    const rig = new Rig();
    await rig.add(guaranteed('one', '2'));
    assert.equal(rig.manager.cpusetFor(podUid('one'), 'main'), '1,5');
    rig.running.set('one', [{ name: 'main', id: 'o1' }]);
    await rig.manager.reconcile(signal);
    assert.deepEqual(rig.updates, []);
  });

  it('releases the CPUs of inactive pods', async () => {
    const rig = new Rig();
    await rig.add(guaranteed('one', '6'));
    await assert.rejects(rig.add(guaranteed('two', '2')), /requested=2, available=1/);
    rig.active.delete('one');
    rig.lingering.add('one');
    await assert.rejects(rig.add(guaranteed('two', '2')), /available=1/, 'it is terminating but still runs');
    rig.lingering.delete('one');
    assert.equal(await rig.add(guaranteed('two', '2')), '1,5');
    assert.equal(rig.own('one'), '');
  });
});

describe('for any sequence of pods', () => {
  const step = fc.record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    what: fc.constantFrom('add', 'add', 'remove', 'restart'),
    count: fc.integer({ min: 1, max: 5 }),
    init: fc.option(fc.integer({ min: 1, max: 4 })),
  });

  it('assigns each CPU to one pod at most, exactly as requested, and loses none', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, fullPcpusOnly) => {
        const rig = new Rig({ fullPcpusOnly });
        const refused = new Set<string>();
        for (const { name, what, count, init } of steps) {
          if (what === 'restart') await rig.make().restore(signal);
          else if (what === 'remove') rig.active.delete(name);
          else if (!rig.active.has(name)) {
            await rig.manager.reconcile(signal);
            const pod = guaranteed(name, `${count}`, init === null ? undefined : `${init}`);
            refused.delete(name);
            const own = await rig.add(pod).catch(() => 'refused');
            if (!/^[\d,-]*$/.test(own)) {
              rig.active.delete(name);
              refused.add(name);
            } else assert.equal(rig.manager.exclusiveCpus(pod.metadata.uid, 'main').size, count);
          }
          await rig.manager.reconcile(signal);
          const { defaultCpuSet, assignments } = decodeCpuCheckpoint(rig.text ?? '').state;
          const all = [...defaultCpuSet];
          for (const own of assignments.values()) {
            const ofPod = new Set([...own.values()].flatMap((set) => [...set]));
            all.push(...ofPod);
            const cores = new Set([...(own.get('main') ?? [])].map((cpu) => cpu % 4));
            if (fullPcpusOnly) assert.equal(cores.size * 2, own.get('main')?.size ?? 0, 'whole cores');
          }
          assert.deepEqual(
            all.toSorted((one, other) => one - other),
            [0, 1, 2, 3, 4, 5, 6, 7],
          );
          assert.ok(defaultCpuSet.has(0), 'the reserved CPUs stay');
          assert.ok(
            [...assignments.keys()].every((uid) => rig.active.has(uid)),
            'only active pods have CPUs',
          );
        }
      }),
      { numRuns: 200 },
    );
  });
});
