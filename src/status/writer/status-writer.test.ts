import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod } from '../../../test/fakes/pods.ts';
import { PodsApi, refusal } from '../../../test/fakes/pods-api.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { PatchSchema } from '../../api/index.ts';
import type { PodStatus } from '../../kinds/index.ts';
import { collectLogs, MetricRegistry, seededRandom } from '../../lib/index.ts';
import { annotations, type Pod, type PodUid, podUid } from '../../pods/index.ts';
import { findCondition } from '../conditions.ts';
import { StatusManager } from '../status-manager.ts';
import { StatusWriter, statusWriterMetrics } from './status-writer.ts';

const deletionTimestamp = '2026-01-01T00:00:00Z';
const condition = (type: string, status = 'True') => ({ type, status });
const ready = condition('Ready');
const running: PodStatus = { phase: 'Running', conditions: [ready] };
const ended: PodStatus = { phase: 'Succeeded', conditions: [condition('Ready', 'False')] };

/**
 * Creates a writer and a fake API server with some pods; podOf returns what the watch has
 * delivered, by UID.
 */
async function atWork(t: { after(run: () => void): void }, ...pods: readonly Pod[]) {
  const clock = new VirtualClock();
  const api = new PodsApi(clock);
  for (const pod of pods) api.put(pod);
  const { logger, records } = collectLogs(clock);
  const byUid = (uid: PodUid) => [...api.watched.values()].find((each) => each.metadata.uid === uid);
  const statuses = new StatusManager({ clock, logger, findPod: byUid });
  const stopping = new AbortController();
  t.after(() => stopping.abort(new Error('stopped')));
  const live = new Set<PodUid>();
  const mirrors = new Map<PodUid, PodUid>();
  const outlived: PodUid[] = [];
  const registry = new MetricRegistry({ onError: (error) => assert.fail(String(error)) });
  const writer = new StatusWriter({
    clock,
    random: seededRandom(1),
    logger,
    api,
    statuses,
    podOf: (uid) => byUid(mirrors.get(uid) ?? uid),
    mayRun: (uid) => live.has(uid),
    schema: new PatchSchema(),
    observer: statusWriterMetrics(registry),
    outlived: (mirror) => outlived.push(mirror.metadata.uid),
  });
  const run = writer.run(stopping.signal);
  run.catch(() => {});
  await clock.advance(0);
  /** Sets a status as the pod worker does. */
  const say = (pod: Pod, status: PodStatus) => statuses.setPodStatus(byUid(pod.metadata.uid) ?? pod, status);
  return { clock, api, records, statuses, writer, live, mirrors, outlived, registry, say, stopping, run };
}

function numbered(index: number): Pod {
  return aPod({ metadata: { uid: podUid(`uid-${index}`), name: `web-${index}` } });
}

