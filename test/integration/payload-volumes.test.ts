import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  lstat,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  statfs,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Volume } from '../../src/kinds/index.ts';
import { randomInt, realClock, seededRandom } from '../../src/lib/index.ts';
import { HostVolumeFiles } from '../../src/volumes/index.ts';
import { LoopMonitor } from '../chaos/loop-monitor.ts';
import { killedPod, PayloadWorld, podWith, worldUid } from '../fakes/payload-world.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const tmpfsType = 0x01021994;

const configMap: Volume = { name: 'cm', configMap: { name: 'cm', defaultMode: 0o644 } };
const secret: Volume = { name: 'sec', secret: { secretName: 's', defaultMode: 0o400 } };
const downward: Volume = {
  name: 'down',
  downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
};
const access: Volume = {
  name: 'access',
  projected: {
    defaultMode: 0o644,
    sources: [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
      { configMap: { name: 'root-ca', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { downwardAPI: { items: [{ path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } }] } },
    ],
  },
};

describe('payload volumes (configMap, secret, projected) on a real machine', { skip: notRoot }, () => {
  let root: string;
  let environment: PayloadWorld;
  const volume = (kind: string, name: string) =>
    join(root, 'pods', worldUid, 'volumes', `kubernetes.io~${kind}`, name);
  const mounts = async () =>
    (await readFile('/proc/self/mounts', 'utf8')).split('\n').filter((line) => line.includes(root));
  const bits = async (path: string) => ((await stat(path)).mode & 0o7777).toString(8);

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-payload-'));
    environment = new PayloadWorld(new HostVolumeFiles(realClock()), join(root, 'pods'), realClock());
    environment.setConfigMap('cm', { a: 'one', b: 'two' });
    environment.setConfigMap('root-ca', { 'ca.crt': 'CERTIFICATE' });
    environment.setSecret('s', { password: 'hush' });
  });
  afterEach(async () => {
    for (const line of (await mounts()).toReversed()) execFileSync('umount', [line.split(' ')[1] ?? '']);
    await rm(root, { recursive: true });
  });

  it('preparing a volume replaces foreign files, directories and links at the paths that it needs for new content', async () => {
    const directory = volume('configmap', 'cm');
    const outside = join(root, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'canary'), 'alive');
    const hindrances: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
      directory: async (path) => {
        await mkdir(join(path, 'deep'), { recursive: true });
        await symlink(outside, join(path, 'deep/link'));
      },
      file: (path) => writeFile(path, ''),
      link: (path) => symlink(outside, path),
    };
    await environment.volumes().prepare(podWith([configMap]), environment.signal);
    for (const name of ['..data_tmp', '..2026_01_31_00_00_00.1'])
      for (const [kind, put] of Object.entries(hindrances)) {
        await put(join(directory, name));
        const value = `${name} ${kind}`;
        environment.setConfigMap('cm', { a: value });
        assert.deepEqual(
          await environment.volumes().prepare(podWith([configMap]), environment.signal),
          [],
          value,
        );
        assert.equal(await readFile(join(directory, 'a'), 'utf8'), value);
        assert.ok(!(await readdir(directory)).includes(name), value);
      }
    await rm(directory, { recursive: true });
    await mkdir(join(directory, '..data'), { recursive: true });
    assert.deepEqual(await environment.volumes().prepare(podWith([configMap]), environment.signal), []);
    assert.equal(await readFile(join(outside, 'canary'), 'utf8'), 'alive');
  });

  it('writing, replacing and removing thousands of deep paths does not block the event loop', async () => {
    const items = Array.from({ length: 500 }, (_, index) => ({
      key: 'k',
      path: `${index}${'/a'.repeat(31)}`,
    }));
    const pod = podWith([{ name: 'sec', secret: { secretName: 'deep', items } }]);
    const volumes = environment.volumes();
    using monitor = new LoopMonitor();
    for (const value of ['one', 'two', 'three']) {
      environment.setSecret('deep', { k: value });
      assert.deepEqual(await volumes.prepare(pod, environment.signal), []);
      const path = join(volume('secret', 'sec'), items[499]?.path ?? '');
      assert.equal(await readFile(path, 'utf8'), value);
    }
    assert.match((await mounts()).join(), /nr_inodes=65600/);
    // A restarted kubelet compares the files on disk with the desired content.
    assert.deepEqual(await environment.volumes().prepare(pod, environment.signal), []);
    await volumes.remove(worldUid, environment.signal);
    const longestMs = monitor.takeLongestMs();
    assert.ok(longestMs < 250, `one turn took ${longestMs} ms of CPU time`);
  });

  it('a volume with paths of more than 32 components or too many directories is rejected', async () => {
    environment.setSecret('s', { password: 'hush' });
    const messageOf = async (count: number, steps: number) => {
      const items = Array.from({ length: count }, (_, index) => ({
        key: 'password',
        path: `${index}${'/a'.repeat(steps - 1)}`,
      }));
      const pod = podWith([{ name: 'sec', secret: { secretName: 's', items } }]);
      return (await environment.volumes().prepare(pod, environment.signal)).map(({ message }) => message);
    };
    assert.match((await messageOf(1, 33)).join(), /must have at most 32 steps/);
    assert.deepEqual(await messageOf(600, 32), [
      'content of the volume must not exceed 8 MiB in 16384 files and directories',
    ]);
  });

  it('a volume keeps its content while the disk is full, reports the same error each time and is updated later', async () => {
    const directory = volume('configmap', 'cm');
    await mkdir(directory, { recursive: true });
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', directory]);
    const volumes = environment.volumes();
    const make = () => volumes.prepare(podWith([configMap]), environment.signal);
    assert.deepEqual(await make(), []);
    environment.setConfigMap('cm', { a: 'x'.repeat(200_000) });
    const message = 'Cannot write the new content: ENOSPC: no space left on device';
    for (let tries = 0; tries < 3; tries++)
      assert.deepEqual(await make(), [{ volume: 'cm', message, content: 'earlier' }]);
    assert.equal(await readFile(join(directory, 'a'), 'utf8'), 'one');
    environment.setConfigMap('cm', { a: 'fits' });
    assert.deepEqual(await make(), []);
    assert.equal(await readFile(join(directory, 'a'), 'utf8'), 'fits');
  });

  it('volume files have the right content, modes and file systems', async () => {
    const volumes = environment.volumes();
    const pod = podWith([configMap, secret, downward, access], {}, { app: 'web' });
    assert.deepEqual(await volumes.prepare(pod, environment.signal), []);
    assert.equal(await readFile(join(volume('configmap', 'cm'), 'a'), 'utf8'), 'one');
    assert.equal(await readFile(join(volume('secret', 'sec'), 'password'), 'utf8'), 'hush');
    assert.equal(await readFile(join(volume('downward-api', 'down'), 'labels'), 'utf8'), 'app="web"');
    const files = await Promise.all(
      ['token', 'ca.crt', 'namespace'].map((name) =>
        readFile(join(volume('projected', 'access'), name), 'utf8'),
      ),
    );
    assert.deepEqual(files, ['token-1', 'CERTIFICATE', 'ns']);
    assert.equal(await bits(join(volume('secret', 'sec'), 'password')), '400');
    assert.equal(await bits(volume('configmap', 'cm')), '777');
    assert.equal(await bits(volume('secret', 'sec')), '1777');
    assert.match(await readlink(join(volume('configmap', 'cm'), '..data')), /^\.\.\d{4}(_\d\d){5}\.\d+$/);
    for (const path of [
      volume('secret', 'sec'),
      volume('projected', 'access'),
      volume('downward-api', 'down'),
    ]) {
      const facts = await statfs(path);
      assert.deepEqual([facts.type, facts.blocks * facts.bsize], [tmpfsType, 64 * 2 ** 20]);
    }
    assert.equal((await mounts()).length, 3);
    const marker = join(root, 'pods', worldUid, 'plugins/kubernetes.io~empty-dir/wrapped_sec/ready');
    assert.equal((await stat(marker)).size, 0);
    await volumes.remove(worldUid, environment.signal);
    assert.deepEqual(await mounts(), []);
    assert.deepEqual(await readdir(join(root, 'pods', worldUid, 'volumes')), []);
    await volumes.remove(worldUid, environment.signal);
  });

  it("volume files belong to the pod's fsGroup, and a token file belongs to the pod's user", async () => {
    const spec = { securityContext: { fsGroup: 4321, runAsUser: 1234 } };
    const pod = podWith([configMap, secret, access], spec);
    assert.deepEqual(await environment.volumes().prepare(pod, environment.signal), []);
    const token = await stat(join(volume('projected', 'access'), 'token'));
    assert.deepEqual([token.uid, token.gid, token.mode & 0o7777], [1234, 4321, 0o640]);
    const password = await stat(join(volume('secret', 'sec'), 'password'));
    assert.deepEqual([password.uid, password.gid, password.mode & 0o7777], [0, 4321, 0o440]);
    const directory = await stat(volume('secret', 'sec'));
    assert.deepEqual([directory.gid, directory.mode & 0o7777], [4321, 0o3777]);
    const plain = await stat(join(volume('configmap', 'cm'), 'a'));
    assert.deepEqual([plain.gid, plain.mode & 0o7777], [4321, 0o644]);
  });

  it('a volume changes atomically: a reader never finds a missing or partly written file', async () => {
    const volumes = environment.volumes();
    const pod = podWith([configMap]);
    await volumes.prepare(pod, environment.signal);
    let isOver = false;
    let looks = 0;
    const reader = (async () => {
      while (!isOver) {
        const text = await readFile(join(volume('configmap', 'cm'), 'a'), 'utf8');
        assert.match(text, /^(?:one|x{20}\d+)$/);
        looks++;
      }
    })();
    for (let turn = 0; turn < 200; turn++) {
      const text = `${'x'.repeat(20)}${turn}`;
      environment.setConfigMap('cm', { a: text, b: text });
      assert.deepEqual(await volumes.prepare(pod, environment.signal), []);
    }
    isOver = true;
    await reader;
    assert.ok(looks > 10, `${looks} looks`);
    await volumes.prepare(pod, environment.signal);
    const hidden = (await readdir(volume('configmap', 'cm'))).filter((name) => name.startsWith('..'));
    assert.equal(hidden.length, 2);
  });

  it('a restarted kubelet adopts existing volumes without mounting or writing them again', async () => {
    const pod = podWith([secret]);
    await environment.volumes().prepare(pod, environment.signal);
    const before = await readlink(join(volume('secret', 'sec'), '..data'));
    assert.deepEqual(await environment.volumes().prepare(pod, environment.signal), []);
    assert.equal(await readlink(join(volume('secret', 'sec'), '..data')), before);
    assert.equal((await mounts()).length, 1);
    await environment.volumes().remove(worldUid, environment.signal);
    assert.deepEqual(await mounts(), []);
  });

  it('a volume with a foreign mount in it is not removed until the foreign mount is unmounted', async () => {
    const foreign = join(root, 'foreign');
    await mkdir(foreign);
    await writeFile(join(foreign, 'canary'), 'alive');
    const volumes = environment.volumes();
    await volumes.prepare(podWith([configMap]), environment.signal);
    const inside = join(volume('configmap', 'cm'), 'inside');
    await mkdir(inside);
    execFileSync('mount', ['--bind', foreign, inside]);
    await assert.rejects(volumes.remove(worldUid, environment.signal), {
      code: 'VOLUME_REMOVE',
      message: `cannot delete directory ${inside}: it is a mount point`,
    });
    assert.equal(await readFile(join(foreign, 'canary'), 'utf8'), 'alive');
    execFileSync('umount', [inside]);
    await volumes.remove(worldUid, environment.signal);
    await assert.rejects(lstat(volume('configmap', 'cm')), { code: 'ENOENT' });
    assert.equal(await readFile(join(foreign, 'canary'), 'utf8'), 'alive');
  });

  it('a volume is not written or removed through a symbolic link', async () => {
    const foreign = join(root, 'foreign');
    await mkdir(join(foreign, 'cm'), { recursive: true });
    await writeFile(join(foreign, 'cm', 'canary'), 'alive');
    await mkdir(join(root, 'pods', worldUid, 'volumes'), { recursive: true });
    await symlink(foreign, join(root, 'pods', worldUid, 'volumes', 'kubernetes.io~configmap'));
    const [problem] = await environment.volumes().prepare(podWith([configMap]), environment.signal);
    assert.match(problem?.message ?? '', /kubernetes\.io~configmap is not a directory$/);
    await assert.rejects(environment.volumes().remove(worldUid, environment.signal), {
      code: 'VOLUME_REMOVE',
    });
    assert.deepEqual(await readdir(join(foreign, 'cm')), ['canary']);
  });

  it('CVE-2017-1002102: a planted symbolic link does not redirect writes or removals', async () => {
    const foreign = join(root, 'foreign');
    const at = volume('configmap', 'cm');
    const targets = [foreign, '../../../../../../foreign', '..', '.', '../../../../../../foreign/a'];
    for (const target of targets) {
      await mkdir(foreign, { recursive: true });
      for (const name of ['a', 'canary']) await writeFile(join(foreign, name), 'alive');
      const volumes = environment.volumes();
      environment.setConfigMap('cm', { a: 'one', b: 'two' });
      assert.deepEqual(await volumes.prepare(podWith([configMap]), environment.signal), []);
      for (const name of ['..data', '..data_tmp', 'a', '..2000_01_01_00_00_00.1']) {
        await rm(join(at, name), { force: true });
        await symlink(target, join(at, name));
      }
      environment.setConfigMap('cm', { a: 'three' });
      const problems = await environment.volumes().prepare(podWith([configMap]), environment.signal);
      if (problems.length === 0) assert.equal(await readFile(join(at, 'a'), 'utf8'), 'three', target);
      await environment.volumes().remove(worldUid, environment.signal);
      for (const name of ['a', 'canary'])
        assert.equal(await readFile(join(foreign, name), 'utf8'), 'alive', target);
    }
  });

  it('removing a volume that stays in use fails at the removal deadline with an error', async () => {
    const volumes = environment.volumes();
    await volumes.prepare(podWith([secret]), environment.signal);
    await using file = await open(join(volume('secret', 'sec'), 'password'));
    await assert.rejects(volumes.remove(worldUid, environment.signal), {
      code: 'VOLUME_REMOVE',
      message: `${volume('secret', 'sec')} is still in use`,
    });
    await file.close();
    await volumes.remove(worldUid, environment.signal);
    assert.deepEqual(await mounts(), []);
  });

  it('secrets are never written to the disk', async () => {
    const canary = 'canary-5b1f0e';
    environment.setSecret('s', { password: canary });
    await environment.volumes().prepare(podWith([secret, access]), environment.signal);
    for (const line of (await mounts()).toReversed()) execFileSync('umount', [line.split(' ')[1] ?? '']);
    const found = await readdir(root, { recursive: true, withFileTypes: true });
    const files = found.filter((entry) => entry.isFile());
    const texts = await Promise.all(
      files.map(({ parentPath, name }) => readFile(join(parentPath, name), 'utf8')),
    );
    assert.deepEqual(
      files.map(({ name }) => name),
      ['ready', 'ready'],
    );
    assert.ok(texts.every((text) => !text.includes(canary)));
  });

  it('a new process completes volumes after the previous one was killed at any moment', {
    timeout: 120_000,
  }, async () => {
    const random = seededRandom(7);
    const worker = join(import.meta.dirname, 'payload-worker.ts');
    for (let round = 0; round < 12; round++) {
      const victim = spawn(process.execPath, [worker, join(root, 'pods')], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      await once(victim.stdout, 'data');
      await realClock().sleep(randomInt(random, 150), environment.signal);
      victim.kill('SIGKILL');
      await once(victim, 'exit');
      const observed = await readFile(join(volume('configmap', 'cm'), 'always'), 'utf8').catch(() => '0-0');
      assert.match(observed, /^(?:\d+-\d|last)$/);
      // A mount program that the killed process started may still be running.
      await realClock().sleep(50, environment.signal);
      environment.setAll('last');
      const volumes = environment.volumes();
      assert.deepEqual(await volumes.prepare(killedPod(), environment.signal), []);
      await volumes.prepare(killedPod(), environment.signal);
      for (const [kind, name] of [
        ['configmap', 'cm'],
        ['secret', 's'],
      ] as const) {
        const names = await readdir(volume(kind, name));
        assert.deepEqual(names.filter((each) => !each.startsWith('..')).sort(), ['always', 'only-last']);
        assert.equal(names.length, 4);
        assert.equal(await readFile(join(volume(kind, name), 'always'), 'utf8'), 'last');
      }
      assert.equal((await mounts()).length, 2);
      if (round % 2 === 0) await environment.volumes().remove(worldUid, environment.signal);
    }
    await environment.volumes().remove(worldUid, environment.signal);
    assert.deepEqual(await mounts(), []);
    assert.deepEqual(await readdir(join(root, 'pods', worldUid, 'volumes')), []);
  });
});
