import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { anInstance, anObservedPod, aSandbox } from '../../../test/fakes/observed.ts';
import { a, b, brief, check, exited, i1, i2, notReady, quiet, s1, s2 } from '../../../test/fakes/plans.ts';
import { aPod } from '../../../test/fakes/pods.ts';
import type { Container } from '../../kinds/index.ts';
import { computePodActions } from './compute-pod-actions.ts';
import type { ProbeResult } from './pod-actions.ts';

const create = { killPod: true, createSandbox: true } as const;
const once: Container = { name: 'once', image: 'x:1', restartPolicy: 'Never' };
const ruled: Container = {
  ...{ name: 'ruled', image: 'x:1', restartPolicy: 'Never' },
  restartPolicyRules: [{ action: 'Restart', exitCodes: { operator: 'In', values: [42] } }],
};

check('sandbox', [
  {
    what: 'a pod without a sandbox gets its first sandbox and all containers',
    seen: { sandboxes: [] },
    expected: { ...create, start: [0, 1], attempt: 0, sandboxId: '' },
  },
  {
    what: 'a sandbox that is not ready is replaced',
    seen: { sandboxes: [aSandbox({ id: 's', attempt: 3, state: 'not-ready' })] },
    expected: { ...create, start: [0, 1], attempt: 4, sandboxId: 's' },
  },
  {
    what: 'two ready sandboxes are both replaced',
    seen: { sandboxes: [aSandbox({ id: 'new', attempt: 1 }), aSandbox({ id: 'old' })] },
    expected: { ...create, start: [0, 1], attempt: 2, sandboxId: 'new' },
  },
  {
    what: 'an older ready sandbox is not used when a newer one is not ready',
    seen: { sandboxes: [aSandbox({ id: 'new', attempt: 1, state: 'not-ready' }), aSandbox({ id: 'old' })] },
    expected: { ...create, start: [0, 1], attempt: 2, sandboxId: 'new' },
  },
  {
    what: 'an older sandbox that is not ready is ignored',
    seen: { sandboxes: [aSandbox({ id: 'new', attempt: 1 }), aSandbox({ id: 'old', state: 'not-ready' })] },
    expected: { start: [0, 1], attempt: 1, sandboxId: 'new' },
  },
  {
    what: 'a changed network mode replaces the sandbox',
    spec: { hostNetwork: true },
    expected: { ...create, start: [0, 1], attempt: 1, sandboxId: '' },
  },
  {
    what: 'a sandbox without an address is replaced',
    seen: { sandboxes: [aSandbox({ ips: [], unaddressed: true })] },
    expected: { ...create, start: [0, 1], attempt: 1, sandboxId: 'sandbox-0' },
  },
  {
    what: 'a sandbox without reported or with invalid addresses is kept',
    seen: { sandboxes: [aSandbox({ ips: [], unaddressed: false })] },
    expected: { start: [0, 1], attempt: 0 },
  },
  {
    what: 'a sandbox on the host network has no own address',
    spec: { hostNetwork: true },
    seen: { sandboxes: [aSandbox({ network: 'node', ips: [] })] },
    expected: { start: [0, 1], attempt: 0 },
  },
  {
    what: 'a pod with Never is only killed when its sandbox is lost',
    spec: { restartPolicy: 'Never' },
    seen: { sandboxes: [notReady], containers: [exited(a)] },
    expected: { killPod: true },
  },
  {
    what: 'a pod with Never is retried until its first container was created',
    spec: { restartPolicy: 'Never' },
    seen: { sandboxes: [notReady] },
    expected: { ...create, start: [0, 1], attempt: 1 },
  },
  {
    what: 'a container that succeeded under OnFailure does not run again in a new sandbox',
    spec: { restartPolicy: 'OnFailure' },
    seen: { sandboxes: [notReady], containers: [exited(a), exited(b, 1)] },
    expected: { ...create, start: [1] },
  },
  {
    what: 'no new sandbox when all containers succeeded under OnFailure',
    spec: { restartPolicy: 'OnFailure' },
    seen: { sandboxes: [notReady], containers: [exited(a), exited(b)] },
    expected: { killPod: true },
  },
  {
    what: "the container's restart policy overrides the pod's",
    spec: { containers: [{ ...a, restartPolicy: 'OnFailure' }, b] },
    seen: { sandboxes: [notReady], containers: [exited({ ...a, restartPolicy: 'OnFailure' }), exited(b)] },
    expected: { ...create, start: [1] },
  },
  {
    what: 'a container with its own Never policy does not run in a new sandbox unless a rule restarts it',
    spec: { containers: [once, a, ruled] },
    seen: { sandboxes: [notReady], containers: [exited(once), exited(a), exited(ruled, 42)] },
    expected: { ...create, start: [1, 2] },
  },
  {
    what: 'such a container that still runs is evaluated after its exit',
    spec: { containers: [once, a, ruled] },
    seen: { sandboxes: [notReady], containers: [anInstance(once), anInstance(a), exited(ruled, 1)] },
    expected: { ...create, start: [1] },
  },
  {
    what: 'such a container that never started is started',
    spec: { containers: [once, a] },
    seen: { sandboxes: [notReady], containers: [anInstance(once, { state: 'created' }), exited(a)] },
    expected: { ...create, start: [0, 1] },
  },
  {
    what: 'such a container in an unknown state counts as exited with code 137',
    spec: { containers: [once, a] },
    seen: {
      sandboxes: [notReady],
      containers: [anInstance(once, { state: 'unknown' }), anInstance(a, { state: 'unknown' })],
    },
    expected: { ...create, start: [1] },
  },
  {
    what: 'no new sandbox for such containers in an unknown state alone',
    spec: { containers: [once] },
    seen: { sandboxes: [notReady], containers: [anInstance(once, { state: 'unknown' })] },
    expected: { killPod: true },
  },
  {
    what: 'a container that the runtime has lost does not start after a final exit',
    spec: { containers: [once, a] },
    seen: { sandboxes: [] },
    context: { hasFinalExit: ({ name }) => name === once.name },
    expected: { ...create, attempt: 0, sandboxId: '', start: [1] },
  },
  {
    what: 'no new sandbox when all containers have run once',
    spec: { containers: [once, ruled] },
    seen: { sandboxes: [notReady], containers: [exited(once), exited(ruled, 1)] },
    expected: { killPod: true },
  },
  {
    what: 'a new sandbox starts only the first init container',
    spec: { initContainers: [i1, i2] },
    seen: { sandboxes: [notReady], containers: [exited(i1), exited(i2), exited(a)] },
    expected: { ...create, init: [0] },
  },
]);