describe('writing pod statuses to the API server', () => {
  it('writes a new status by one patch with UID and resourceVersion, without reading the pod first', async (t) => {
    const pod = aPod();
    const { api, clock, say } = await atWork(t, pod);
    say(pod, running);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch']);
    assert.deepEqual((api.calls[0]?.body as Pod | undefined)?.metadata, {
      uid: 'uid-1',
      resourceVersion: '101',
    });
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
  });

  it('isWritten returns true when the API server has the status or does not have the pod', async (t) => {
    const pod = aPod();
    const { api, clock, say, writer } = await atWork(t, pod);
    const { uid } = pod.metadata;
    assert.equal(writer.isWritten(uid), true, 'no status to write');
    api.latencyMs = 500;
    say(pod, running);
    await clock.advance(400);
    assert.equal(writer.isWritten(uid), false);
    await clock.advance(200);
    assert.equal(writer.isWritten(uid), true);
    say(pod, ended);
    assert.equal(writer.isWritten(uid), false);
    api.watched.clear();
    assert.equal(writer.isWritten(uid), true);
  });

  it('writes the starting state of a pod only when it lasts longer than half a second', async (t) => {
    const [quick, slow, stuck] = [numbered(1), numbered(2), numbered(3)];
    const { api, clock, say } = await atWork(t, quick, slow, stuck);
    const waiting = (reason: string): PodStatus => ({
      phase: 'Pending',
      containerStatuses: [
        {
          name: 'main',
          image: '',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { waiting: { reason } },
        },
      ],
    });
    for (const pod of [quick, slow]) say(pod, waiting('ContainerCreating'));
    say(stuck, waiting('ErrImagePull'));
    await clock.advance(499);
    assert.deepEqual(
      api.calls.map(({ name }) => name),
      ['web-3'],
    );
    say(quick, running);
    await clock.advance(1);
    assert.deepEqual(
      api.calls.map(({ name }) => name),
      ['web-3', 'web-1', 'web-2'],
    );
    await clock.advance(9_000);
    assert.equal(api.calls.length, 3);
  });

  it('measures the time from a status change to its write', async (t) => {
    const pod = aPod();
    const { api, clock, say, registry, stopping } = await atWork(t, pod);
    api.latencyMs = 700;
    say(pod, running);
    await clock.advance(700);
    const text = await registry.expose(stopping.signal);
    assert.match(text, /kubelet_pod_status_sync_duration_seconds_bucket\{le="0.5"\} 0/);
    assert.match(text, /kubelet_pod_status_sync_duration_seconds_bucket\{le="1"\} 1/);
  });

  it('writes only the newest of several statuses that changed during a call, in order', async (t) => {
    const pod = aPod({ spec: { restartPolicy: 'Never' } });
    const { api, clock, say } = await atWork(t, pod);
    api.latencyMs = 1_000;
    for (const reason of ['one', 'two', 'three', 'four']) {
      say(pod, { ...running, reason });
      await clock.advance(300);
    }
    await clock.advance(5_000);
    const written = api.calls.map(({ body }) => (body as { status: PodStatus }).status.reason);
    assert.deepEqual(written, ['one', 'four']);
  });

  it('has at most eight patches in flight and never two for one pod', async (t) => {
    const pods = Array.from({ length: 30 }, (_, index) => numbered(index));
    const { api, clock, say } = await atWork(t, ...pods);
    api.latencyMs = 1_000;
    for (const pod of pods) say(pod, running);
    await clock.advance(500);
    for (const pod of pods) say(pod, { ...running, reason: 'again' });
    await clock.advance(10_000);
    assert.equal(api.mostInFlight, 8);
    assert.ok([...api.pods.values()].every(({ status }) => status.reason === 'again'));
  });

  it("writes other pods' statuses while the calls for one pod are slow", async (t) => {
    const [slow, quick] = [numbered(1), numbered(2)];
    const { api, clock, say } = await atWork(t, slow, quick);
    api.latencyMs = 60_000;
    say(slow, running);
    await clock.advance(0);
    api.latencyMs = 10;
    say(quick, running);
    await clock.advance(10);
    assert.equal(api.pods.get('web-2')?.status.phase, 'Running');
  });

  it('does not write a status that the API server already has, for example after a restart, even if condition times were lost', async (t) => {
    const lastTransitionTime = '2025-12-01T00:00:00Z';
    const status = {
      ...running,
      startTime: lastTransitionTime,
      conditions: [{ ...ready, lastTransitionTime, lastProbeTime: null as unknown as string }],
      containerStatuses: [
        { name: 'main', ready: true, restartCount: 0, image: 'i', imageID: '', lastState: {} },
      ],
    };
    const pod = aPod({ status });
    const { api, clock, statuses, writer } = await atWork(t, pod);
    const [container] = status.containerStatuses;
    const retained = { ...pod, status: { startTime: lastTransitionTime } };
    statuses.setPodStatus(retained, {
      ...running,
      containerStatuses: [{ ...container, lastState: undefined, name: 'main' } as never],
    });
    await clock.advance(60_000);
    assert.deepEqual(api.verbs(), []);
    // Neither a requested comparison nor a change of the pod outside its status causes a patch.
    writer.compare(pod.metadata.uid);
    await clock.advance(0);
    api.put({ ...pod, metadata: { ...pod.metadata, annotations: { note: 'new' } } });
    await clock.advance(20_000);
    assert.deepEqual(api.verbs(), []);
  });

  it('compares a status with the response of the last patch while the watch lags behind', async (t) => {
    const pod = aPod({ status: { ...running, reason: 'A', startTime: '2026-01-01T00:00:00Z' } });
    const { api, clock, say } = await atWork(t, pod);
    say(pod, { ...running, reason: 'B' });
    await clock.advance(0);
    // The watch still delivers a pod with the status reason A, so a comparison with that pod would
    // find nothing to write.
    say(pod, { ...running, reason: 'A' });
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch', 'patch']);
    assert.equal(api.pods.get('web')?.status.reason, 'A');
  });

  it('restores a status within ten seconds after another client has overwritten it', async (t) => {
    const pod = aPod();
    const { api, clock, say } = await atWork(t, pod);
    say(pod, running);
    await clock.advance(0);
    api.watch();
    api.put({ ...pod, status: { phase: 'Pending' } });
    await clock.advance(10_000);
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
    await clock.advance(60_000);
    assert.deepEqual(api.verbs(), ['patch', 'patch']);
  });

  it('keeps conditions of other components as the API server has them', async (t) => {
    const foreign = { ...condition('example.com/gate'), lastTransitionTime: deletionTimestamp };
    const pod = aPod({ status: { conditions: [foreign] } });
    const { api, clock, say } = await atWork(t, pod);
    say(pod, running);
    await clock.advance(0);
    assert.deepEqual(findCondition(api.pods.get('web')?.status ?? {}, 'example.com/gate'), foreign);
  });
});

