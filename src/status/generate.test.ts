import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../test/fakes/pods.ts';
import { anInstance, aSandbox, observe } from '../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../test/fakes/status-context.ts';
import type { Container, ContainerStatus, PodStatus } from '../kinds/index.ts';
import type { ObservedContainer, Pod } from '../pods/index.ts';
import { findCondition } from './conditions.ts';
import type { StatusContext } from './context.ts';
import { generatePodStatus, rejectedPodStatus } from './generate.ts';

const id = (name: string, count = 0) => `containerd://${name}-${count}`;

function statusOf(
  pod: Pod,
  containers: readonly ObservedContainer[],
  over: Partial<StatusContext> = {},
): PodStatus {
  const context = aStatusContext({ previous: pod.status, ...over });
  return generatePodStatus(pod, observe(pod, containers), context);
}

function only(status: PodStatus): ContainerStatus {
  const first = status.containerStatuses?.[0];
  assert.ok(first !== undefined);
  return first;
}

/** Returns a published pod status with a status of the container `main`. */
function published(over: Partial<ContainerStatus>): PodStatus {
  const main = { name: 'main', ready: false, restartCount: 0, image: 'example/web:1', imageID: '', ...over };
  return { phase: 'Running', containerStatuses: [main] };
}

describe('status of a container without a record in the runtime', () => {
  it('a container that was never created is waiting with ContainerCreating', () => {
    const { state, restartCount, image, ready, started } = only(statusOf(aPod(), []));
    assert.deepEqual(state, { waiting: { reason: 'ContainerCreating' } });
    assert.deepEqual([restartCount, image, ready, started], [0, 'example/web:1', false, false]);
  });

  it('a container in a pod with init containers is waiting with PodInitializing', () => {
    const pod = aPod({ spec: { initContainers: [{ name: 'first' }] } });
    const status = statusOf(pod, []);
    assert.deepEqual(only(status).state, { waiting: { reason: 'PodInitializing' } });
    assert.deepEqual(status.initContainerStatuses?.[0]?.state, { waiting: { reason: 'PodInitializing' } });
  });

  it('a terminated container without a record keeps its exit', () => {
    const terminated = { exitCode: 3, containerID: id('main') };
    const status = only(
      statusOf(aPod(), [], { previous: published({ state: { terminated }, restartCount: 4 }) }),
    );
    assert.deepEqual([status.state?.terminated?.exitCode, status.restartCount], [3, 4]);
  });

  it('a container that ran and lost its record counts as restarted, so that the pod does not return to Pending', () => {
    const previous = published({ state: { running: {} }, restartCount: 2, containerID: id('main') });
    const status = statusOf(aPod(), [], { previous });
    assert.equal(only(status).lastState?.terminated?.reason, 'ContainerStatusUnknown');
    assert.equal(only(status).lastState?.terminated?.exitCode, 137);
    assert.equal(only(status).restartCount, 3);
    assert.equal(status.phase, 'Running');
    assert.equal(only(statusOf(aPod(), [], { previous: status })).restartCount, 3);
  });

  it('a container that lost its record does not count as restarted in a pod that is being deleted', () => {
    const pod = aPod({ metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
    const previous = published({ state: { running: {} }, restartCount: 2 });
    assert.equal(only(statusOf(pod, [], { previous })).restartCount, 2);
  });

  it('a waiting container shows why it failed to start', () => {
    const startError = () => ({ reason: 'ImagePullBackOff', message: 'no such image' });
    const { state } = only(statusOf(aPod(), [], { startError }));
    assert.deepEqual(state, { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } });
  });

  it('a container lists its mounts with their recursive read-only mode', () => {
    const volumeMounts = [
      { name: 'a', mountPath: '/a' },
      { name: 'b', mountPath: '/b', readOnly: true },
      { name: 'c', mountPath: '/c', readOnly: true, recursiveReadOnly: 'Enabled' },
    ];
    const pod = aPod({ spec: { containers: [{ name: 'main', image: 'x', volumeMounts }] } });
    const shown = (recursive: 'Enabled' | 'Disabled') => [
      { name: 'a', mountPath: '/a' },
      { name: 'b', mountPath: '/b', readOnly: true, recursiveReadOnly: 'Disabled' },
      { name: 'c', mountPath: '/c', readOnly: true, recursiveReadOnly: recursive },
    ];
    const able = { recursiveReadOnly: 'supported' } as const;
    assert.deepEqual(only(statusOf(pod, [], able)).volumeMounts, shown('Enabled'));
    assert.deepEqual(only(statusOf(pod, [])).volumeMounts, shown('Disabled'));
  });
});

describe('status of a container with a record in the runtime', () => {
  it('a running container has the start time that the runtime reports', () => {
    const status = only(statusOf(aPod(), [anInstance()]));
    assert.deepEqual(status.state, { running: { startedAt: '2026-01-01T00:00:01Z' } });
    assert.deepEqual([status.containerID, status.imageID], [id('main'), 'example/web@sha256:aa']);
    assert.deepEqual([status.started, status.ready], [true, true]);
  });

  it('a terminated container has the exit that the runtime reports', () => {
    const instance = anInstance({ state: 'exited', exitCode: 137, reason: 'OOMKilled', message: 'gone' });
    assert.deepEqual(only(statusOf(aPod(), [instance])).state, {
      terminated: {
        exitCode: 137,
        reason: 'OOMKilled',
        message: 'gone',
        startedAt: '2026-01-01T00:00:01Z',
        finishedAt: '2026-01-01T00:00:05Z',
        containerID: id('main'),
      },
    });
  });

  it('a created container is waiting without a reason until it starts', () => {
    assert.deepEqual(only(statusOf(aPod(), [anInstance({ state: 'created' })])).state, { waiting: {} });
  });

  it('a restart is counted when the container starts, because a created instance may be removed before it runs', () => {
    const ended = anInstance({ id: 'first', state: 'exited', exitCode: 1 });
    const statuses = [
      [anInstance({ id: 'ahead', state: 'created', restartCount: 1 }), ended],
      [ended],
      [anInstance({ id: 'second', restartCount: 1 }), ended],
    ];
    const counts: number[] = [];
    let previous = published({ state: { running: {} }, containerID: id('first') });
    for (const seen of statuses) {
      previous = statusOf(aPod(), seen, { previous });
      counts.push(only(previous).restartCount);
    }
    assert.deepEqual(counts, [0, 0, 1]);
  });

  it('the previous instance of a container is its last state', () => {
    const before = anInstance({ state: 'exited', exitCode: 1 });
    const oldest = anInstance({ state: 'exited', exitCode: 9, id: 'x', createdAtNs: 1n });
    const status = only(statusOf(aPod(), [oldest, before, anInstance({ restartCount: 1 })]));
    assert.equal(status.lastState?.terminated?.exitCode, 1);
    assert.equal(status.restartCount, 1);
  });

  it('a container keeps its last state when the record of the previous instance is removed', () => {
    const previous = published({ state: { terminated: { exitCode: 7 } }, containerID: id('main') });
    const status = only(statusOf(aPod(), [anInstance({ restartCount: 1 })], { previous }));
    assert.equal(status.lastState?.terminated?.exitCode, 7);
  });

  it('the restart count is never lower than the published count', () => {
    const previous = published({ state: { waiting: {} }, restartCount: 5 });
    assert.equal(only(statusOf(aPod(), [anInstance()], { previous })).restartCount, 5);
  });

  it('a running container counts as lost when the runtime reports it in unknown state', () => {
    const previous = published({ state: { running: {} }, restartCount: 1, containerID: id('main') });
    const status = only(statusOf(aPod(), [anInstance({ state: 'unknown' })], { previous }));
    assert.equal(status.state?.terminated?.reason, 'ContainerStatusUnknown');
    assert.equal(status.restartCount, 2);
  });

  it('a lost container is not counted as restarted again when the same instance reappears', () => {
    const previous = published({
      state: { terminated: { exitCode: 137, reason: 'ContainerStatusUnknown' } },
      restartCount: 2,
      containerID: id('main'),
    });
    const status = only(statusOf(aPod(), [anInstance()], { previous }));
    assert.ok(status.state?.running !== undefined);
    assert.equal(status.restartCount, 2);
  });

  it('a container in back-off is waiting with its last exit as the last state', () => {
    const startError = () => ({ reason: 'CrashLoopBackOff', message: 'back-off 10s' });
    const instance = anInstance({ state: 'exited', exitCode: 1 });
    const status = statusOf(aPod(), [instance], { startError });
    assert.equal(only(status).state?.waiting?.reason, 'CrashLoopBackOff');
    assert.equal(only(status).lastState?.terminated?.exitCode, 1);
    assert.equal(status.phase, 'Running');
  });

  it('a container with a start error stays terminated in a terminated pod', () => {
    const startError = () => ({ reason: 'CrashLoopBackOff', message: 'back-off 10s' });
    const instance = anInstance({ state: 'exited', exitCode: 3 });
    const status = statusOf(aPod(), [instance], { startError, isTerminal: true });
    assert.equal(only(status).state?.terminated?.exitCode, 3);
    const never = only(statusOf(aPod(), [], { startError, isTerminal: true }));
    assert.equal(never.state?.waiting?.reason, 'CrashLoopBackOff', 'keeps the reason why it never started');
  });

  it('a container that never ran keeps its waiting reason after its pod terminated, also after a kubelet restart', () => {
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' };
    const before = published({ state: { waiting }, restartCount: 0 });
    assert.equal(
      only(statusOf(aPod(), [], { previous: before })).state?.waiting?.reason,
      'ContainerCreating',
    );
    const previous = { ...before, phase: 'Failed' };
    assert.deepEqual(only(statusOf(aPod(), [], { previous })).state, { waiting });
    assert.deepEqual(only(statusOf(aPod(), [], { previous: before, isTerminal: true })).state, { waiting });
  });

  it('a container does not return to waiting after its pod terminated', () => {
    const terminated = { exitCode: 137, reason: 'ContainerStatusUnknown' };
    const before = published({ state: { terminated }, restartCount: 1 });
    const created = anInstance({ state: 'created' });
    const previous = { ...before, phase: 'Failed' };
    const [over, goesOn] = [previous, before].map(
      (each) => only(statusOf(aPod(), [created], { previous: each })).state,
    );
    assert.equal(over?.terminated?.exitCode, 137);
    assert.deepEqual(goesOn, { waiting: {} });
  });

  it('a container whose restart policy forbids a restart stays terminated', () => {
    const startError = () => ({ reason: 'CrashLoopBackOff', message: '' });
    const pod = aPod({ spec: { restartPolicy: 'Never' } });
    const status = only(statusOf(pod, [anInstance({ state: 'exited', exitCode: 1 })], { startError }));
    assert.equal(status.state?.terminated?.exitCode, 1);
  });

  it("a container's message is truncated to its share of the pod's limit, at a character boundary", () => {
    const pod = aPod({ spec: { containers: [{ name: 'main' }, { name: 'other' }, { name: 'third' }] } });
    const instance = anInstance({ state: 'exited', message: 'é'.repeat(5000) });
    const message = only(statusOf(pod, [instance])).state?.terminated?.message ?? '';
    assert.equal(Buffer.byteLength(message), 4096);
    assert.ok(!message.includes('\uFFFD'));
  });

  it("a running container's status shows its user", () => {
    const user = { uid: 1000, gid: 2000, supplementalGroups: [3000] };
    assert.deepEqual(only(statusOf(aPod(), [anInstance({ user })])).user, { linux: user });
  });
});

describe('status of init containers', () => {
  const pod = aPod({
    spec: {
      initContainers: [{ name: 'z-first' }, { name: 'a-second' }, { name: 'side', restartPolicy: 'Always' }],
    },
  });

  it('init container statuses are in the order of the spec', () => {
    const names = statusOf(pod, []).initContainerStatuses?.map(({ name }) => name);
    assert.deepEqual(names, ['z-first', 'a-second', 'side']);
  });

  it('init containers are ready after they completed successfully', () => {
    const done = anInstance({ name: 'z-first', state: 'exited' });
    const failed = anInstance({ name: 'a-second', state: 'exited', exitCode: 1 });
    const statuses = statusOf(pod, [done, failed]).initContainerStatuses;
    assert.deepEqual(
      statuses?.map(({ ready }) => ready),
      [true, false, false],
    );
  });

  it('init containers without records count as completed when regular containers were created', () => {
    const status = statusOf(pod, [anInstance(), anInstance({ name: 'side' })]);
    const codes = status.initContainerStatuses?.map(({ state }) => state?.terminated?.exitCode);
    assert.deepEqual(codes, [0, 0, undefined]);
    assert.equal(status.phase, 'Running');
  });

  it('init containers are not waiting in back-off after they completed successfully', () => {
    const startError = () => ({ reason: 'CrashLoopBackOff', message: '' });
    const done = anInstance({ name: 'z-first', state: 'exited' });
    const status = statusOf(pod, [done], { startError }).initContainerStatuses?.[0];
    assert.equal(status?.state?.terminated?.exitCode, 0);
  });
});

describe('the fields started and ready of container statuses', () => {
  const withProbe = (probe: Partial<Container>) =>
    aPod({ spec: { containers: [{ name: 'main', ...probe }] } });
  const probes = (startup?: 'success' | 'failure', readiness?: 'success' | 'failure') => ({
    probes: { startup: () => startup, readiness: () => readiness },
  });
  const flags = (pod: Pod, over: Partial<StatusContext>) => {
    const { started, ready } = only(statusOf(pod, [anInstance()], over));
    return { started, ready };
  };

  it('a container with a startup probe is not started before the probe succeeds', () => {
    const pod = withProbe({ startupProbe: {} });
    assert.deepEqual(flags(pod, probes()), { started: false, ready: false });
    assert.deepEqual(flags(pod, probes('failure')), { started: false, ready: false });
    assert.deepEqual(flags(pod, probes('success')), { started: true, ready: true });
  });

  it('a container with a readiness probe is not ready before the probe succeeds', () => {
    const pod = withProbe({ readinessProbe: {} });
    assert.deepEqual(flags(pod, probes()), { started: true, ready: false });
    assert.deepEqual(flags(pod, probes(undefined, 'failure')), { started: true, ready: false });
    assert.deepEqual(flags(pod, probes(undefined, 'success')), { started: true, ready: true });
  });

  it('started and ready are restored for the same instance after a kubelet restart', () => {
    const pod = withProbe({ startupProbe: {}, readinessProbe: {} });
    const was = { state: { running: {} }, started: true, ready: true };
    const same = published({ ...was, containerID: id('main') });
    assert.deepEqual(flags(pod, { previous: same }), { started: true, ready: true });
    const other = published({ ...was, containerID: id('main', 9) });
    assert.deepEqual(flags(pod, { previous: other }), { started: false, ready: false });
  });

  it('started and ready are restored from the checkpoint entry of the instance', () => {
    const pod = withProbe({ startupProbe: {}, readinessProbe: {} });
    const noted = (containerId: string) =>
      containerId === id('main') ? { started: true, ready: false } : undefined;
    assert.deepEqual(flags(pod, { noted }), { started: true, ready: false });
    assert.deepEqual(flags(pod, { noted, ...probes('failure', 'success') }), {
      started: false,
      ready: false,
    });
    assert.deepEqual(flags(pod, { noted: () => undefined }), { started: false, ready: false });
  });

  it('started and ready of another instance are not used, even if the current instance seems older', () => {
    const conditions = [{ type: 'Ready', status: 'True' }];
    const pod = { ...withProbe({ readinessProbe: {} }), status: { conditions } };
    assert.equal(flags(pod, {}).ready, false);
  });

  it('started and ready are unset for ephemeral containers', () => {
    const pod = aPod({ spec: { ephemeralContainers: [{ name: 'debug' }] } });
    const status = statusOf(pod, [anInstance({ name: 'debug' })]).ephemeralContainerStatuses?.[0];
    assert.deepEqual([status?.started, status?.ready], [undefined, false]);
    assert.ok(status?.state?.running !== undefined);
  });
});

describe('the phase in the status', () => {
  it('a terminal phase stays, whatever the runtime reports', () => {
    for (const phase of ['Succeeded', 'Failed']) {
      const ended = { phase, reason: 'Evicted', message: 'm' };
      for (const parts of [{ previous: ended }, { pod: { status: ended } }] as const) {
        const pod = aPod('pod' in parts ? (parts.pod as PodParts) : {});
        const over = 'previous' in parts ? { previous: parts.previous } : {};
        const status = statusOf(pod, [anInstance()], over);
        assert.deepEqual([status.phase, status.reason, status.message], [phase, 'Evicted', 'm']);
      }
    }
  });

  it("the phase's reason is kept while the phase is unchanged and dropped when it changes", () => {
    const previous = { phase: 'Running', reason: 'R', message: 'M' };
    assert.equal(statusOf(aPod(), [anInstance()], { previous }).reason, 'R');
    assert.equal(statusOf(aPod(), [], { previous }).reason, undefined);
  });

  it('the phase is Failed for a pod that must fail', () => {
    const eviction = { reason: 'DeadlineExceeded', message: 'too long' };
    const status = statusOf(aPod(), [anInstance()], { eviction });
    assert.deepEqual(
      [status.phase, status.reason, status.message],
      ['Failed', 'DeadlineExceeded', 'too long'],
    );
  });
});

describe('conditions in the status', () => {
  const summary = (status: PodStatus) =>
    status.conditions?.map(({ type, status: is, reason, message }) => [type, is, reason, message]);

  it('the conditions of a running pod are complete and in order', () => {
    assert.deepEqual(summary(statusOf(aPod(), [anInstance()])), [
      ['PodReadyToStartContainers', 'True', undefined, undefined],
      ['Initialized', 'True', undefined, undefined],
      ['Ready', 'True', undefined, undefined],
      ['ContainersReady', 'True', undefined, undefined],
      ['PodScheduled', 'True', undefined, undefined],
    ]);
  });

  it('the condition ContainersReady names the containers that are not ready', () => {
    const pod = aPod({ spec: { containers: [{ name: 'b' }, { name: 'a' }] } });
    const ready = findCondition(statusOf(pod, []), 'Ready');
    assert.equal(ready?.reason, 'ContainersNotReady');
    assert.equal(ready?.message, 'containers with unready status: [b a]');
  });

  it('the condition Initialized names the init containers that have not completed', () => {
    const pod = aPod({ spec: { initContainers: [{ name: 'a' }, { name: 'b' }] } });
    const condition = findCondition(
      statusOf(pod, [anInstance({ name: 'a', state: 'exited' })]),
      'Initialized',
    );
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['False', 'ContainersNotInitialized', 'containers with incomplete status: [b]'],
    );
  });

  it('the condition Initialized stays true when an init container runs again', () => {
    const pod = aPod({ spec: { initContainers: [{ name: 'a' }] } });
    const previous = { conditions: [{ type: 'Initialized', status: 'True' }] };
    const status = statusOf(pod, [anInstance({ name: 'a' })], { previous });
    assert.equal(findCondition(status, 'Initialized')?.status, 'True');
  });

  it('the Ready conditions are false in a terminated pod', () => {
    const pod = aPod({ spec: { restartPolicy: 'Never' } });
    const succeeded = statusOf(pod, [anInstance({ state: 'exited' })]);
    assert.deepEqual(findCondition(succeeded, 'Ready')?.reason, 'PodCompleted');
    assert.deepEqual(findCondition(succeeded, 'Initialized')?.reason, 'PodCompleted');
    const failed = statusOf(pod, [anInstance({ state: 'exited', exitCode: 1 })]);
    assert.deepEqual(findCondition(failed, 'ContainersReady')?.reason, 'PodFailed');
  });

  it('the condition Ready is false until every readiness gate is true', () => {
    const readinessGates = [{ conditionType: 'example.com/a' }, { conditionType: 'example.com/b' }];
    const conditions = [{ type: 'example.com/b', status: 'False' }];
    const pod = aPod({ spec: { readinessGates }, status: { conditions } });
    const status = statusOf(pod, [anInstance()]);
    assert.equal(findCondition(status, 'ContainersReady')?.status, 'True');
    const ready = findCondition(status, 'Ready');
    assert.equal(ready?.reason, 'ReadinessGatesNotReady');
    assert.equal(
      ready?.message,
      'corresponding condition of pod readiness gate "example.com/a" does not exist., the status of pod readiness gate "example.com/b" is not "True", but False',
    );
    assert.equal(findCondition(status, 'example.com/b')?.status, 'False');
  });

  it('DisruptionTarget and the conditions of other components are preserved', () => {
    const rest = [{ type: 'example.com/x', status: 'Unknown' }];
    const previous = { conditions: [{ type: 'DisruptionTarget', status: 'True' }] };
    const pod = aPod({ status: { conditions: rest } });
    const types = statusOf(pod, [], { previous }).conditions?.map(({ type }) => type);
    assert.deepEqual(types?.slice(0, 2), ['example.com/x', 'DisruptionTarget']);
  });

  it("the kubelet's conditions have the observed generation", () => {
    const status = statusOf(aPod({ metadata: { generation: 7 } }), []);
    assert.equal(status.observedGeneration, 7);
    assert.ok(status.conditions?.every(({ observedGeneration }) => observedGeneration === 7));
  });
});

