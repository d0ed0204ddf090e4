import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, chmod, copyFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import {
  busyboxImageName,
  findRuntimeSockets,
  type PrivateContainerd,
  pauseImageName,
} from '../../src/containerd/index.ts';
import { KubelingError } from '../../src/lib/index.ts';
import { eventually } from '../kubeling-node.ts';
import { compareSnapshots, listSnapshot, mentioning, takeSnapshot } from '../machine-snapshot.ts';
import {
  clock,
  connect,
  ctr,
  httpGet,
  isAlive,
  limit,
  pidOf,
  runContainer,
  runPod,
  skipReason,
  TestDirectory,
  taskPid,
  until,
} from './containerd-fixture.ts';

const execute = promisify(execFile);
// All containerds of a machine share one directory for containers outside of pods, so the names
// must be unique to this process.
const [sleeperName, bareName, shortName] = ['sleeper', 'bare', 'short'].map(
  (name) => `${name}-${process.pid}`,
) as [string, string, string];
/** Process options for an unprivileged user of this machine. */
const asNobody = { uid: 65_534, gid: 65_534 };
const starter = join(import.meta.dirname, 'containerd-starter.ts');

async function ensureInAnotherProcess(dir: TestDirectory) {
  const { stdout } = await execute(process.execPath, [starter, dir.path]);
  return JSON.parse(stdout);
}

async function runs(pid: number | undefined): Promise<boolean> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z');
  return !text.includes(') Z');
}

/** Kills a process and waits until it has exited. */
async function murder(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await until(
    async () => (await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => ') Z')).includes(') Z'),
    `${pid} is dead`,
  );
}

/**
 * Returns the lines added since the snapshot `before` that contain one of the words; other lines,
 * such as the namespace numbers of concurrent tests, are ignored.
 */
async function leftOf(before: Awaited<ReturnType<typeof takeSnapshot>>, words: readonly string[]) {
  const look = async () =>
    listSnapshot(mentioning(compareSnapshots(before, await takeSnapshot()).added, words));
  const nothing = async () => ((await look()).length === 0 ? [] : undefined);
  return await eventually('nothing to be left', nothing).catch(look);
}