describe('StatusWriter after conflicts', () => {
  it('reads the pod after a conflict and patches the version that was read', async (t) => {
    const pod = aPod();
    const { api, clock, say } = await atWork(t, pod);
    let refusals = 1;
    api.failure = ({ verb, name }) =>
      verb === 'patch' && refusals-- > 0 ? refusal(verb, name, 409, 'Conflict') : undefined;
    say(pod, running);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch', 'get', 'patch']);
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
  });

  it('drops the status of a pod that was replaced by another pod of the same name', async (t) => {
    const pod = aPod();
    const { api, clock, say, statuses, writer } = await atWork(t, pod);
    api.pods.set('web', aPod({ metadata: { uid: podUid('uid-2') } }));
    say(pod, running);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch', 'get']);
    assert.equal(statuses.entry(pod.metadata.uid), undefined);
    assert.equal(writer.size, 0);
    assert.equal(api.pods.get('web')?.status.phase, undefined);
  });

  it('keeps the status of a deleted pod while the pod terminates', async (t) => {
    const pod = aPod();
    const { api, clock, say, statuses } = await atWork(t, pod);
    api.pods.clear();
    say(pod, running);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch', 'get']);
    assert.ok(statuses.entry(pod.metadata.uid) !== undefined);
    api.watch();
    await clock.advance(60_000);
    assert.deepEqual(api.verbs(), ['patch', 'get']);
  });
});

describe('StatusWriter and failures', () => {
  it('backs off after a failed patch and then writes the newest status', async (t) => {
    const pod = aPod();
    const { api, clock, say, records } = await atWork(t, pod);
    api.failure = ({ verb, name }) => refusal(verb, name, 503);
    say(pod, running);
    await clock.advance(60_000);
    const tries = api.calls.length;
    assert.ok(tries >= 8 && tries <= 16, `${tries} attempts in a minute`);
    say(pod, { ...running, reason: 'newest' });
    api.failure = () => undefined;
    await clock.advance(12_000);
    assert.equal(api.pods.get('web')?.status.reason, 'newest');
    const warnings = records.toArray().filter(({ severity }) => severity === 'warning');
    assert.equal(warnings.length, 1);
  });

  it('does not skip the back-off when a pod gets a new status', async (t) => {
    const pod = aPod();
    const { api, clock, say } = await atWork(t, pod);
    api.failure = ({ verb, name }) => refusal(verb, name, 503);
    say(pod, running);
    await clock.advance(60_000);
    const tries = api.calls.length;
    for (let index = 0; index < 50; index++) {
      say(pod, { ...running, reason: `r${index}` });
      await clock.advance(20);
    }
    assert.ok(api.calls.length <= tries + 1);
  });

  it('writes immediately when the API server is reachable again', async (t) => {
    const pods = [numbered(1), numbered(2)];
    const { api, clock, say, writer } = await atWork(t, ...pods);
    api.failure = ({ verb, name }) => refusal(verb, name, 503);
    for (const pod of pods) say(pod, running);
    await clock.advance(300_000);
    api.failure = () => undefined;
    writer.reconnected();
    await clock.advance(0);
    assert.ok([...api.pods.values()].every(({ status }) => status.phase === 'Running'));
  });

  it('removes the write state of pods without a status', async (t) => {
    const pod = aPod();
    const { api, clock, say, statuses, writer } = await atWork(t, pod);
    say(pod, running);
    await clock.advance(0);
    assert.equal(writer.size, 1);
    statuses.removeOrphanedStatuses(new Set());
    await clock.advance(10_000);
    assert.deepEqual([writer.size, writer.pending], [0, 0]);
    assert.deepEqual(api.verbs(), ['patch']);
  });

  it('leaves no timer after the writer is stopped', async (t) => {
    const pod = aPod();
    const { clock, say, stopping, run, api } = await atWork(t, pod);
    api.latencyMs = 1_000;
    say(pod, running);
    await clock.advance(1);
    stopping.abort(new Error('enough'));
    await assert.rejects(run, /enough/);
    await clock.advance(0);
    assert.equal(clock.pendingTimers, 0);
  });
});

