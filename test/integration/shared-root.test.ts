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

/** Mounts of its own, none of which is shared, for as long as it is open. */
class PrivateMounts implements Disposable {
  readonly #holder: ChildProcess;

  static async open(): Promise<PrivateMounts> {
    const mounts = new PrivateMounts();
    const own = (pid: number | string) =>
      execFileSync('readlink', [`/proc/${pid}/ns/mnt`], { encoding: 'utf8' });
    const [here, pid] = [own('self'), mounts.#holder.pid ?? 0];
    await eventually('mounts of its own', async () =>
      own(pid) !== here && mounts.list().every(({ isShared }) => !isShared) ? true : undefined,
    );
    return mounts;
  }

  private constructor() {
    this.#holder = spawn('unshare', ['--mount', '--propagation', 'private', 'sleep', 'infinity']);
  }

  /** What makes a program run in there. */
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

describe('the root directory where no mount is shared', { skip, timeout: 240_000 }, () => {
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

  /** As each start of a kubelet does; answers what is told of it. */
  const prepare = (rootDir: string) => JSON.parse(mounts.run(process.execPath, preparer, 'share', rootDir));

  it('is shared once, however often the node starts, and taken away again', () => {
    const root = join(folder, 'plain');
    for (let start = 0; start < 3; start++) assert.deepEqual(prepare(root), []);
    assert.deepEqual(
      mounts.at(root).map(({ isShared }) => isShared),
      [true],
    );
    mounts.run(process.execPath, preparer, 'unshare', root);
    assert.deepEqual(mounts.at(root), []);
  });

  it('is shared after a start that was killed half way', () => {
    const root = join(folder, 'half');
    mounts.run('mkdir', root);
    mounts.run('mount', '--bind', root, root);
    assert.deepEqual(prepare(root), []);
    assert.deepEqual(
      mounts.at(root).map(({ isShared }) => isShared),
      [true],
    );
  });

  it('is shared where a link leads to it', () => {
    const root = join(folder, 'behind');
    mounts.run('mkdir', root);
    mounts.run('ln', '-s', root, join(folder, 'link'));
    for (let start = 0; start < 2; start++) assert.deepEqual(prepare(join(folder, 'link')), []);
    assert.equal(mounts.at(root).length, 1);
  });

  it('covers nothing that is mounted below already, and says so', () => {
    const root = join(folder, 'used');
    const inside = join(root, 'pods');
    mounts.run('mkdir', '-p', inside);
    mounts.run('mount', '-t', 'tmpfs', 'none', inside);
    const [event, ...others] = prepare(root);
    assert.deepEqual(others, []);
    assert.equal(event.reason, 'RootDirectoryNotShared');
    assert.match(event.message, new RegExp(`not visible to others: ${inside} is mounted below it`));
    assert.equal(mounts.at(root).length, 0);
    mounts.run('umount', inside);
    assert.deepEqual(prepare(root), []);
    assert.equal(mounts.at(root).length, 1);
  });

  it('is told of where nobody may mount', () => {
    const root = join(folder, 'refused');
    const said = mounts.run(
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
    const [event] = JSON.parse(said);
    assert.equal(event?.reason, 'RootDirectoryNotShared');
    assert.match(event?.message, /Cannot run mount --bind /);
  });

  it('lets a container mount for others of its pod', async () => {
    await using node = await KubelingNode.open(undefined, ['--local-api=false'], mounts.words);
    const root = join(node.dataDir, 'kubelet');
    const volumeMounts = (mountPropagation: string) => [
      { name: 'data', mountPath: '/data', mountPropagation },
    ];
    const giving = 'mkdir -p /data/own && mount -t tmpfs none /data/own && touch /data/own/here; sleep 1000';
    const taking = 'until test -e /data/own/here; do sleep 0.05; done; sleep 1000';
    const seen = { exec: { command: ['test', '-e', '/data/own/here'] }, periodSeconds: 1 };
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
            readinessProbe: seen,
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
      'the machine sees it once',
    );
    await node.end('SIGKILL');
    await node.start();
    assert.equal(mounts.at(root).length, 1, 'a start binds nothing anew');
    await node.take('shared.json');
    await node.until('the pod to be gone', async () => (await node.pods()).length === 0);
    await node.until('its mounts to be gone', async () =>
      mounts.list().every(({ mountPoint }) => !mountPoint.startsWith(`${root}/`)),
    );
    assert.deepEqual(await node.leave(), []);
    assert.deepEqual(
      mounts.list().filter(({ mountPoint }) => mountPoint.startsWith(node.dataDir)),
      [],
    );
  });
});
