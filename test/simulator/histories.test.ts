import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ContainerStatus } from '../../src/cri/index.ts';
import { seededRandom } from '../../src/lib/index.ts';
import { GrpcError } from '../../src/protocols/grpc/index.ts';
import { busybox, SimulatedNode } from '../fakes/simulated-node.ts';
import { randomFaults } from './faults.ts';
import type { Flavour } from './flavour.ts';
import type { RestartOptions } from './recovery.ts';
import type { TraceEntry } from './trace.ts';

/** One action on the runtime: a call by a client, or an injected failure. */
type Call =
  | { readonly do: 'run' | 'stop-sandbox' | 'remove-sandbox'; readonly pod: number; readonly thenMs: number }
  | {
      readonly do: 'create' | 'start' | 'stop' | 'remove' | 'exec';
      readonly pod: number;
      readonly slot: number;
      readonly thenMs: number;
    };

type Step =
  | Call
  | { readonly do: 'crash-sandbox'; readonly pod: number }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'restart'; readonly how: RestartOptions }
  | { readonly do: 'disconnect' };

const scripts = ['exit 0', 'sleep 2; exit 3', 'sleep 100', "trap '' TERM; sleep 100", '/nope'];

const pod = fc.nat({ max: 1 });
const slot = fc.nat({ max: 1 });
/**
 * The time to wait after a call: sometimes too short for the call to end, sometimes long enough.
 */
const thenMs = fc.nat({ max: 60 });
const oneOf = fc.constantFrom;

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: oneOf('run' as const), pod, thenMs }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: oneOf('stop-sandbox' as const, 'remove-sandbox' as const), pod, thenMs }),
  },
  {
    weight: 16,
    arbitrary: fc.record({
      do: oneOf(
        ...(['create', 'create', 'create', 'start', 'start', 'start', 'stop', 'remove', 'exec'] as const),
      ),
      pod,
      slot,
      thenMs,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: oneOf('wait' as const), ms: fc.nat({ max: 5_000 }) }) },
  {
    weight: 1,
    arbitrary: fc.oneof(
      fc.record({ do: oneOf('crash-sandbox' as const), pod }),
      fc.constant({ do: 'disconnect' as const }),
      fc.record({
        do: oneOf('restart' as const),
        how: fc.record({
          state: oneOf('kept' as const, 'lost' as const, 'unknown' as const),
          processes: oneOf('kept' as const, 'killed' as const),
          downMs: fc.nat({ max: 500 }),
        }),
      }),
    ),
  },
);

/** Starts each step without waiting for the previous one to end, as concurrent clients do. */
class Driver {
  readonly node: SimulatedNode;
  readonly #pending: Promise<unknown>[] = [];
  #containers = 0;

  constructor(seed: number, flavour: Flavour, faults: 'none' | 'many') {
    this.node = new SimulatedNode({ seed, flavour });
    if (faults === 'none') return;
    const rates = {
      delay: 0.05,
      error: 0.05,
      lostReply: 0.05,
      lateEffect: 0.05,
      eventDropped: 0.1,
      streamCut: 0.05,
    };
    this.node.runtime.setFaults(randomFaults({ random: seededRandom(seed + 1), rates }));
  }

  async take(step: Step): Promise<void> {
    const { node } = this;
    switch (step.do) {
      case 'wait':
        return await node.clock.advance(step.ms);
      case 'restart':
        return node.runtime.restart(step.how);
      case 'disconnect':
        return node.runtime.disconnect();
      case 'crash-sandbox':
        return this.#crash(step.pod);
      default:
        this.#call(step);
        await node.clock.advance(step.thenMs);
    }
  }

