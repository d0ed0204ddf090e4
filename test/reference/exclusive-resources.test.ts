import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Container } from '../../src/kinds/index.ts';
import { collectLogs, MetricRegistry } from '../../src/lib/index.ts';
import { type Pod, podUid } from '../../src/pods/index.ts';
import { decodeCpuCheckpoint, encodeCpuCheckpoint } from '../../src/resources/cpu/cpu-state.ts';
import { createResourceAllocator } from '../../src/resources/exclusive/index.ts';
import type { ExclusiveResourceSettings } from '../../src/resources/index.ts';
import {
  decodeMemoryCheckpoint,
  encodeMemoryCheckpoint,
} from '../../src/resources/memory/memory-checkpoint.ts';
import type { MemoryBlock } from '../../src/resources/memory/memory-state.ts';
import { aPod } from '../fakes/pods.ts';
import { type SketchedMachine, sysTree, treeFiles } from '../fakes/sketched-machine.ts';
import { VirtualClock } from '../fakes/virtual-clock.ts';

/**
 * Recorded decisions and checkpoints of the Go kubelet's CPU, memory and topology managers, step by
 * step, on machines of different topologies.
 */
interface Scenario {
  readonly machine: string;
  readonly cpuOptions: Readonly<Record<string, string>>;
  readonly reservedCpus: string;
  readonly reservedMilliCpu: number;
  readonly memoryPolicy: 'None' | 'Static';
  readonly reservedMemory?: Readonly<Record<string, number>>;
  readonly topologyPolicy: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  readonly topologyScope: 'container' | 'pod';
  readonly topologyOptions: Readonly<Record<string, string>>;
  readonly steps: readonly Step[];
}

interface Step {
  readonly add?: { readonly uid: string; readonly containers: readonly Asking[] };
  readonly remove?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly cpu: object;
  readonly memory?: object;
}

interface Asking {
  readonly name: string;
  readonly init?: 'init' | 'sidecar';
  readonly ask: Readonly<Record<string, string>>;
}

const file = new URL('../testdata/exclusive-resources/decisions.jsonl', import.meta.url);
const lines = (await readFile(file, 'utf8')).trim().split('\n');
const recorded = lines.map((line) => JSON.parse(line) as SketchedMachine | Scenario);
const machines = recorded.filter((line) => 'nodes' in line);
const scenarios = recorded.filter((line) => 'steps' in line);

function settingsOf(scenario: Scenario): ExclusiveResourceSettings {
  const { topologyPolicy: policy, topologyScope: scope, reservedMemory = {} } = scenario;
  const reserved = Object.entries(reservedMemory).map(([id, bytes]) => ({
    numaNode: Number(id),
    limits: new Map([['memory', BigInt(bytes)]]),
  }));
  const sum = Object.values(reservedMemory).reduce((all, bytes) => all + bytes, 0);
  return {
    cpu: {
      reservedCpus: scenario.reservedCpus,
      reservedCount: Math.ceil(scenario.reservedMilliCpu / 1_000),
      options: scenario.cpuOptions,
      reconcileMs: 10_000,
    },
    memory:
      scenario.memoryPolicy === 'None'
        ? undefined
        : { reserved, required: new Map([['memory', BigInt(sum)]]) },
    topology: policy === 'none' ? undefined : { policy, scope, options: scenario.topologyOptions },
  };
}

function podOf({ uid, containers }: NonNullable<Step['add']>): Pod {
  const made = ({ name, init, ask }: Asking): Container => ({
    name,
    resources: { requests: ask, limits: ask },
    ...(init === 'sidecar' && { restartPolicy: 'Always' }),
  });
  return aPod({
    metadata: { uid: podUid(uid), name: uid },
    spec: {
      initContainers: containers.filter(({ init }) => init !== undefined).map(made),
      containers: containers.filter(({ init }) => init === undefined).map(made),
    },
  });
}