describe('a private containerd', { skip: skipReason(), concurrency: false }, () => {
  it('containerd outlives the process that started it and is adopted by the next process', async () => {
    await using dir = await TestDirectory.make();
    const first = await ensureInAnotherProcess(dir);
    assert.equal(first.origin, 'started');
    const containerd = await dir.open();
    const second = await containerd.ensureRunning(limit());
    assert.deepEqual(second, { ...first, origin: 'adopted' });
    assert.deepEqual(await containerd.adopt(limit()), second);
    assert.deepEqual(await containerd.health(limit()), {
      state: 'serving',
      pid: first.pid,
      version: first.version,
    });
    await assert.rejects(containerd.start(limit()), { code: 'CONTAINERD_RUNNING' });
    assert.match(second.subnet, /^10\.\d+\.\d+\.0\/22$/);
    // containerd runs in a separate session, independent of the terminal of the process that
    // started it.
    assert.equal(
      (await readFile(`/proc/${first.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[3],
      String(first.pid),
    );
  });

  it('containerd is started once when several processes request it concurrently', async () => {
    await using dir = await TestDirectory.make();
    const responses = await Promise.all([1, 2, 3, 4].map(() => ensureInAnotherProcess(dir)));
    assert.deepEqual(responses.map((response) => response.origin).toSorted(), [
      'adopted',
      'adopted',
      'adopted',
      'started',
    ]);
    assert.equal(new Set(responses.map((response) => response.pid)).size, 1);
  });

  it('containerd restarts after a kill with its containers still running', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const first = await containerd.ensureRunning(limit());
    const sleeper = await runContainer(containerd, sleeperName);
    await murder(first.pid);
    assert.deepEqual(await containerd.health(limit()), { state: 'not-running' });
    assert(existsSync(containerd.layout.socket) && existsSync(containerd.layout.pidFile));
    const second = await (await dir.open()).ensureRunning(limit());
    assert.equal(second.origin, 'started');
    assert.equal(second.subnet, first.subnet);
    assert.equal(await taskPid(containerd, sleeperName), sleeper);
    assert(isAlive(sleeper));
  });

  it('a stop and a start of containerd keep its containers running', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    await containerd.start(limit());
    const sleeper = await runContainer(containerd, sleeperName);
    assert.equal(await containerd.stop(limit()), 'stopped');
    assert.equal(await containerd.stop(limit()), 'not-running');
    assert(!existsSync(containerd.layout.socket) && !existsSync(containerd.layout.pidFile));
    assert(isAlive(sleeper));
    await containerd.start(limit());
    assert.equal(await taskPid(containerd, sleeperName), sleeper);
  });

  it('containerd is adopted even if a crash lost its pid file', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const first = await containerd.ensureRunning(limit());
    await rm(containerd.layout.pidFile);
    assert.deepEqual(await containerd.ensureRunning(limit()), { ...first, origin: 'adopted' });
    assert.equal(await pidOf(containerd), first.pid);
  });

  it('containerd is replaced when it runs but does not respond', async () => {
    await using dir = await TestDirectory.make();
    const first = await (await dir.open()).ensureRunning(limit());
    process.kill(first.pid, 'SIGSTOP');
    const containerd = await dir.open({ readyDeadlineMs: 10_000 });
    const observed = await containerd.health(limit());
    assert.equal(observed.state, 'unresponsive');
    const second = await containerd.ensureRunning(limit(120_000));
    assert.equal(second.origin, 'started');
    assert.notEqual(second.pid, first.pid);
    assert(!isAlive(first.pid));
  });

  it('does not touch another process whose PID is in the pid file of containerd', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const sleeper = spawn('sleep', ['600'], { stdio: 'ignore' });
    const pid = Number(sleeper.pid);
    const startTime = Number((await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[19]);
    const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
    await writeFile(containerd.layout.pidFile, JSON.stringify({ pid, startTime, bootId, version: '1.6.0' }));
    assert.equal(await containerd.stop(limit()), 'not-running');
    await containerd.ensureRunning(limit());
    await containerd.teardown({ images: 'keep' }, limit());
    assert.equal(sleeper.exitCode ?? sleeper.signalCode, null);
    sleeper.kill();
  });

  it('neither adopts nor executes a program of another user that has the name and arguments of containerd', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const program = join(dir.path, 'impostor', 'containerd');
    await mkdir(join(dir.path, 'impostor'));
    await copyFile('/bin/busybox', program);
    await chmod(dir.path, 0o755);
    await chmod(program, 0o755);
    const args = ['--config', containerd.layout.config];
    // The program `yes` accepts any arguments and blocks once its pipe is full.
    const impostor = spawn(program, args, { ...asNobody, argv0: 'yes', stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      assert.deepEqual(await containerd.health(limit()), { state: 'not-running' });
      const running = await containerd.ensureRunning(limit());
      assert.equal(running.origin, 'started');
      assert.notEqual(running.pid, impostor.pid);
      await containerd.teardown({ images: 'keep' }, limit());
      assert.ok(await runs(impostor.pid), 'it still runs');
    } finally {
      impostor.kill('SIGKILL');
    }
  });

  it("the teardown of containerd does not kill another user's process that resembles its shim", async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    await containerd.ensureRunning(limit());
    // A shell instead of a program of the repository, which this user may not be able to execute;
    // it runs until its input is closed.
    const args = ['-c', 'read line', 'x', '-address', containerd.layout.socket];
    const impostor = spawn('/bin/sh', args, {
      ...asNobody,
      argv0: 'containerd-shim',
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    try {
      await once(impostor, 'spawn');
      const { problems } = await containerd.teardown({ images: 'keep' }, limit());
      assert.deepEqual(problems, []);
      assert.ok(await runs(impostor.pid), 'it still runs');
    } finally {
      impostor.kill('SIGKILL');
    }
  });

  it('containerd is not started when another process listens on its socket, and that process keeps running', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const server = createServer().listen(containerd.layout.socket);
    await once(server, 'listening');
    await assert.rejects(containerd.ensureRunning(limit()), { code: 'CONTAINERD_SOCKET_TAKEN' });
    await containerd.stop(limit());
    assert(existsSync(containerd.layout.socket));
    server.close();
  });

  it('the start of containerd removes the state of a previous boot, mounts first', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const { subnet } = await containerd.ensureRunning(limit());
    await containerd.stop(limit());
    const { state, instanceFile } = containerd.layout;
    await mkdir(join(state, 'stale'));
    await execute('mount', ['-t', 'tmpfs', 'tmpfs', join(state, 'stale')]);
    await writeFile(join(state, 'stale', 'file'), '');
    const instance = JSON.parse(await readFile(instanceFile, 'utf8'));
    await writeFile(instanceFile, JSON.stringify({ ...instance, bootId: 'an earlier one' }));
    assert.equal((await containerd.ensureRunning(limit())).subnet, subnet);
    assert(!existsSync(join(state, 'stale')));
  });

  it('the size of the log of containerd is limited', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    await containerd.ensureRunning(limit());
    await appendFile(containerd.layout.log, 'x'.repeat(11 << 20));
    await containerd.health(limit());
    assert((await stat(containerd.layout.log)).size < 1 << 20);
    await containerd.stop(limit());
    await appendFile(containerd.layout.log, 'y'.repeat(11 << 20));
    await containerd.ensureRunning(limit());
    assert((await stat(containerd.layout.log)).size < 1 << 20);
    assert((await readFile(`${containerd.layout.log}.1`, 'utf8')).endsWith('y'));
  });
});

describe('a containerd that does not start', { skip: skipReason(), concurrency: false }, () => {
  async function fake(
    dir: TestDirectory,
    body: string,
    readyDeadlineMs = 60_000,
  ): Promise<PrivateContainerd> {
    const program = join(dir.path, 'containerd-fake');
    await writeFile(
      program,
      `#!/bin/sh\n[ "$1" = --version ] && echo containerd x v1.7.0 y && exit 0\n${body}\n`,
    );
    await chmod(program, 0o755);
    return await dir.open({ containerd: program, readyDeadlineMs });
  }

  it('a containerd that exits is reported with the end of its log', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await fake(dir, 'echo the disk is on fire >&2; exit 3');
    await assert.rejects(containerd.ensureRunning(limit()), {
      code: 'CONTAINERD_START',
      message: /as it ended.*the end of .*containerd\.log:\nthe disk is on fire$/s,
    });
    assert.deepEqual(await containerd.health(limit()), { state: 'not-running' });
  });

  it('a containerd that does not become ready is stopped at the deadline', async () => {
    await using dir = await TestDirectory.make();
    const mark = `3${process.pid}`;
    const containerd = await fake(dir, `echo waiting for nothing; exec sleep ${mark}`, 5_000);
    await assert.rejects(containerd.ensureRunning(limit()), {
      code: 'CONTAINERD_START',
      message: /does not answer within 5000 ms: .*waiting for nothing$/s,
    });
    const { processes } = await takeSnapshot();
    assert(!processes.includes(`sleep ${mark}`));
  });

  it('a config that cannot be migrated for containerd is reported as a separate error', async () => {
    await using dir = await TestDirectory.make();
    const program = join(dir.path, 'containerd-old');
    await writeFile(program, '#!/bin/sh\necho containerd x v1.4.3 y\n');
    await chmod(program, 0o755);
    const containerd = await dir.open({ containerd: program });
    await assert.rejects(containerd.ensureRunning(limit()), {
      code: 'CONTAINERD_VERSION',
      message: /found 1\.4\.3/,
    });
  });

  it('the start of containerd reports which programs are missing', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open({ containerd: '/nowhere/containerd' });
    await assert.rejects(containerd.ensureRunning(limit()), {
      code: 'CONTAINERD_TOOLS',
      message: /\/nowhere\/containerd/,
    });
  });

  it('a socket path that is too long is rejected before anything is created', async () => {
    await using dir = await TestDirectory.make();
    const long = join(dir.path, 'x'.repeat(100));
    await assert.rejects(dir.open({ dataDir: long }), { code: 'CONTAINERD_SOCKET_PATH' });
    assert(!existsSync(long));
  });

  it('the wait for containerd ends when it is cancelled', async () => {
    await using dir = await TestDirectory.make();
    const probe = () =>
      Promise.reject(new KubelingError('CRI_UNAVAILABLE', 'containerd does not respond yet'));
    const containerd = await dir.open({ probe, readyDeadlineMs: 60_000 });
    const controller = new AbortController();
    const starting = containerd.ensureRunning(controller.signal);
    const refused = assert.rejects(starting, /the start was cancelled/);
    await until(() => existsSync(containerd.layout.pidFile), 'it runs');
    controller.abort(new Error('the start was cancelled'));
    await refused;
    assert.equal((await (await dir.open()).ensureRunning(limit())).origin, 'adopted');
  });
});

describe('pods of a private containerd', { skip: skipReason(), concurrency: false }, () => {
  it('pods of a private containerd have a separate network with host ports', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const { subnet } = await containerd.ensureRunning(limit());
    const pod = await runPod(containerd, 'alone', 18631);
    assert.equal(pod.ip.split('.').slice(0, 2).join('.'), subnet.split('.').slice(0, 2).join('.'));
    assert.equal(await httpGet(pod.ip), 'alone');
    const address = await hostAddress();
    if (address !== undefined) assert.equal(await httpGet(`${address}:18631`), 'alone');
  });

  it('pods that are removed before the teardown of containerd leave nothing behind', async () => {
    const before = await takeSnapshot();
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const { network } = await containerd.ensureRunning(limit());
    const pod = await runPod(containerd, 'gone', 18632);
    {
      using cri = connect(containerd);
      await cri.stopPodSandbox({ podSandboxId: pod.sandboxId }, limit());
      await cri.removePodSandbox({ podSandboxId: pod.sandboxId }, limit());
    }
    const report = await containerd.teardown({ images: 'remove' }, limit());
    assert.equal(report.containerd, 'stopped');
    assert.deepEqual(report.processes, []);
    assert.deepEqual(report.interfaces, [network]);
    assert.deepEqual(report.problems, []);
    assert.deepEqual(await leftOf(before, [dir.path, network, ...pod.words]), []);
    assert(!existsSync(containerd.layout.dir));
  });

  it('the teardown of containerd removes everything even after containerd and a shim have crashed', async () => {
    const before = await takeSnapshot();
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const { pid, network } = await containerd.ensureRunning(limit());
    const pods = [await runPod(containerd, 'one', 18633), await runPod(containerd, 'two', 18634)];
    const bare = await runContainer(containerd, bareName);
    const words = [dir.path, network, bareName, ...pods.flatMap((pod) => pod.words)];
    await murder(pid);
    await murder(Number((await readFile(`/proc/${bare}/stat`, 'utf8')).split(') ')[1]?.split(' ')[1]));
    assert(isAlive(bare));
    const created = listSnapshot(mentioning(compareSnapshots(before, await takeSnapshot()).added, words));
    for (const part of [
      'processes',
      'mounts',
      'links',
      'networkNamespaces',
      'cgroups',
      'firewallRules',
      'sharedFiles',
    ]) {
      assert(
        created.some((line) => line.startsWith(part)),
        `the test observes ${part}`,
      );
    }
    const report = await containerd.teardown({ images: 'remove' }, limit());
    assert.equal(report.containerd, 'not-running');
    assert.deepEqual(report.problems, []);
    assert(report.processes.some((line) => line.startsWith(`${bare} sleep`)));
    assert.deepEqual(await leftOf(before, words), []);
  });

  it('pods find their images again after a teardown that keeps images', async () => {
    await using dir = await TestDirectory.make();
    const containerd = await dir.open();
    const { subnet } = await containerd.ensureRunning(limit());
    await runContainer(containerd, shortName);
    const report = await containerd.teardown({ images: 'keep' }, limit());
    assert.deepEqual(report.problems, []);
    assert(!existsSync(containerd.layout.state));
    assert.equal((await containerd.ensureRunning(limit())).subnet, subnet);
    const images = await containerd.images();
    assert(await images.has(busyboxImageName, limit()));
    assert(await images.has(pauseImageName, limit()));
    assert(!(await images.has('localhost/kubeling/other:1', limit())));
    assert.equal((await ctr(containerd, 'tasks', 'ls', '-q')).trim(), '');
  });

  it('pods of two data directories do not interfere', async () => {
    await using firstDir = await TestDirectory.make();
    await using secondDir = await TestDirectory.make();
    const [first, second] = [await firstDir.open(), await secondDir.open()];
    const [one, two] = await Promise.all([first.ensureRunning(limit()), second.ensureRunning(limit())]);
    assert.notEqual(one.pid, two.pid);
    assert.notEqual(one.network, two.network);
    assert.notEqual(one.subnet, two.subnet);
    const [podOne, podTwo] = await Promise.all([
      runPod(first, 'first', 18635),
      runPod(second, 'second', 18636),
    ]);
    assert.deepEqual([await httpGet(podOne.ip), await httpGet(podTwo.ip)], ['first', 'second']);
    const words = [secondDir.path, two.network, ...podTwo.words];
    const before = mentioning(await takeSnapshot(), words);
    await murder(one.pid);
    assert.deepEqual((await first.teardown({ images: 'remove' }, limit())).problems, []);
    const { added, removed } = compareSnapshots(before, mentioning(await takeSnapshot(), words));
    assert.deepEqual([...listSnapshot(added), ...listSnapshot(removed)], []);
    assert.equal(await httpGet(podTwo.ip), 'second');
    assert.equal((await second.health(limit())).state, 'serving');
  });

  it('pods run on the native snapshotter where overlays cannot be mounted', async () => {
    await using dir = await TestDirectory.make();
    // The data directory is on an overlay, on which another overlay cannot have its upper layer.
    const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) =>
      join(dir.path, name),
    );
    for (const path of [lower, upper, work, merged]) await mkdir(String(path));
    const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    await execute('mount', ['-t', 'overlay', 'overlay', '-o', options, String(merged)]);
    try {
      const containerd = await dir.open({ dataDir: String(merged) });
      assert.equal((await containerd.ensureRunning(limit())).snapshotter, 'native');
      const pod = await runPod(containerd, 'native', 18637);
      assert.equal(await httpGet(pod.ip), 'native');
      assert.deepEqual((await containerd.teardown({ images: 'remove' }, limit())).problems, []);
    } finally {
      await execute('umount', [String(merged)]);
    }
  });
});

