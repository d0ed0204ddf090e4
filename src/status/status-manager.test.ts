import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../test/fakes/pods.ts';
import { anInstance, observe } from '../../test/fakes/runtime-view.ts';
import { aStatusContext } from '../../test/fakes/status-context.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { PodStatus } from '../kinds/index.ts';
import { collectLogs } from '../lib/index.ts';
import { annotations, type ObservedContainer, type Pod, type PodUid, podUid } from '../pods/index.ts';
import { findCondition } from './conditions.ts';
import type { StatusContext } from './context.ts';
import { generatePodStatus } from './generate.ts';
import { type StatusChange, StatusManager } from './status-manager.ts';

function aManager(parts: PodParts = {}) {
  const pod = aPod(parts);
  const clock = new VirtualClock();
  const { logger, records } = collectLogs(clock);
  const known = new Map<PodUid, Pod>([[pod.metadata.uid, pod]]);
  const manager = new StatusManager({ clock, logger, findPod: (uid) => known.get(uid) });
  const see = (
    containers: readonly ObservedContainer[],
    over: Partial<StatusContext> = {},
    of = pod,
  ): PodStatus => {
    const context = aStatusContext({ previous: manager.previousStatus(of), ...over });
    return manager.setPodStatus(of, generatePodStatus(of, observe(of, containers), context));
  };
  const { uid } = pod.metadata;
  return { pod, uid, clock, records, known, manager, see, version: () => manager.entry(uid)?.version };
}

const exited = (exitCode: number) => anInstance({ state: 'exited', exitCode });
const deleted = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const fromFile = { annotations: { [annotations.source]: 'file' } };

describe('versions of cached pod statuses', () => {
  it('the version increases with every change of the status and only then', () => {
    const { see, version } = aManager();
    see([]);
    assert.equal(version(), 1);
    see([]);
    assert.equal(version(), 1);
    see([anInstance()]);
    assert.equal(version(), 2);
  });

  it("the version of a deleted pod's status increases also without a change", () => {
    const { see, version } = aManager({ metadata: deleted });
    see([]);
    see([]);
    assert.equal(version(), 2);
  });

  it('the version does not increase when another component changed a condition', () => {
    const { pod, see, version } = aManager();
    see([]);
    const conditions = [{ type: 'example.com/x', status: 'True' }];
    see([], {}, { ...pod, status: { conditions } });
    assert.equal(version(), 1);
  });
});

describe("transition times and start time in a pod's status", () => {
  it("a transition time changes only with the condition's status", async () => {
    const { see, clock } = aManager();
    const first = findCondition(see([]), 'Ready')?.lastTransitionTime;
    await clock.advance(5000);
    const probing = findCondition(see([anInstance({ state: 'created' })]), 'Ready')?.lastTransitionTime;
    assert.deepEqual([first, probing], ['2026-01-01T00:00:00Z', '2026-01-01T00:00:00Z']);
    await clock.advance(5000);
    assert.equal(findCondition(see([anInstance()]), 'Ready')?.lastTransitionTime, '2026-01-01T00:00:10Z');
  });

  it('the start time is set once', async () => {
    const { see, clock } = aManager();
    assert.equal(see([]).startTime, '2026-01-01T00:00:00Z');
    await clock.advance(5000);
    assert.equal(see([anInstance()]).startTime, '2026-01-01T00:00:00Z');
  });

  it('the start time is taken from the published status', () => {
    const { see } = aManager({ status: { startTime: '2025-12-31T00:00:00Z' } });
    assert.equal(see([]).startTime, '2025-12-31T00:00:00Z');
  });
});

