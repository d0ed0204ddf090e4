import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { NodeLock } from '../../src/cli/service/run-as-service.ts';
import { serviceManager } from '../../src/cli/service/service-manager.ts';
import { collectLogs, realClock } from '../../src/lib/index.ts';
import { withoutLockWaiters } from '../fakes/lock-waiters.ts';
import { until } from '../fakes/until.ts';

const clock = realClock();
const { logger } = collectLogs(clock);
const { signal } = new AbortController();
let dir: string;

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'klg-service-'));
});

after(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** Starts another process that waits for the lock and then holds it, until the test ends it. */
function another(path: string): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', 'flock', '--no-fork', path, 'sleep', '600']);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill();
  await gone;
}

test('waits for the node lock, holds it exclusively and releases it', async () => {
  const path = join(dir, 'lock');
  const holder = another(path);
  let first: NodeLock | undefined;
  try {
    await until('the other process holds it', () => holder.pid !== undefined);
    const late = AbortSignal.timeout(2_000);
    // The other process has started, but may not hold the lock yet. The test acquires and releases
    // the lock until the other process holds it.
    await assert.rejects(async () => {
      for (;;) await (await NodeLock.acquire(path, { clock, logger }, late))[Symbol.asyncDispose]();
    });
    const taking = NodeLock.acquire(path, { clock, logger }, signal);
    await ended(holder);
    first = await taking;
    await assert.rejects(NodeLock.acquire(path, { clock, logger }, AbortSignal.timeout(300)));
  } finally {
    await ended(holder);
    await first?.[Symbol.asyncDispose]();
  }
  await using _second = await NodeLock.acquire(path, { clock, logger }, signal);
});

test('notifies the lock holder when another process waits for the lock', {
  skip: withoutLockWaiters(),
}, async () => {
  const path = join(dir, 'wanted');
  await using lock = await NodeLock.acquire(path, { clock, logger }, signal);
  const contended = lock.contended(AbortSignal.timeout(120_000));
  const other = another(path);
  try {
    assert.match(await contended, /another process waits/);
  } finally {
    await ended(other);
  }
});

test('ignores a process that waits for a lock file with the same inode number on another file system', {
  skip: withoutLockWaiters(),
}, async () => {
  const [own = '', other = ''] = ['own', 'other'].map((name) => join(dir, name));
  const children: ChildProcess[] = [];
  try {
    for (const place of [own, other]) {
      await mkdir(place);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', place]);
    }
    await using lock = await NodeLock.acquire(join(own, 'lock'), { clock, logger }, signal);
    children.push(another(join(other, 'lock')));
    await until('the other file exists', () => existsSync(join(other, 'lock')));
    assert.equal((await stat(join(own, 'lock'))).ino, (await stat(join(other, 'lock'))).ino);
    children.push(another(join(other, 'lock')));
    await until('a process waits', () => / -> /.test(readFileSync('/proc/locks', 'utf8')));
    const contended = lock.contended(AbortSignal.timeout(120_000));
    await rm(join(own, 'lock'));
    assert.match(await contended, /file was deleted/);
  } finally {
    for (const child of children) await ended(child);
    for (const place of [own, other]) spawnSync('umount', ['--lazy', place]);
  }
});

test('notifies the lock holder when the lock file is deleted', async () => {
  const path = join(dir, 'gone');
  await using lock = await NodeLock.acquire(path, { clock, logger }, signal);
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const contended = lock.contended(AbortSignal.timeout(120_000));
  await rm(path);
  assert.match(await contended, /file was deleted/);
});

test('names the lock file in the error when it cannot be opened', async () => {
  await assert.rejects(NodeLock.acquire('/proc/nowhere/lock', { clock, logger }, signal), {
    code: 'NODE_LOCK',
    message: /\/proc\/nowhere\/lock/,
  });
});

/** Receives notifications like a service manager: datagrams with the process ID of their sender. */
const receiver = `
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1])
print("listening", flush=True)
while True:
    data, control, _, _ = s.recvmsg(4096, 256)
    pid = struct.unpack("iii", control[0][2][:12])[0]
    print(pid, data.decode(), flush=True)
`;

test('sends notifications to the service manager from its own process', async () => {
  const socket = join(dir, 'notify');
  const manager = spawn('setpriv', ['--pdeathsig', 'KILL', 'python3', '-c', receiver, socket]);
  let output = '';
  manager.stdout.setEncoding('utf8').on('data', (chunk) => {
    output += chunk;
  });
  try {
    await until('the manager listens', () => output.includes('listening'));
    const reported = serviceManager({ NOTIFY_SOCKET: socket, PATH: process.env['PATH'] }, clock);
    assert.ok(reported);
    await reported.notify('READY=1', signal);
    await until('the manager receives it', () => output.includes('READY=1'));
    assert.match(output, new RegExp(`^${process.pid} READY=1`, 'm'));
  } finally {
    await ended(manager);
  }
});