describe('addresses in the status', () => {
  const ips = (status: PodStatus) => [
    status.podIPs?.map(({ ip }) => ip),
    status.hostIPs?.map(({ ip }) => ip),
  ];

  it("a pod has one address per family, the node's preferred family first", () => {
    const pod = aPod();
    const observed = { ...observe(pod), ips: ['10.0.0.1', 'fd00::1', '10.0.0.2', 'fd00::2'] };
    const status = generatePodStatus(pod, observed, aStatusContext({ nodeIps: ['fd00::99', '192.0.2.1'] }));
    assert.deepEqual(ips(status), [
      ['fd00::1', '10.0.0.1'],
      ['fd00::99', '192.0.2.1'],
    ]);
    assert.deepEqual([status.podIP, status.hostIP], ['fd00::1', 'fd00::99']);
  });

  it("a pod on the host network has the node's addresses, which do not change afterwards", () => {
    const pod = aPod({ spec: { hostNetwork: true } });
    const first = generatePodStatus(pod, { ...observe(pod), ips: [] }, aStatusContext());
    assert.equal(first.podIP, '192.0.2.1');
    const context = aStatusContext({ previous: first, nodeIps: ['192.0.2.9', 'fd00::9'] });
    const then = generatePodStatus(pod, { ...observe(pod), ips: [] }, context);
    assert.deepEqual(ips(then)[0], ['192.0.2.1', 'fd00::9']);
  });

  it('a pod keeps its addresses after the sandbox is removed', () => {
    const pod = aPod();
    const previous = { podIP: '10.9.9.9', podIPs: [{ ip: '10.9.9.9' }] };
    const stopped = observe(pod, [], [aSandbox({ state: 'not-ready' })]);
    assert.equal(generatePodStatus(pod, stopped, aStatusContext({ previous })).podIP, '10.9.9.9');
  });
});

describe("QoS class and fields of other components in a pod's status", () => {
  it('the status always includes the QoS class and preserves fields of other components', () => {
    const resourceClaimStatuses = [{ name: 'claim' }];
    const status = statusOf(aPod({ status: { resourceClaimStatuses } }), []);
    assert.equal(status.qosClass, 'BestEffort');
    assert.deepEqual(status.resourceClaimStatuses, resourceClaimStatuses);
  });
});

describe('status of a rejected pod', () => {
  it('a rejected pod is Failed with the reason, scheduled and not ready', () => {
    const status = rejectedPodStatus(aPod(), { reason: 'OutOfcpu', message: 'no room' }, ['192.0.2.1']);
    assert.deepEqual([status.phase, status.reason, status.message], ['Failed', 'OutOfcpu', 'no room']);
    const conditions = status.conditions?.map(({ type, status: is }) => [type, is]);
    assert.deepEqual(conditions, [
      ['Ready', 'False'],
      ['ContainersReady', 'False'],
      ['PodScheduled', 'True'],
    ]);
  });
});
