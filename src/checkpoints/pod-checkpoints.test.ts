import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mapFileStore, memoryRuntimeFiles } from '../../test/fakes/memory-runtime-files.ts';
import { podOf } from '../../test/fakes/pod-sketch.ts';
import { VirtualClock } from '../../test/fakes/virtual-clock.ts';
import type { ContainerState, ContainerStatus } from '../kinds/index.ts';
import { collectLogs, KubelingError } from '../lib/index.ts';
import { type Pod, podUid } from '../pods/index.ts';
import type { RuntimeFiles } from '../runtime/index.ts';
import { PodCheckpoints } from './pod-checkpoints.ts';
import { PodDirectories } from './pod-directories.ts';
import { shutDownStatus } from './shutdown-status.ts';

const uid = podUid('uid-1');
const path = '/root/pods/uid-1/kubeling.json';
const web = podOf({ source: 'file' });
const startTime = '2026-01-01T00:00:00Z';
const scheduled = { type: 'PodScheduled', status: 'True', lastTransitionTime: startTime };
const waiting = { type: 'Ready', status: 'False', lastTransitionTime: startTime };
const running = { phase: 'Pending', startTime, conditions: [scheduled, waiting] };
const failed = { ...running, phase: 'Failed', reason: 'DeadlineExceeded', message: 'too long' };

/** A simulated machine on which kubelets start and stop. */
function aMachine(change: (files: RuntimeFiles) => RuntimeFiles = (files) => files) {
  const clock = new VirtualClock();
  const logs = collectLogs(clock);
  const store = mapFileStore();
  const writes: string[] = [];
  const files = memoryRuntimeFiles(store);
  const counted: RuntimeFiles = {
    ...files,
    replace: async (at, text, options) => {
      writes.push(at);
      await files.replace(at, text, options);
    },
  };
  const machine = change(counted);
  const directories = new PodDirectories('/root', machine, async () => []);
  const open = async (boot = 'boot-1') => {
    const book = new PodCheckpoints({
      clock,
      logger: logs.logger,
      files: machine,
      podsDir: directories.podsDir,
      readBoot: async () => boot,
    });
    await book.open();
    return book;
  };
  const told = () =>
    logs.records.toArray().map(({ message, fields }) => `${message} ${JSON.stringify(fields)}`);
  return { clock, store, writes, open, told };
}