  /** Waits until every started call has ended, with a result or an error. */
  async settle(): Promise<void> {
    this.node.runtime.setFaults(undefined);
    await this.node.clock.advance(300_000);
    // Disconnecting ends the calls whose response was lost, which would wait forever.
    this.node.runtime.disconnect();
    await this.node.done(Promise.all(this.#pending));
  }

  #crash(pod: number): void {
    const found = this.node.runtime.sandboxes().find(({ podName }) => podName === `p${pod}`);
    if (found !== undefined) this.node.runtime.crashSandbox(found.id);
  }

  #call(step: Call): void {
    this.#pending.push(
      this.#begin(step).catch((error: unknown) => {
        assert.ok(error instanceof GrpcError, String(error));
      }),
    );
  }

  #begin(step: Call): Promise<unknown> {
    const { cri, options, runtime } = this.node;
    const config = this.node.podConfig(`p${step.pod}`);
    const podSandboxId = runtime.sandboxes().find(({ podName }) => podName === `p${step.pod}`)?.id ?? 'none';
    if (step.do === 'run') return cri.runPodSandbox({ config }, options);
    if (step.do === 'stop-sandbox') return cri.stopPodSandbox({ podSandboxId }, options);
    if (step.do === 'remove-sandbox') return cri.removePodSandbox({ podSandboxId }, options);
    const name = `c${'slot' in step ? step.slot : 0}`;
    const containers = runtime.containers().filter((item) => item.podUid === `uid-p${step.pod}`);
    const containerId = containers.findLast((item) => item.name === name)?.id ?? 'none';
    switch (step.do) {
      case 'create':
        return cri.createContainer(
          { podSandboxId, sandboxConfig: config, config: this.#containerConfig(name) },
          options,
        );
      case 'start':
        return cri.startContainer({ containerId }, options);
      case 'stop':
        return cri.stopContainer({ containerId, timeout: 1n }, options);
      case 'exec':
        return cri.execSync({ containerId, cmd: ['sleep', '1'], timeout: 2n }, options);
      default:
        return cri.removeContainer({ containerId }, options);
    }
  }

  #containerConfig(name: string) {
    const script = scripts[this.#containers++ % scripts.length] ?? '';
    return {
      metadata: { name },
      image: { image: busybox },
      command: script === '/nope' ? [script] : ['sh', '-c', script],
      logPath: `${name}.log`,
    };
  }
}

const order = ['CONTAINER_CREATED', 'CONTAINER_RUNNING', 'CONTAINER_EXITED'];

/** Invariants of the runtime that hold at every moment, in every history. */
class Invariants {
  readonly #seen = new Map<string, ContainerStatus>();
  readonly #started = new Set<string>();
  readonly #running = new Map<string, string>();

  #broken: string | undefined;

  constructor(node: SimulatedNode) {
    node.runtime.trace.subscribe((entry) => {
      this.#broken ??= this.#broke(entry);
    });
  }

  /** The description of the rule that an entry violates; undefined if there is none. */
  #broke(entry: TraceEntry): string | undefined {
    if (entry.kind === 'container-started') {
      const key = `${entry.podUid} ${entry.name} ${entry.attempt}`;
      const [again, beside] = [this.#started.has(entry.id), this.#running.has(key)];
      this.#started.add(entry.id);
      this.#running.set(key, entry.id);
      return again ? 'a container starts once' : beside ? 'one of a pod, name and attempt runs' : undefined;
    }
    if (entry.kind === 'container-exited') {
      this.#running.delete(`${entry.podUid} ${entry.name} ${entry.attempt}`);
    }
    const removesRunning =
      entry.kind === 'container-removed' && [...this.#running.values()].includes(entry.id);
    return removesRunning ? 'nothing is removed that runs' : undefined;
  }

  async check(node: SimulatedNode): Promise<void> {
    assert.equal(this.#broken, undefined);
    if (!node.runtime.isUp) return;
    const { containers } = await node.done(node.cri.listContainers({}, node.options));
    for (const listed of containers) {
      const status = await this.#look(node, listed.id);
      if (status === undefined) continue;
      assert.equal(status.createdAt, listed.createdAt);
      assert.deepEqual(status.metadata, listed.metadata);
      this.#checkTimes(status);
      this.#checkOrder(status);
    }
  }

  /** The status of a container; undefined if a concurrent call has already removed it. */
  async #look(node: SimulatedNode, containerId: string): Promise<ContainerStatus | undefined> {
    try {
      return (await node.done(node.cri.containerStatus({ containerId }, node.options))).status;
    } catch (error) {
      assert.ok(error instanceof GrpcError && error.grpcCode === 'NOT_FOUND', String(error));
      return undefined;
    }
  }

  #checkTimes(status: ContainerStatus): void {
    const { createdAt, startedAt, finishedAt, state } = status;
    assert.ok(createdAt > 0n);
    if (startedAt !== 0n) assert.ok(createdAt <= startedAt);
    if (finishedAt !== 0n) assert.ok(startedAt <= finishedAt && createdAt <= finishedAt);
    assert.equal(state === 'CONTAINER_EXITED', finishedAt !== 0n);
    if (state === 'CONTAINER_EXITED') assert.notEqual(status.reason, '');
  }