const debug = { name: 'debug', image: 'x:1' };
check('ephemeral containers', [
  {
    what: 'starts once beside running containers',
    spec: { ephemeralContainers: [debug] },
    seen: { containers: [anInstance(a), anInstance(b)] },
    expected: { ephemeral: [0] },
  },
  {
    what: 'starts while init containers run',
    spec: { ephemeralContainers: [debug], initContainers: [i1] },
    seen: { containers: [anInstance(i1)] },
    expected: { ephemeral: [0] },
  },
  {
    what: 'is not restarted after its exit',
    spec: { ephemeralContainers: [debug] },
    seen: { containers: [anInstance(a), anInstance(b), exited(debug, 1)] },
    expected: {},
  },
  {
    what: 'does not start in a finished pod',
    spec: { ephemeralContainers: [debug], restartPolicy: 'Never' },
    seen: { containers: [exited(a), exited(b)] },
    expected: { killPod: true },
  },
]);

const gone = anInstance({ name: 'gone', image: 'x:1' });
check('containers that are not in the spec', [
  {
    what: 'a running one is stopped',
    seen: { containers: [anInstance(a), anInstance(b), gone] },
    expected: { kill: ['Container gone is no longer part of the pod'] },
  },
  {
    what: 'a renamed one is replaced',
    seen: { containers: [anInstance(a), gone] },
    expected: { kill: ['Container gone is no longer part of the pod'], start: [1] },
  },
  {
    what: 'one in unknown state is stopped during initialization',
    spec: { initContainers: [i1] },
    seen: { containers: [anInstance(i1), { ...gone, state: 'unknown' }] },
    expected: { kill: ['Container gone is no longer part of the pod'] },
  },
  {
    what: 'an exited one is ignored',
    seen: { containers: [anInstance(a), anInstance(b), { ...gone, state: 'exited' }] },
    expected: {},
  },
]);