describe('PodCheckpoints', () => {
  it('writes the checkpoint of a pod again after its directory was removed', async () => {
    const machine = aMachine();
    const book = await machine.open();
    await book.recordAdmission(web, running);
    machine.store.remove(path);
    book.directoryRemoved(uid, 'undesired');
    assert.equal((await machine.open()).get(uid), undefined);
    await book.recordAdmission(web, running);
    assert.ok((await machine.open()).get(uid));
  });

  it('restores the checkpoint of a pod that became desired while its directory was removed', async () => {
    const machine = aMachine();
    const book = await machine.open();
    await book.recordAdmission(web, running);
    machine.store.remove(path);
    book.directoryRemoved(uid, 'desired');
    await book.flushed();
    assert.ok((await machine.open()).get(uid));
  });

  it('stores the volumes of pods and restores those of the previous kubelet', async () => {
    const machine = aMachine();
    const book = await machine.open();
    const volume = {
      name: 'disk',
      claim: 'data',
      source: { kind: 'local', path: '/mnt/disk' },
      readOnly: false,
      mountOptions: [],
      use: 'one-pod',
    } as const;
    await book.volumes.record(web, { v: volume });
    await book.recordAdmission(web, running);
    const later = await machine.open();
    for (const one of [book, later]) {
      assert.deepEqual(one.volumes.of(uid), { v: volume });
      assert.deepEqual(one.volumes.ofOtherPods(uid), []);
      assert.deepEqual(one.volumes.ofOtherPods(podUid('uid-2')), [volume]);
    }
    await later.volumes.forget(uid);
    await later.volumes.forget(podUid('uid-2'));
    assert.deepEqual((await machine.open()).volumes.of(uid), {});
  });

  it('resolves when an admission is on disk, or after a time-out if the disk hangs', async () => {
    const gate = Promise.withResolvers<void>();
    const machine = aMachine((files) => ({
      ...files,
      replace: async (...given) => {
        await gate.promise;
        await files.replace(...given);
      },
    }));
    const book = await machine.open();
    void book.recordAdmission(web, running);
    const inVain = book.flushed();
    await machine.clock.advance(10_000);
    await inVain;
    assert.deepEqual(machine.writes, []);
    const settled = book.flushed().then(() => machine.writes.length);
    gate.resolve();
    assert.equal(await settled, 1);
  });

  it('restores the entries of the previous kubelet, and writes a repeated admission of a pod only once', async () => {
    const machine = aMachine();
    const first = await machine.open();
    await first.recordAdmission(web, running);
    await first.recordAdmission(web, running);
    assert.deepEqual(machine.writes, [path]);
    await first.recordInitialized(uid, 'sandbox-7');
    await first.recordBackoff(uid, [['main', { failures: 2, delayMs: 20_000, lastMs: 5 }]]);
    const second = await machine.open();
    assert.deepEqual(second.get(uid), {
      source: 'file',
      name: 'web',
      namespace: 'default',
      boot: 'boot-1',
      initializedSandbox: 'sandbox-7',
      restarts: { main: { failures: 2, delayMs: 20_000, lastMs: 5 } },
      status: { startTime, conditions: [scheduled] },
    });
    assert.deepEqual(second.backoffs(), [['main', { failures: 2, delayMs: 20_000, lastMs: 5 }]]);
    assert.equal(second.wasAdmittedInThisBoot(uid), true);
    const afterBoot = await machine.open('boot-2');
    assert.deepEqual([afterBoot.wasAdmittedInThisBoot(uid), afterBoot.wasAdmitted(uid)], [false, true]);
    assert.equal(afterBoot.wasAdmitted(podUid('other')), false);
    assert.equal((await machine.open('')).wasAdmittedInThisBoot(uid), false, 'an unknown boot is no boot');
  });

  it('ignores an invalid checkpoint file, and logs it', async () => {
    for (const text of ['', '{"version":1,"sour', 'x'.repeat(300_000), '[]']) {
      const machine = aMachine();
      machine.store.write(path, text);
      const book = await machine.open();
      assert.equal(book.size, 0);
      assert.deepEqual(
        machine.told().map((line) => line.includes(path)),
        [true],
      );
      await book.recordAdmission(web, running);
      assert.equal((await machine.open()).get(uid)?.source, 'file');
    }
  });

  it('continues after a failed write of a checkpoint, and writes the entry again at the next call', async () => {
    let isFull = true;
    const machine = aMachine((files) => ({
      ...files,
      replace: async (...args) => {
        if (isFull) throw new KubelingError('FILE_WRITE', 'the disk is full');
        await files.replace(...args);
      },
    }));
    const book = await machine.open();
    await book.recordAdmission(web, running);
    assert.equal(book.get(uid)?.name, 'web');
    isFull = false;
    await book.recordAdmission(web, running);
    assert.equal((await machine.open()).get(uid)?.name, 'web');
  });

  it('waits only briefly for a disk that hangs', async () => {
    const machine = aMachine((files) => ({ ...files, replace: () => new Promise(() => {}) }));
    const book = await machine.open();
    let isOver = false;
    const noted = book.recordTermination(web, 30).then(() => {
      isOver = true;
    });
    await machine.clock.advance(4_000);
    assert.equal(isOver, false);
    await machine.clock.advance(1_000);
    await noted;
    assert.equal(machine.clock.pendingTimers, 0);
    assert.match(machine.told().join(), /Failed to write pod checkpoint in time/);
  });

  it('restores the remaining grace period, at least a second', async () => {
    const machine = aMachine();
    const first = await machine.open();
    await first.recordAdmission(web, running);
    await first.recordTermination(web, 30);
    await machine.clock.advance(12_500);
    await first.recordTermination(web, 30);
    assert.equal(first.secondsLeft(uid), 18);
    const second = await machine.open();
    assert.equal(second.secondsLeft(uid), 18);
    await machine.clock.advance(60_000);
    assert.equal((await machine.open()).secondsLeft(uid), 1);
    assert.equal(machine.writes.length, 2);
  });

  it('ignores a later deadline for a terminating pod', async () => {
    const machine = aMachine();
    const book = await machine.open();
    await book.recordTermination(web, 30);
    await machine.clock.advance(10_000);
    await book.recordTermination(web, 5);
    await book.recordTermination(web, 60);
    assert.equal(book.secondsLeft(uid), 5);
    assert.equal((await machine.open()).secondsLeft(uid), 5);
  });

  it('restarts the grace period once after the clock was set back', async () => {
    const machine = aMachine();
    await (await machine.open()).recordTermination(web, 30);
    machine.clock.jumpWall(-3_600_000);
    await machine.clock.advance(10_000);
    assert.equal((await machine.open()).secondsLeft(uid), 30);
    await machine.clock.advance(10_000);
    assert.equal((await machine.open()).secondsLeft(uid), 20);
  });

  it('keeps the termination deadline when the clock is changed, also for the next kubelet', async () => {
    for (const jumpMs of [-3_600_000, 3_600_000]) {
      const machine = aMachine();
      const book = await machine.open();
      await book.recordTermination(web, 30);
      await machine.clock.advance(5_000);
      await book.refreshDeadline(uid);
      assert.equal(machine.writes.length, 1, 'nothing has changed');
      machine.clock.jumpWall(jumpMs);
      await machine.clock.advance(5_000);
      await book.refreshDeadline(uid);
      assert.deepEqual([book.secondsLeft(uid), (await machine.open()).secondsLeft(uid)], [20, 20]);
    }
  });

  it('drops the deadline of a finished termination, and the entry of a pod whose directory was removed', async () => {
    const machine = aMachine();
    const book = await machine.open();
    await book.recordAdmission(web, running);
    await book.recordTermination(web, 30);
    await book.recordTerminated(uid, 'desired');
    assert.equal((await machine.open()).secondsLeft(uid), undefined);
    await book.recordTermination(web, 30);
    const before = machine.writes.length;
    await book.recordTerminated(uid, 'undesired');
    assert.equal(machine.writes.length, before, 'it goes with the directory');
    assert.equal(book.secondsLeft(uid), undefined);
    book.retain(() => false);
    assert.equal(book.size, 0);
    await book.recordInitialized(uid, 'late');
    assert.equal(machine.writes.length, before, 'nothing brings the directory back');
  });

  it('keeps the source of a pod in memory, and writes nothing to disk, until the pod is admitted', async () => {
    const machine = aMachine();
    const book = await machine.open();
    book.observeSource(podOf({ source: 'http' }), 'restarts');
    assert.equal(book.get(uid)?.source, 'http');
    await book.recordTerminated(uid, 'desired');
    assert.deepEqual(machine.writes, []);
    assert.equal(book.wasAdmittedInThisBoot(uid), false);
  });

  it('stores the final status of a static pod with one additional write', async () => {
    const machine = aMachine();
    const first = await machine.open();
    await first.recordAdmission(web, running);
    await first.recordFinished(web, failed);
    await first.recordFinished(web, failed);
    await first.recordTermination(web, 30);
    assert.equal(machine.writes.length, 3);
    const ended = { ...failed, conditions: [scheduled, waiting] };
    assert.deepEqual((await machine.open()).statusOf(uid), ended);
  });

  it('returns no status for a static pod that was terminated by a node shutdown, so that the pod starts again', async () => {
    const machine = aMachine();
    const first = await machine.open();
    await first.recordAdmission(web, running);
    await first.recordFinished(web, shutDownStatus(running));
    assert.equal((await machine.open()).statusOf(uid), undefined);
  });

  it('does not store the status of API pods', async () => {
    const book = await aMachine().open();
    await book.recordAdmission(podOf(), running);
    await book.recordFinished(podOf(), failed);
    assert.equal(book.statusOf(uid), undefined);
  });

  it('restores the start time of a pod that continues after a kubelet restart, and drops it for a pod that starts again or terminates', async () => {
    const machine = aMachine();
    const first = await machine.open();
    await first.recordAdmission(web, running);
    const second = await machine.open();
    second.observeSource(web, 'continues');
    assert.equal(second.statusOf(uid)?.startTime, startTime);
    second.observeSource(web, 'restarts');
    assert.equal(second.statusOf(uid), undefined);
    const later = '2026-01-01T00:01:00Z';
    await second.recordAdmission(web, { ...running, startTime: later });
    assert.equal((await machine.open()).statusOf(uid)?.startTime, later);
    await second.recordTermination(web, 30);
    assert.equal((await machine.open()).statusOf(uid), undefined);
  });

  it('drops the final status of a pod that its source has removed', async () => {
    const machine = aMachine();
    const book = await machine.open();
    await book.recordSourceRemoved(uid);
    await book.recordAdmission(web, running);
    await book.recordFinished(web, failed);
    await book.recordSourceRemoved(uid);
    assert.equal((await machine.open()).statusOf(uid), undefined);
    const before = machine.writes.length;
    await book.recordAdmission(web, running);
    await book.recordSourceRemoved(uid);
    assert.equal(machine.writes.length, before + 1, 'of one that had not ended the kill is noted anyway');
  });

  it('stores which probed containers are started and ready, with one write per change', async () => {
    const machine = aMachine();
    const book = await machine.open();
    const probed: Pod = {
      ...web,
      spec: { containers: [{ name: 'main', readinessProbe: {} }, { name: 'other' }] },
    };
    const of = (name: string, ready: boolean, state: ContainerState) =>
      ({
        name,
        containerID: `containerd://${name}`,
        restartCount: 0,
        started: true,
        ready,
        state,
      }) as ContainerStatus;
    const seen = (ready: boolean, state: ContainerState = { running: {} }) => ({
      ...running,
      containerStatuses: [of('main', ready, state), of('other', true, { running: {} })],
    });
    await book.recordStatus(probed, seen(true));
    assert.equal(machine.writes.length, 0, 'of a pod that was not let run there is nothing to note');
    await book.recordAdmission(probed, running);
    for (const ready of [true, true, false]) await book.recordStatus(probed, seen(ready));
    assert.equal(machine.writes.length, 3);
    const noted = { 'containerd://main': { started: true, ready: false } };
    assert.deepEqual((await machine.open()).statusOf(uid)?.probed, noted);
    await book.recordAdmission(probed, running);
    assert.deepEqual(book.statusOf(uid)?.probed, noted);
    await book.recordStatus(probed, seen(false, { terminated: { exitCode: 0 } }));
    assert.equal(book.statusOf(uid)?.probed, undefined, 'one that does not run is neither');
    await book.recordFinished(probed, failed);
    await book.recordStatus(probed, seen(true));
    assert.equal(book.statusOf(uid)?.probed, undefined);
  });

  it('stores exits and restart counts of containers, with one write per change', async () => {
    const machine = aMachine();
    const book = await machine.open();
    const main = { name: 'main', image: 'x', imageID: 'y', ready: false };
    const ended = { terminated: { exitCode: 3, reason: 'Error', containerID: 'containerd://1' } };
    const first = { ...main, containerID: 'containerd://1' };
    const second = { ...main, containerID: 'containerd://2' };
    const podIPs = [{ ip: '10.0.0.7' }];
    const seen = (each: object) => ({ ...running, podIPs, containerStatuses: [each as ContainerStatus] });
    await book.recordAdmission(web, running);
    await book.recordStatus(web, seen({ ...first, restartCount: 0, state: { running: {} } }));
    assert.equal(machine.writes.length, 1, 'what runs for the first time, the runtime tells');
    await book.recordStatus(web, seen({ ...first, restartCount: 0, state: ended }));
    for (const reason of ['CrashLoopBackOff', 'ImagePullBackOff'])
      await book.recordStatus(
        web,
        seen({ ...first, restartCount: 0, state: { waiting: { reason } }, lastState: ended }),
      );
    const again = { ...second, restartCount: 1, lastState: ended, state: { running: {} } };
    await book.recordStatus(web, seen(again));
    await book.recordStatus(web, seen(again));
    assert.equal(machine.writes.length, 4);
    const noted = (await machine.open()).statusOf(uid);
    assert.deepEqual([noted?.containerStatuses, noted?.podIPs], [[again], podIPs]);
    await book.recordStatus(web, { ...seen(again), phase: 'Failed' });
    assert.equal(machine.writes.length, 4, 'that it has ended is for others to note');
    const over = { ...failed, containerStatuses: [{ ...second, restartCount: 1, state: ended }] };
    await book.recordFinished(web, { ...over, containerStatuses: [again] });
    await book.recordStatus(web, over);
    assert.deepEqual((await machine.open()).statusOf(uid)?.containerStatuses, over.containerStatuses);
  });
});