  #checkOrder(status: ContainerStatus): void {
    const before = this.#seen.get(status.id);
    this.#seen.set(status.id, status);
    if (before === undefined || status.state === 'CONTAINER_UNKNOWN') return;
    if (before.state === 'CONTAINER_UNKNOWN') return;
    assert.ok(
      order.indexOf(before.state) <= order.indexOf(status.state),
      `${before.state} to ${status.state}`,
    );
    if (before.state === 'CONTAINER_EXITED') assert.equal(status.exitCode, before.exitCode);
  }
}

interface History {
  readonly seed: number;
  readonly flavour: Flavour;
  readonly faults: 'none' | 'many';
  readonly steps: readonly Step[];
}

const history: fc.Arbitrary<History> = fc.record({
  seed: fc.nat(),
  flavour: fc.constantFrom('containerd-1.6' as const, 'containerd-2' as const),
  faults: fc.constantFrom('none' as const, 'many' as const),
  steps: fc.array(step, { minLength: 20, maxLength: 80, size: 'max' }),
});

test('no history of calls, faults and restarts violates the rules of a runtime', async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ seed, flavour, faults, steps }) => {
      const driver = new Driver(seed, flavour, faults);
      using node = driver.node;
      const invariants = new Invariants(node);
      for (const [index, step] of steps.entries()) {
        await driver.take(step);
        if (faults === 'none' && index % 10 === 9) await invariants.check(node);
      }
      await driver.settle();
      await invariants.check(node);
    }),
    { numRuns: 250 },
  );
});

test('after any history all sandboxes can be removed, and then no resources are in use', async () => {
  await fc.assert(
    fc.asyncProperty(history, async ({ seed, flavour, faults, steps }) => {
      const driver = new Driver(seed, flavour, faults);
      using node = driver.node;
      for (const step of steps) await driver.take(step);
      await driver.settle();
      for (const { id } of node.runtime.containers()) {
        await node.done(node.cri.removeContainer({ containerId: id }, node.options));
      }
      for (const { id } of node.runtime.sandboxes()) {
        await node.done(node.cri.removePodSandbox({ podSandboxId: id }, node.options));
      }
      const { subscribers: _, ...held } = node.runtime.held();
      assert.deepEqual(held, { sandboxes: 0, containers: 0, names: 0, addresses: 0, calls: 0 });
      await node.clock.advance(60_000);
      assert.equal(node.clock.pendingTimers, 0);
    }),
    { numRuns: 250 },
  );
});

test('the same seed, scripts and calls give the same history, to the nanosecond', async () => {
  const play = async ({ seed, flavour, faults, steps }: History) => {
    const driver = new Driver(seed, flavour, faults);
    using node = driver.node;
    for (const step of steps) await driver.take(step);
    await driver.settle();
    const { containers } = await node.done(node.cri.listContainers({}, node.options));
    const { items } = await node.done(node.cri.listPodSandbox({}, node.options));
    const logs = node.files.paths().map((path) => [path, node.files.read(path)]);
    return { trace: node.runtime.trace.entries(), containers, items, logs, endMs: node.clock.monotonicMs() };
  };
  await fc.assert(
    fc.asyncProperty(history, async (given) => {
      assert.deepEqual(await play(given), await play(given));
    }),
    { numRuns: 60 },
  );
});
