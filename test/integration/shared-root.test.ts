import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { busyboxImageName } from '../../src/containerd/index.ts';
import { parseMountinfo } from '../../src/lib/index.ts';
import { eventually, isRunning, KubelingNode } from '../kubeling-node.ts';

const skip = process.getuid?.() === 0 ? false : 'only root mounts';
const image = busyboxImageName;
const preparer = fileURLToPath(new URL('root-preparer.ts', import.meta.url));

/** A separate mount namespace without shared mounts; it exists until it is disposed. */
class PrivateMounts implements Disposable {
  readonly #holder: ChildProcess;

  static async open(): Promise<PrivateMounts> {
    const mounts = new PrivateMounts();
    const own = (pid: number | string) =>
      execFileSync('readlink', [`/proc/${pid}/ns/mnt`], { encoding: 'utf8' });
    const [here, pid] = [own('self'), mounts.#holder.pid ?? 0];
    await eventually('a separate mount namespace', async () =>
      own(pid) !== here && mounts.list().every(({ isShared }) => !isShared) ? true : undefined,
    );
    return mounts;
  }

  private constructor() {
    this.#holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sleep', 'infinity']);
  }

  /** The command prefix that runs a program in the mount namespace. */
  get words(): readonly string[] {
    return ['nsenter', '--target', String(this.#holder.pid), '--mount', '--'];
  }

  run(...command: readonly string[]): string {
    const [file = '', ...args] = [...this.words, ...command];
    return execFileSync(file, args, { encoding: 'utf8' });
  }

  list() {
    return parseMountinfo(readFileSync(`/proc/${this.#holder.pid}/mountinfo`, 'utf8'));
  }

  at(path: string) {
    return this.list().filter(({ mountPoint }) => mountPoint === path);
  }

  [Symbol.dispose](): void {
    this.#holder.kill('SIGKILL');
  }
}

describe('root directory without shared mounts', { skip, timeout: 240_000 }, () => {
  let mounts: PrivateMounts;
  let folder: string;

  before(async () => {
    mounts = await PrivateMounts.open();
    folder = mkdtempSync(join(tmpdir(), 'klg-root-'));
  });

  after(() => {
    mounts?.[Symbol.dispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Prepares the root directory as each start of a kubelet does; returns the resulting reports. */
  const prepare = (rootDir: string) => JSON.parse(mounts.run(process.execPath, preparer, 'share', rootDir));

  it('the root directory is made shared once, however often the node starts, and is unmounted again', () => {
    const root = join(folder, 'plain');
    for (let start = 0; start < 3; start++) assert.deepEqual(prepare(root), []);
    assert.deepEqual(
      mounts.at(root).map(({ isShared }) => isShared),
      [true],
    );
    mounts.run(process.execPath, preparer, 'unshare', root);
    assert.deepEqual(mounts.at(root), []);
  });

  it('the root directory is made shared after a start that was killed halfway', () => {
    const root = join(folder, 'half');
    mounts.run('mkdir', root);
    mounts.run('mount', '--bind', root, root);
    assert.deepEqual(prepare(root), []);
    assert.deepEqual(
      mounts.at(root).map(({ isShared }) => isShared),
      [true],
    );
  });

  it('a root directory reached through a link is made shared', () => {
    const root = join(folder, 'behind');
    mounts.run('mkdir', root);
    mounts.run('ln', '-s', root, join(folder, 'link'));
    for (let start = 0; start < 2; start++) assert.deepEqual(prepare(join(folder, 'link')), []);
    assert.equal(mounts.at(root).length, 1);
  });

  it('a root directory with mounts below it is not mounted over, and this is reported', () => {
    const root = join(folder, 'used');
    const inside = join(root, 'pods');
    mounts.run('mkdir', '-p', inside);
    mounts.run('mount', '-t', 'tmpfs', 'none', inside);
    const [event, ...rest] = prepare(root);
    assert.deepEqual(rest, []);
    assert.equal(event.reason, 'RootDirectoryNotShared');
    assert.match(event.message, new RegExp(`not visible to others: ${inside} is mounted below it`));
    assert.equal(mounts.at(root).length, 0);
    mounts.run('umount', inside);
    assert.deepEqual(prepare(root), []);
    assert.equal(mounts.at(root).length, 1);
  });

  it('a root directory that is not shared is reported when mounting is not permitted', () => {
    const root = join(folder, 'refused');
    const output = mounts.run(
      'setpriv',
      '--bounding-set',
      '-sys_admin',
      '--inh-caps',
      '-all',
      '--',
      process.execPath,
      preparer,
      'share',
      root,
    );
    const [event] = JSON.parse(output);
    assert.equal(event?.reason, 'RootDirectoryNotShared');
    assert.match(event?.message, /Cannot run mount --bind /);
  });

  it('containers propagate mounts to other containers of their pod', async () => {
    await using node = await KubelingNode.open(undefined, ['--local-api=false'], mounts.words);
    const root = join(node.dataDir, 'kubelet');
    const volumeMounts = (mountPropagation: string) => [
      { name: 'data', mountPath: '/data', mountPropagation },
    ];
    const giving = 'mkdir -p /data/own && mount -t tmpfs none /data/own && touch /data/own/here; sleep 1000';
    const taking = 'until test -e /data/own/here; do sleep 0.05; done; sleep 1000';
    const observed = { exec: { command: ['test', '-e', '/data/own/here'] }, periodSeconds: 1 };
    await node.put('shared.json', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'shared' },
      spec: {
        terminationGracePeriodSeconds: 0,
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [
          {
            name: 'gives',
            image,
            command: ['sh', '-c', giving],
            securityContext: { privileged: true },
            volumeMounts: volumeMounts('Bidirectional'),
          },
          {
            name: 'takes',
            image,
            command: ['sh', '-c', taking],
            readinessProbe: observed,
            volumeMounts: volumeMounts('HostToContainer'),
          },
        ],
      },
    });
    await node.podIs(
      'shared',
      'ready',
      ({ containerStatuses = [] }) =>
        containerStatuses.length === 2 &&
        containerStatuses.every((status) => isRunning(status) && status.ready),
    );
    assert.equal(
      mounts
        .list()
        .filter(({ mountPoint }) => mountPoint.startsWith(`${root}/`) && mountPoint.endsWith('/data/own'))
        .length,
      1,
      'the machine has one mount of it',
    );
    await node.end('SIGKILL');
    await node.start();
    assert.equal(mounts.at(root).length, 1, 'a start adds no bind mount');
    await node.take('shared.json');
    await node.until('the pod to be deleted', async () => (await node.pods()).length === 0);
    await node.until('its mounts to be removed', async () =>
      mounts.list().every(({ mountPoint }) => !mountPoint.startsWith(`${root}/`)),
    );
    assert.deepEqual(await node.leave(), []);
    assert.deepEqual(
      mounts.list().filter(({ mountPoint }) => mountPoint.startsWith(node.dataDir)),
      [],
    );
  });
});
