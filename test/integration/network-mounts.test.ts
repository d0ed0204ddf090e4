import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, rmdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { isKind, KubelingError, realClock } from '../../src/lib/index.ts';
import { HostNetworkMounts } from '../../src/volumes/index.ts';
import { eventually } from '../kubeling-node.ts';
import { FakeNfs } from '../nfs/fake-nfs.ts';

const { signal } = new AbortController();
const limits = { mountMs: 60_000, unmountMs: 60_000, forceMs: 60_000, checkMs: 60_000 };
const short = 3_000;
const isLate = (error: unknown) => isKind(error, 'DeadlineExceeded');

/**
 * The mount directory is on a real file system whose fake server can stop responding: every process
 * that accesses it is then stuck in the kernel.
 */
describe('network mounts', { timeout: 300_000 }, () => {
  let folder: string;
  let standIn: FakeNfs;
  let count = 0;
  let reported = 0;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'klg-nfs-'));
    standIn = new FakeNfs(folder);
  });

  beforeEach(() => {
    standIn.mounting('works');
    standIn.unmounting('works');
    standIn.server('answers');
  });

  after(async () => {
    standIn.server('answers');
    const left = readFileSync('/proc/self/mountinfo', 'utf8').includes(folder);
    await rm(folder, { recursive: true, force: true });
    assert.equal(left, false);
  });

  const mounts = (changes: Partial<typeof limits> = {}) =>
    new HostNetworkMounts({
      clock: realClock(),
      mounted: () => void reported++,
      limits: { ...limits, ...changes },
      path: standIn.path,
    });

  async function place(): Promise<string> {
    const directory = join(folder, `place-${++count}`);
    await mkdir(directory);
    return directory;
  }

  const nfs = (directory: string, options: readonly string[] = []) =>
    ({ type: 'nfs', source: 'server:/export', directory, options }) as const;

  /** A process that accesses a server that has never responded can still be killed. */
  const answering = async (directory: string) =>
    assert.equal(await mounts().check(directory, signal), 'answers');

  it('network mounts are mounted with their options, inspected and unmounted', async () => {
    const [host, directory] = [mounts(), await place()];
    assert.equal(await host.isMounted(directory), false);
    reported = 0;
    await host.mount(nfs(directory, ['hard', 'ro']), signal);
    assert.equal(reported, 1);
    assert.deepEqual(standIn.calls('mount', directory), [
      `mount -t nfs -o hard,ro -- server:/export ${directory}`,
    ]);
    assert.equal(await host.isMounted(directory), true);
    assert.equal(await host.check(directory, signal), 'answers');
    assert.equal(readFileSync(join(directory, 'canary'), 'utf8'), 'served\n');
    assert.equal(await host.unmount(directory, 'plain', signal), 'done');
    assert.equal(await host.isMounted(directory), false);
    assert.equal(await host.unmount(directory, 'plain', signal), 'done');
  });

  it('a failed mount reports the command and its output', async () => {
    const [host, directory] = [mounts(), await place()];
    standIn.mounting('fail');
    await assert.rejects(
      host.mount(nfs(directory), signal),
      new KubelingError(
        'VOLUME_UNUSABLE',
        `mount failed: mount.nfs: access denied by server while mounting (mount -t nfs -- server:/export ${directory})`,
      ),
    );
  });

  it('a network mount is not unmounted while it is in use', async () => {
    const [host, directory] = [mounts(), await place()];
    await host.mount(nfs(directory), signal);
    const inside = process.cwd();
    process.chdir(directory);
    try {
      assert.equal(await host.unmount(directory, 'plain', signal), 'busy');
    } finally {
      process.chdir(inside);
    }
    assert.equal(await host.unmount(directory, 'plain', signal), 'done');
  });

  it('mounting and unmounting time out when mount or umount hangs', async () => {
    const [host, directory] = [mounts({ mountMs: short, unmountMs: short }), await place()];
    standIn.mounting('hang');
    await assert.rejects(host.mount(nfs(directory), signal), isLate);
    assert.equal(await host.isMounted(directory), false);
    standIn.mounting('works');
    await mounts().mount(nfs(directory), signal);
    standIn.unmounting('hang');
    await assert.rejects(host.unmount(directory, 'plain', signal), isLate);
    assert.equal(await host.isMounted(directory), true);
    assert.equal(await host.unmount(directory, 'force', signal), 'done');
    assert.equal(await host.isMounted(directory), false);
  });

  it('an unresponsive server blocks one unkillable program and nothing else', async () => {
    const [host, directory] = [mounts({ checkMs: short }), await place()];
    await host.mount(nfs(directory), signal);
    await answering(directory);
    standIn.server('silent');
    await assert.rejects(host.check(directory, signal), isLate);
    assert.equal(host.stuck, 1);
    // No second program is started while the first one is stuck.
    await assert.rejects(host.check(directory, signal), /blocked in the kernel and cannot be killed/);
    assert.equal(host.stuck, 1);
    // Makes more file system calls than this process has threads, to prove that no thread is
    // blocked.
    for (let left = 8; left > 0; left--) await stat(folder);
    assert.equal(await host.isMounted(directory), true);
    standIn.server('answers');
    await eventually('the program to exit', async () => (host.stuck === 0 ? true : undefined));
    await answering(directory);
    assert.equal(await host.unmount(directory, 'plain', signal), 'done');
  });

  it('a forced unmount succeeds when the server is unresponsive, and releases stuck processes', async () => {
    const [host, directory] = [mounts({ checkMs: short }), await place()];
    await host.mount(nfs(directory), signal);
    await answering(directory);
    standIn.server('silent');
    await assert.rejects(host.check(directory, signal), isLate);
    assert.equal(host.stuck, 1);
    const unmount = async () =>
      (await host.unmount(directory, 'force', signal)) === 'done' ? true : undefined;
    await eventually('it to be unmounted', unmount);
    await eventually('the program to exit', async () => (host.stuck === 0 ? true : undefined));
    assert.equal(await host.isMounted(directory), false);
  });

  it('a lazy unmount succeeds when the server is unresponsive and a process uses the mount', async () => {
    const [host, directory] = [mounts({ checkMs: short, unmountMs: short }), await place()];
    await host.mount(nfs(directory), signal);
    await answering(directory);
    const inside = process.cwd();
    process.chdir(directory);
    try {
      standIn.server('silent');
      await assert.rejects(host.check(directory, signal), isLate);
      // A hanging umount simulates other processes that are stuck in the mount.
      standIn.unmounting('hang');
      await assert.rejects(host.unmount(directory, 'plain', signal), isLate);
      assert.equal(await host.isMounted(directory), true);
      assert.equal(await host.unmount(directory, 'lazy', signal), 'done');
      assert.equal(await host.isMounted(directory), false);
      assert.deepEqual(
        standIn.calls('umount', directory).at(-1),
        `umount -l --no-canonicalize -- ${directory}`,
      );
    } finally {
      process.chdir(inside);
    }
    standIn.server('answers');
    await eventually('all programs to exit', async () => (host.stuck === 0 ? true : undefined));
    await rmdir(directory);
  });

  it('a network mount whose server has exited is reported as broken', async () => {
    const [host, directory] = [mounts({ checkMs: short }), await place()];
    await host.mount(nfs(directory), signal);
    standIn.server('gone');
    const isBroken = async () => ((await host.check(directory, signal)) === 'broken' ? true : undefined);
    await eventually('access to it to fail', isBroken);
    assert.equal(await host.unmount(directory, 'plain', signal), 'done');
  });
});