describe('StatusWriter and terminated pods', () => {
  const once = { spec: { restartPolicy: 'Never' } } as const;

  it('does not report the terminal phase of a pod that may run, but writes all other fields', async (t) => {
    const pod = aPod({ ...once, status: { ...running, reason: 'Fine' } });
    const { api, clock, say, live } = await atWork(t, pod);
    live.add(pod.metadata.uid);
    say(pod, { ...ended, reason: 'Over', podIP: '10.0.0.1' });
    await clock.advance(0);
    const { phase, reason, podIP } = api.pods.get('web')?.status ?? {};
    assert.deepEqual([phase, reason, podIP], ['Running', 'Fine', '10.0.0.1']);
    api.watch();
    live.clear();
    await clock.advance(10_000);
    assert.equal(api.pods.get('web')?.status.phase, 'Succeeded');
  });

  it('writes the condition DisruptionTarget together with the terminal phase, with the time of that write as its transition time', async (t) => {
    const pod = aPod({ ...once, status: running });
    const { api, clock, say, live } = await atWork(t, pod);
    live.add(pod.metadata.uid);
    say(pod, { phase: 'Failed', conditions: [condition('Ready', 'False'), condition('DisruptionTarget')] });
    await clock.advance(5_000);
    assert.equal(findCondition(api.pods.get('web')?.status ?? {}, 'DisruptionTarget'), undefined);
    api.watch();
    live.clear();
    await clock.advance(5_000);
    const output = findCondition(api.pods.get('web')?.status ?? {}, 'DisruptionTarget');
    assert.equal(output?.lastTransitionTime, '2026-01-01T00:00:10Z');
    const calls = api.calls.length;
    api.watch();
    await clock.advance(30_000);
    assert.equal(api.calls.length, calls);
  });

  it('deletes a pod only when deletion is requested, its terminal phase is in the API and all its resources are removed', async (t) => {
    const pod = aPod({ ...once, metadata: { deletionTimestamp }, status: running });
    const { api, clock, say, statuses, live } = await atWork(t, pod);
    live.add(pod.metadata.uid);
    say(pod, ended);
    await clock.advance(20_000);
    assert.ok(!api.verbs().includes('delete'));
    live.clear();
    await clock.advance(10_000);
    assert.equal(api.pods.get('web')?.status.phase, 'Succeeded');
    assert.ok(!api.verbs().includes('delete'), 'its volumes may still exist');
    statuses.terminatePod(pod);
    await clock.advance(0);
    assert.deepEqual(api.calls.at(-1), {
      verb: 'delete',
      name: 'web',
      body: { gracePeriodSeconds: 0, uid: 'uid-1' },
    });
    assert.equal(statuses.entry(pod.metadata.uid), undefined);
  });

  it('does not delete a terminated pod before deletion is requested', async (t) => {
    const pod = aPod({ ...once, status: ended });
    const { api, clock, statuses } = await atWork(t, pod);
    statuses.terminatePod(pod);
    await clock.advance(20_000);
    assert.ok(!api.verbs().includes('delete'));
    const deleted = api.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    statuses.setPodStatus(deleted, ended);
    await clock.advance(0);
    assert.equal(api.pods.size, 0);
  });

  it('retries a failed pod deletion every ten seconds', async (t) => {
    const pod = aPod({ ...once, metadata: { deletionTimestamp }, status: ended });
    const { api, clock, statuses } = await atWork(t, pod);
    api.failure = ({ verb, name }) => (verb === 'delete' ? refusal(verb, name, 500) : undefined);
    statuses.terminatePod(pod);
    await clock.advance(60_000);
    const tries = api.verbs().filter((verb) => verb === 'delete').length;
    assert.ok(tries >= 6 && tries < 20, `${tries} tries`);
    api.failure = () => undefined;
    await clock.advance(12_000);
    assert.equal(api.pods.size, 0);
  });

  it('writes no status of a pod that was deleted from the API server', async (t) => {
    const pod = aPod({ status: running });
    const { api, clock, say } = await atWork(t, pod);
    api.pods.clear();
    api.watch();
    say(pod, { ...running, reason: 'x' });
    await clock.advance(30_000);
    assert.deepEqual(api.verbs(), []);
  });
});