describe('status fields that never change back', () => {
  it('a terminal phase is irreversible, also when a caller sets a status with the phase Running', () => {
    const { pod, see, manager } = aManager({ spec: { restartPolicy: 'Never' } });
    assert.equal(see([exited(1)]).phase, 'Failed');
    const { containerStatuses } = manager.previousStatus(pod);
    const status = manager.setPodStatus(pod, { phase: 'Running', containerStatuses });
    assert.equal(status.phase, 'Failed');
  });

  it('an exited container of a static pod may be reported as running when the static pod starts again', () => {
    const { see } = aManager({
      metadata: fromFile,
      spec: { restartPolicy: 'Never', containers: [{ name: 'main' }, { name: 'other' }] },
    });
    const other = anInstance({ name: 'other' });
    see([exited(1), other]);
    assert.ok(see([anInstance({ id: 'next' }), other]).containerStatuses?.[0]?.state?.running !== undefined);
  });

  it('the exit of a container that may not restart is irreversible', () => {
    const { see, records } = aManager({
      spec: { restartPolicy: 'Never', containers: [{ name: 'main' }, { name: 'other' }] },
    });
    const other = anInstance({ name: 'other' });
    see([exited(1), other]);
    const retained = see([anInstance({ restartCount: 1 }), other]);
    assert.equal(retained.containerStatuses?.[0]?.state?.terminated?.exitCode, 1);
    assert.match(String(records.toArray()[0]?.message), /may not restart/);
  });

  it("exits are reversible in a pod with restart policy Always, whatever its containers' restart policies are", () => {
    const containers = [{ name: 'main', restartPolicy: 'Never' }, { name: 'other' }];
    const { see } = aManager({ spec: { restartPolicy: 'Always', containers } });
    const other = anInstance({ name: 'other' });
    see([exited(1), other]);
    const status = see([anInstance({ id: 'next', restartCount: 1 }), other]).containerStatuses?.[0];
    assert.ok(status?.state?.running !== undefined);
  });

  it('the assumed exit of a container in unknown state is reversible after another instance was created', () => {
    const containers = [{ name: 'main' }, { name: 'other' }];
    const { see } = aManager({ spec: { restartPolicy: 'Never', containers } });
    const other = anInstance({ name: 'other' });
    see([anInstance(), other]);
    see([anInstance({ state: 'unknown' }), other]);
    const status = see([anInstance({ id: 'next', restartCount: 1 }), other]).containerStatuses?.[0];
    assert.match(status?.containerID ?? '', /next$/);
    assert.ok(status?.state?.running !== undefined);
  });

  it('the assumed exit of a container in unknown state is reversible after the same instance reappeared', () => {
    const { see } = aManager({
      spec: { restartPolicy: 'Never', containers: [{ name: 'main' }, { name: 'other' }] },
    });
    const other = anInstance({ name: 'other' });
    see([anInstance(), other]);
    see([anInstance({ state: 'unknown' }), other]);
    const status = see([anInstance(), other]).containerStatuses?.[0];
    assert.ok(status?.state?.running !== undefined);
    assert.equal(status.restartCount, 1);
  });

  it('the observed generation never decreases', () => {
    const { pod, see } = aManager({ metadata: { generation: 5 } });
    see([]);
    const older = { ...pod, metadata: { ...pod.metadata, generation: 4 } };
    const status = see([anInstance()], {}, older);
    assert.equal(status.observedGeneration, 5);
    for (const { type, observedGeneration } of status.conditions ?? [])
      assert.equal(observedGeneration, 5, type);
  });
});

describe('statuses with a terminal phase', () => {
  it('a terminal phase sets Ready to false in the same status', () => {
    const { pod, see, manager } = aManager();
    const running = see([anInstance()]);
    const status = manager.setPodStatus(pod, { ...running, phase: 'Failed', reason: 'Evicted' });
    assert.equal(findCondition(status, 'Ready')?.status, 'False');
    assert.equal(findCondition(status, 'ContainersReady')?.reason, 'PodFailed');
  });
});

describe('probe results in the status', () => {
  const spec = { containers: [{ name: 'main', readinessProbe: {}, startupProbe: {} }] };
  const id = 'containerd://main-0';

  it('a probe result changes the container status and the conditions in one version', () => {
    const { see, manager, uid, version } = aManager({ spec });
    see([anInstance()]);
    manager.setContainerStartup(uid, id, true);
    manager.setContainerReadiness(uid, id, true);
    const status = manager.getPodStatus(uid) ?? {};
    assert.deepEqual(
      [status.containerStatuses?.[0]?.started, status.containerStatuses?.[0]?.ready],
      [true, true],
    );
    assert.equal(findCondition(status, 'Ready')?.status, 'True');
    assert.equal(version(), 3);
    manager.setContainerReadiness(uid, id, true);
    assert.equal(version(), 3);
  });

  it('a probe result does not make a container ready that is not running or not started', () => {
    const { see, manager, uid } = aManager({ spec });
    const flags = () => {
      const [status] = manager.getPodStatus(uid)?.containerStatuses ?? [];
      return [status?.started, status?.ready];
    };
    see([anInstance()]);
    manager.setContainerReadiness(uid, id, true);
    assert.deepEqual(flags(), [false, false]);
    manager.setContainerStartup(uid, id, true);
    manager.setContainerReadiness(uid, id, true);
    manager.setContainerStartup(uid, id, false);
    assert.deepEqual(flags(), [false, false]);
    see([anInstance({ state: 'exited' })]);
    manager.setContainerStartup(uid, id, true);
    manager.setContainerReadiness(uid, id, true);
    assert.deepEqual(flags(), [false, false]);
    assert.equal(findCondition(manager.getPodStatus(uid) ?? {}, 'Ready')?.status, 'False');
  });

  it('probe results of unknown pods and containers are dropped', () => {
    const { see, manager, uid, version } = aManager({ spec });
    manager.setContainerReadiness(uid, id, true);
    see([anInstance()]);
    manager.setContainerReadiness(uid, 'containerd://older', true);
    manager.setContainerReadiness(podUid('nobody'), id, true);
    assert.equal(version(), 1);
  });
});