test('RestartAllContainers resets all container instances; the instances whose exit triggered the restart are reset last', () => {
  const trigger: Container = {
    ...a,
    restartPolicy: 'Never',
    restartPolicyRules: [{ action: 'RestartAllContainers', exitCodes: { operator: 'In', values: [9] } }],
  };
  const pod = aPod({ spec: { containers: [trigger, b], initContainers: [i1, s1] } });
  const containers = [
    exited(trigger, 9, { id: 'a-1' }),
    exited(trigger, 1, { id: 'a-0' }),
    anInstance(b),
    anInstance(s1),
    exited(i1),
  ];
  const plan = computePodActions(pod, anObservedPod({ containers }), { ...quiet, restart: 'all-containers' });
  assert.deepEqual(
    plan.containersToReset.map(({ id, stopFirst }) => [id, stopFirst]),
    [
      ['a-0', false],
      ['b-0', true],
      ['i1-0', false],
      ['s1-0', true],
      ['a-1', false],
    ],
  );
  assert.deepEqual(brief(plan), {});
});

const states = fc.constantFrom('created', 'running', 'exited', 'unknown');
const instanceOf = (container: Container) =>
  fc
    .record({ state: states, exitCode: fc.constantFrom(0, 1, 137), attempt: fc.nat(2), old: fc.boolean() })
    .map(({ state, exitCode, attempt, old }) =>
      anInstance(container, {
        id: `${container.name}-${attempt}-${state}-${exitCode}`,
        state,
        exitCode: state === 'exited' ? exitCode : 0,
        sandboxId: old ? 'sandbox-9' : 'sandbox-0',
      }),
    );
const anyWorld = fc
  .record({
    init: fc.subarray([i1, s1, i2, s2]),
    regular: fc.subarray([a, b], { minLength: 1 }),
    restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
    liveness: fc.constantFrom(undefined, 'success', 'failure', 'unknown'),
    startup: fc.constantFrom(undefined, 'success', 'failure', 'unknown'),
    ready: fc.boolean(),
  })
  .chain((environment) =>
    fc
      .array(fc.oneof(...[...environment.init, ...environment.regular].map(instanceOf)), { maxLength: 8 })
      .map((containers) => ({ ...environment, containers })),
  );

test('for any pod, each plan respects the init container order, starts no running container, and makes progress', () => {
  fc.assert(
    fc.property(anyWorld, ({ init, regular, restartPolicy, liveness, startup, ready, containers }) => {
      const pod = aPod({ spec: { initContainers: init, containers: regular, restartPolicy } });
      const observed = anObservedPod({ containers, sandboxes: [ready ? aSandbox() : notReady] });
      const plan = computePodActions(pod, observed, {
        liveness: () => liveness as ProbeResult | undefined,
        startup: () => startup as ProbeResult | undefined,
      });
      const newest = (name: string) => containers.find((container) => container.name === name);
      const starts = [
        ...plan.initContainersToStart.map((index) => init[index]),
        ...plan.containersToStart.map((index) => regular[index]),
      ];
      // The plan stops each running container that it starts again, or kills the pod.
      for (const container of starts) {
        assert.ok(container !== undefined);
        const seen = newest(container.name);
        const stopped = plan.killPod || (seen !== undefined && plan.containersToKill.has(seen.id));
        if (seen?.state === 'running' || seen?.state === 'unknown') assert.ok(stopped);
      }
      // The indexes of containers are sorted and unique.
      for (const list of [plan.initContainersToStart, plan.containersToStart]) {
        assert.deepEqual(list, [...new Set(list)].sort());
      }
      // Non-sidecar init containers and regular containers never start in one sync.
      const plain = plan.initContainersToStart.some((index) => init[index]?.restartPolicy !== 'Always');
      assert.ok(!plain || plan.containersToStart.length === 0);
      // A pod that is killed without a new sandbox starts no container.
      if (plan.killPod && !plan.createSandbox) assert.equal(starts.length, 0);
      // Each plan has an action, or a container is running; otherwise the pod would make no
      // progress.
      const idle = !plan.killPod && starts.length === 0;
      if (idle) assert.ok(containers.some(({ state }) => state === 'running' || state === 'created'));
      assert.deepEqual(
        computePodActions(pod, observed, {
          liveness: () => liveness as ProbeResult,
          startup: () => startup as ProbeResult,
        }),
        plan,
      );
    }),
    { numRuns: 2000 },
  );
});