describe('StatusWriter and static pods', () => {
  const file = aPod({ metadata: { uid: podUid('file-1'), annotations: { [annotations.source]: 'file' } } });
  const mirror = aPod({
    metadata: { uid: podUid('mirror-1'), deletionTimestamp, annotations: { [annotations.mirror]: 'h' } },
  });

  it('writes the status of a static pod to its mirror pod, and to a replacement of the mirror pod', async (t) => {
    const { api, clock, statuses, mirrors, writer } = await atWork(t);
    statuses.setPodStatus(file, running);
    await clock.advance(20_000);
    assert.deepEqual(api.verbs(), []);
    api.put(mirror);
    mirrors.set(file.metadata.uid, mirror.metadata.uid);
    writer.compare(file.metadata.uid);
    await clock.advance(0);
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
    api.put({ ...mirror, metadata: { ...mirror.metadata, uid: podUid('mirror-2') } });
    mirrors.set(file.metadata.uid, podUid('mirror-2'));
    await clock.advance(10_000);
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
  });

  it('writes to a new mirror pod immediately when the watch delivers it, without comparing other pods', async (t) => {
    const { api, clock, statuses, mirrors, writer } = await atWork(t);
    const { uid } = file.metadata;
    statuses.setPodStatus(file, running);
    api.put(mirror);
    mirrors.set(uid, mirror.metadata.uid);
    await clock.advance(10_000);
    writer.mirrored(uid);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch']);
    api.put({ ...mirror, metadata: { ...mirror.metadata, uid: podUid('mirror-2') } });
    mirrors.set(uid, podUid('mirror-2'));
    writer.mirrored(uid);
    await clock.advance(0);
    assert.deepEqual(api.verbs(), ['patch', 'patch']);
    assert.equal(api.pods.get('web')?.status.phase, 'Running');
  });

  it('reports a mirror pod whose terminal status belongs to an earlier instance of its static pod and cannot be reverted', async (t) => {
    const { api, clock, statuses, mirrors, outlived } = await atWork(t, mirror);
    mirrors.set(file.metadata.uid, mirror.metadata.uid);
    statuses.setPodStatus(file, running);
    api.failure = ({ verb }) => (verb === 'patch' ? refusal('patch', 'web', 422, 'Invalid') : undefined);
    await clock.advance(5_000);
    assert.deepEqual(outlived, []);
    await clock.advance(20_000);
    assert.deepEqual([...new Set(outlived)], ['mirror-1']);
    api.failure = () => undefined;
    api.put({ ...mirror, metadata: { ...mirror.metadata, uid: podUid('mirror-2') }, status: ended });
    mirrors.set(file.metadata.uid, podUid('mirror-2'));
    await clock.advance(20_000);
    assert.deepEqual([...new Set(outlived)], ['mirror-1', 'mirror-2']);
  });

  it('keeps the status of a static pod without a mirror pod and never deletes a mirror pod', async (t) => {
    const { api, clock, statuses, mirrors } = await atWork(t, mirror);
    mirrors.set(file.metadata.uid, mirror.metadata.uid);
    statuses.setPodStatus({ ...file, spec: { ...file.spec, restartPolicy: 'Never' } }, ended);
    statuses.terminatePod(file);
    await clock.advance(20_000);
    assert.ok(!api.verbs().includes('delete'));
    api.pods.clear();
    statuses.setPodStatus(file, running);
    await clock.advance(0);
    assert.ok(statuses.entry(file.metadata.uid) !== undefined);
  });
});