describe('the final status of a pod', () => {
  it('the final status marks a container with an unobserved exit as failed', () => {
    const { pod, see, manager, uid } = aManager();
    see([anInstance()]);
    manager.terminatePod(pod);
    const status = manager.getPodStatus(uid);
    assert.equal(status?.phase, 'Failed');
    const main = status?.containerStatuses?.[0];
    assert.equal(main?.state?.terminated?.reason, 'ContainerStatusUnknown');
    assert.deepEqual([main?.ready, main?.started], [false, false]);
    assert.equal(manager.isFinished(uid), true);
  });

  it("the final status keeps a container's observed exit with code 0", () => {
    const { pod, see, manager, uid } = aManager({ spec: { restartPolicy: 'Never' } });
    see([exited(0)]);
    manager.terminatePod(pod);
    assert.equal(manager.getPodStatus(uid)?.phase, 'Succeeded');
  });

  it('the final status leaves regular containers waiting that were never started', () => {
    const initContainers = [{ name: 'a' }, { name: 'b' }, { name: 'c' }];
    const { pod, see, manager, uid } = aManager({ spec: { initContainers } });
    see([anInstance({ name: 'a', state: 'exited' }), anInstance({ name: 'b' })]);
    manager.terminatePod(pod);
    const status = manager.getPodStatus(uid);
    assert.deepEqual(
      status?.initContainerStatuses?.map(({ state }) => state?.terminated?.exitCode),
      [0, 137, undefined],
    );
    assert.equal(status?.containerStatuses?.[0]?.state?.terminated, undefined);
    assert.equal(status?.phase, 'Failed');
  });

  it('the final status keeps the phase of a static pod, which may start again', () => {
    const { pod, see, manager, uid } = aManager({ metadata: fromFile });
    see([anInstance()]);
    manager.terminatePod(pod);
    assert.equal(manager.getPodStatus(uid)?.phase, 'Running');
  });

  it('the final status is permanent, except for a static pod that starts again with the same UID', () => {
    const ordinary = aManager();
    ordinary.manager.terminatePod(ordinary.pod);
    ordinary.see([]);
    assert.equal(ordinary.manager.isFinished(ordinary.uid), true);
    const again = aManager({ metadata: fromFile, spec: { restartPolicy: 'Never' } });
    again.see([exited(0)]);
    again.manager.terminatePod(again.pod);
    const before = again.version() ?? 0;
    assert.equal(again.see([anInstance({ id: 'fresh' })]).phase, 'Running');
    assert.equal(again.manager.isFinished(again.uid), false);
    assert.ok((again.version() ?? 0) > before);
  });

  it("no longer delivers the final status of a static pod's earlier instance once the static pod is desired again", () => {
    const { manager, pod, uid, see } = aManager({ metadata: fromFile });
    see([anInstance()]);
    manager.expectReturn(uid);
    assert.notEqual(manager.entry(uid), undefined, 'it has not terminated');
    manager.terminatePod(pod);
    manager.expectReturn(uid);
    assert.equal(manager.entry(uid), undefined);
  });
});

describe('listeners for status changes', () => {
  it('listeners receive every change immediately, and a failing listener does not affect others', () => {
    const { see, manager, records } = aManager();
    const heard: StatusChange[] = [];
    manager.onChange(() => {
      throw new Error('broken');
    });
    using _link = manager.onChange((change) => heard.push(change));
    see([]);
    see([anInstance()]);
    assert.deepEqual(
      heard.map(({ version, after }) => [version, after.phase]),
      [
        [1, 'Pending'],
        [2, 'Running'],
      ],
    );
    assert.equal(records.size, 2);
  });

  it('a subscriber that reads slowly gets only the newest status of each pod', async () => {
    const { see, manager } = aManager();
    using changes = manager.changes();
    see([]);
    see([anInstance()]);
    assert.equal(changes.size, 1);
    assert.equal((await changes.next(new AbortController().signal))?.version, 2);
  });
});

describe('cached pod statuses', () => {
  it('a cached status is removed with its pod', () => {
    const { see, manager, uid } = aManager();
    see([]);
    manager.removeOrphanedStatuses(new Set([uid]));
    assert.equal(manager.size, 1);
    manager.removeOrphanedStatuses(new Set());
    assert.equal(manager.size, 0);
  });

  it('a cached status is found by the UID of the mirror pod too', () => {
    const { pod, see, manager, known } = aManager();
    see([]);
    known.set(podUid('mirror'), pod);
    assert.equal(manager.getPodStatus(podUid('mirror'))?.phase, 'Pending');
  });
});