const signal = new AbortController().signal;
const idle: Pod = aPod({ metadata: { uid: podUid('idle'), name: 'idle' } });

async function replay(scenario: Scenario): Promise<void> {
  const machine = machines.find(({ name }) => name === scenario.machine);
  assert.ok(machine);
  const active = new Map<string, Pod>();
  const written = new Map<string, string>();
  const clock = new VirtualClock();
  const allocator = await createResourceAllocator(settingsOf(scenario), {
    clock,
    logger: collectLogs(clock).logger,
    metrics: new MetricRegistry({ onError: assert.ifError }),
    files: treeFiles(sysTree(machine)),
    stateFile: (name) => ({
      read: async () => written.get(name),
      write: async (text) => void written.set(name, text),
    }),
    activePods: () => [...active.values()],
    mayRun: () => false,
    runningContainers: () => [],
    isAnyEnding: () => false,
    fromRuntime: async () => [],
    update: async () => {},
  });
  await allocator.restore(signal);
  for (const [index, step] of scenario.steps.entries()) {
    const where = `step ${index}: ${JSON.stringify(step.add ?? step.remove)}`;
    if (step.add === undefined) active.delete(step.remove ?? '');
    else {
      const pod = podOf(step.add);
      active.set(step.add.uid, pod);
      const rejection = await allocator.allocatePod(pod, signal);
      assert.deepEqual([rejection?.reason, rejection?.message], [step.reason, step.message], where);
      if (rejection !== undefined) active.delete(step.add.uid);
    }
    // Allocates resources for another pod; each allocation first releases the resources of removed
    // pods.
    await allocator.allocatePod(idle, signal);
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(JSON.parse(written.get('cpu_manager_state') ?? ''), step.cpu, where);
    if (step.memory !== undefined)
      assert.deepEqual(
        comparable(written.get('memory_manager_state') ?? ''),
        comparable(JSON.stringify(step.memory)),
        where,
      );
  }
}

/**
 * Drops the checksum and sorts the memory blocks, because Go writes the blocks of a container in
 * random order.
 */
function comparable(text: string): unknown {
  const {
    checksum: _sum,
    entries = {},
    ...rest
  } = JSON.parse(text) as {
    checksum: number;
    entries?: Record<string, Record<string, MemoryBlock[]>>;
  };
  for (const own of Object.values(entries))
    for (const blocks of Object.values(own)) blocks.sort((each, other) => (each.type < other.type ? -1 : 1));
  return { ...rest, entries };
}

describe('CPUs and memory are assigned as by the Go kubelet', () => {
  for (const [index, scenario] of scenarios.entries()) {
    const { machine, cpuOptions, memoryPolicy, topologyPolicy, topologyScope } = scenario;
    const options = Object.keys(cpuOptions).join(' ');
    const name = `${index}: ${machine} ${options} ${memoryPolicy} ${topologyPolicy} ${topologyScope}`;
    it(name, () => replay(scenario));
  }
});

describe("checkpoints of the Go kubelet's CPU and memory managers", () => {
  const steps = scenarios.flatMap((scenario) => scenario.steps);

  it('checkpoints are read, and written again with identical bytes', () => {
    for (const { cpu, memory } of steps) {
      const text = JSON.stringify(cpu);
      assert.equal(encodeCpuCheckpoint(decodeCpuCheckpoint(text)), text);
      if (memory === undefined) continue;
      const noted = JSON.stringify(memory);
      assert.equal(encodeMemoryCheckpoint(decodeMemoryCheckpoint(noted)), noted);
    }
  });

  it('checkpoints with a changed number are rejected by their checksum', () => {
    const noted = steps.flatMap(({ memory }) => (memory === undefined ? [] : [JSON.stringify(memory)]));
    for (const text of noted.slice(0, 20))
      assert.throws(() => decodeMemoryCheckpoint(text.replace('"free":', '"free":1')), /checksum/);
  });
});