describe('findRuntimeSockets', () => {
  it('reports for each socket whether it accepts connections or is silent or absent', async () => {
    await using dir = await TestDirectory.make();
    const at = (name: string) => join(dir.path, name);
    const server = createServer().listen(at('live.sock'));
    await once(server, 'listening');
    await execute(process.execPath, [
      '-e',
      `require('node:net').createServer().listen(${JSON.stringify(at('stale.sock'))}, () => process.kill(process.pid, 'SIGKILL'))`,
    ]).catch(() => {});
    await writeFile(at('plain'), '');
    await execute('ln', ['-s', at('live.sock'), at('alias.sock')]);
    const paths = ['none.sock', 'stale.sock', 'plain', 'live.sock', 'alias.sock'].map(at);
    const observed = await findRuntimeSockets({ clock, paths }, limit());
    assert.deepEqual(
      observed.map((socket) => `${socket.path.slice(dir.path.length + 1)} ${socket.state}`),
      ['none.sock absent', 'stale.sock silent', 'plain silent', 'live.sock accepting'],
    );
    server.close();
  });
});

/**
 * A non-loopback address of this machine, because host ports are not served on loopback everywhere.
 */
async function hostAddress(): Promise<string | undefined> {
  const { networkInterfaces } = await import('node:os');
  const all = Object.entries(networkInterfaces()).filter(([name]) => !name.startsWith('klg'));
  return all.flatMap(([, list]) => list ?? []).find((each) => each.family === 'IPv4' && !each.internal)
    ?.address;
}
