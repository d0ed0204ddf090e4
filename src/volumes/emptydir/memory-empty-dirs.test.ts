import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MemoryVolumeFiles } from '../../../test/fakes/memory-volume-files.ts';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import type { Container, EmptyDirVolumeSource, PodSpec } from '../../kinds/index.ts';
import { parseQuantity } from '../../lib/index.ts';
import type { Pod, ResourceList } from '../../pods/index.ts';
import type { VolumeFiles } from '../files/volume-files.ts';
import type { StorageObserver } from '../manager/volume-metrics.ts';
import { MemoryEmptyDirs } from './memory-empty-dirs.ts';

const directory = `/pods/${worldUid}/volumes/kubernetes.io~empty-dir/v`;
const marker = `/pods/${worldUid}/plugins/kubernetes.io~empty-dir/v`;
const mebibyte = 2n ** 20n;
const { signal } = new AbortController();

/** Creates MemoryEmptyDirs as after a kubelet restart. */
function emptyDirs(
  files: VolumeFiles,
  clock = new VirtualClock(),
  allocatable: ResourceList = new Map([['memory', parseQuantity('64Mi')]]),
) {
  return new MemoryEmptyDirs({ podsDir: '/pods', files, clock, allocatable: () => allocatable });
}

function podOn(emptyDir: EmptyDirVolumeSource, spec: Partial<PodSpec> = {}): Pod {
  return podWith([{ name: 'v', emptyDir }], spec);
}

async function make(pod: Pod, files: VolumeFiles = new MemoryVolumeFiles()): Promise<void> {
  for (const volume of pod.spec.volumes ?? []) await emptyDirs(files).create(pod, volume, signal);
}

function asking(resources: Container['resources'], name = 'main'): Container {
  const volumeMounts = [{ name: 'v', mountPath: '/v' }];
  return { name, image: 'i', volumeMounts, ...(resources && { resources }) };
}

describe('size of a memory-backed emptyDir', () => {
  const held = { limits: { memory: '8Mi', cpu: '1' }, requests: { memory: '8Mi', cpu: '1' } };
  const cases: readonly (readonly [string, string | undefined, Container['resources'], bigint])[] = [
    ['is the allocatable memory of the node', undefined, undefined, 64n],
    ['is the sizeLimit', '4Mi', undefined, 4n],
    ['is at most the allocatable memory', '1Gi', undefined, 64n],
    ['is the allocatable memory for a sizeLimit of 0', '0', undefined, 64n],
    ['is the memory limit of the pod', undefined, held, 8n],
    ['is the sizeLimit below the memory limit of the pod', '4Mi', held, 4n],
    ['is at most the memory limit of the pod', '16Mi', held, 8n],
  ];
  for (const [what, sizeLimit, resources, expected] of cases)
    it(`the size of a memory-backed emptyDir: ${what}`, async () => {
      const files = new MemoryVolumeFiles();
      const emptyDir = { medium: 'Memory', ...(sizeLimit !== undefined && { sizeLimit }) };
      await make(podOn(emptyDir, { containers: [asking(resources)] }), files);
      assert.deepEqual(files.mounts(), [{ directory, kind: 'memory', sizeBytes: expected * mebibyte }]);
    });

  it('a memory-backed emptyDir is unlimited when the allocatable memory is unknown', async () => {
    const files = new MemoryVolumeFiles();
    const dirs = emptyDirs(files, new VirtualClock(), new Map());
    await dirs.create(podOn({}), { name: 'v', emptyDir: { medium: 'Memory' } }, signal);
    assert.equal(files.mounts()[0]?.sizeBytes, undefined);
  });
});

describe('memory-backed emptyDir volumes', () => {
  const pod = podOn({ medium: 'Memory' }, { securityContext: { fsGroup: 77 } });

  it('a memory-backed emptyDir is writable by all users with the sticky bit and belongs to the fsGroup', async () => {
    const files = new MemoryVolumeFiles();
    await make(podOn({ medium: 'Memory' }), files);
    assert.deepEqual(files.entry(directory), { kind: 'directory', mode: 0o1777, owner: 0, group: 0 });
    const grouped = new MemoryVolumeFiles();
    await make(pod, grouped);
    assert.deepEqual(grouped.entry(directory), { kind: 'directory', mode: 0o3777, owner: 0, group: 77 });
    assert.equal(grouped.entry(`${marker}/ready`)?.kind, 'file');
  });

  it('reports the duration of setting the group of a memory-backed emptyDir', async () => {
    const reported: string[] = [];
    const [files, clock] = [new MemoryVolumeFiles(), new VirtualClock()];
    const observe: StorageObserver = (operation, plugin) => void reported.push(`${operation} ${plugin.name}`);
    const dirs = new MemoryEmptyDirs({
      podsDir: '/pods',
      files,
      clock,
      allocatable: () => new Map(),
      observe,
    });
    await dirs.create(pod, { name: 'v', emptyDir: { medium: 'Memory' } }, signal);
    assert.deepEqual(reported, ['volume_apply_access_control kubernetes.io/empty-dir']);
  });

  it('a memory-backed emptyDir is found by its mount after a restart and left unchanged', async () => {
    const files = new MemoryVolumeFiles();
    await make(pod, files);
    await files.writeFile(`${directory}/kept`, Buffer.from('x'), { mode: 0o600 });
    await make(pod, files);
    assert.equal(files.mounts().length, 1);
    const retained = files.entry(`${directory}/kept`);
    assert.deepEqual(retained?.kind === 'file' ? [retained.mode, retained.group] : undefined, [0o600, 0]);
  });

  it('a memory-backed emptyDir is mounted again after a reboot although its marker exists', async () => {
    const files = new MemoryVolumeFiles();
    await make(pod, files);
    await files.unmount(directory);
    await make(pod, files);
    assert.equal(files.mounts().length, 1);
    assert.equal(files.entry(directory)?.group, 77);
  });

  it('a memory-backed emptyDir is completed after the kubelet was killed at any step', async () => {
    let steps = 0;
    for (let left = 0; ; left++) {
      const files = new MemoryVolumeFiles();
      const killed = await make(pod, endingAfter(files, left)).then(
        () => 'ended',
        () => 'killed',
      );
      await make(pod, files);
      assert.equal(files.mounts().length, 1, `after ${left} steps`);
      assert.deepEqual(files.entry(directory), { kind: 'directory', mode: 0o3777, owner: 0, group: 77 });
      assert.equal(files.entry(`${marker}/ready`)?.kind, 'file');
      steps = left;
      if (killed === 'ended') break;
    }
    assert.ok(steps > 5, `${steps} steps`);
  });

  it('a memory-backed emptyDir is not created when no container uses it', async () => {
    const files = new MemoryVolumeFiles();
    await make(podOn({ medium: 'Memory' }, { containers: [{ name: 'main', image: 'i' }] }), files);
    assert.deepEqual(files.paths(), []);
  });

  it('a memory-backed emptyDir is rejected when another file system is mounted at its path or a path component is not a directory', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory(directory, 0o777);
    files.mountForeign(directory);
    const message = `${directory} is a mount point of something else`;
    await assert.rejects(make(pod, files), { code: 'VOLUME_UNUSABLE', message });
    const linked = new MemoryVolumeFiles();
    await linked.makeDirectory(`/pods/${worldUid}`, 0o750);
    await linked.link('/elsewhere', `/pods/${worldUid}/volumes`);
    await assert.rejects(make(pod, linked), { message: `/pods/${worldUid}/volumes is not a directory` });
  });
});

describe('huge page emptyDir volumes', () => {
  const pages = (size: string) => ({ requests: { [`hugepages-${size}`]: '4Mi' } });
  const withPages = (medium: string, ...sizes: readonly string[]) =>
    podOn({ medium }, { containers: sizes.map((size, index) => asking(pages(size), `c${index}`)) });

  it('a huge page emptyDir has the page size that the pod requests', async () => {
    const files = new MemoryVolumeFiles();
    await make(withPages('HugePages', '2Mi', '2048Ki'), files);
    await make(withPages('HugePages', '2Mi'), files);
    assert.deepEqual(files.mounts(), [{ directory, kind: 'huge-pages', sizeBytes: undefined }]);
    assert.equal(await files.pageBytesAt(directory), 2n * mebibyte);
  });

  it('a huge page emptyDir has the page size of its medium when an init container or the pod requests that size', async () => {
    const initial = podOn(
      { medium: 'HugePages-1Gi' },
      { containers: [asking(pages('2Mi'))], initContainers: [asking(pages('1Gi'), 'init')] },
    );
    const whole = podOn(
      { medium: 'HugePages-1Gi' },
      { containers: [asking(undefined)], resources: { requests: { 'hugepages-1Gi': '1Gi' } } },
    );
    for (const pod of [initial, whole]) {
      const files = new MemoryVolumeFiles();
      await make(pod, files);
      assert.equal(await files.pageBytesAt(directory), 1024n * mebibyte);
    }
  });

  it('a huge page emptyDir belongs to the fsGroup, which may write', async () => {
    const files = new MemoryVolumeFiles();
    const spec = { containers: [asking(pages('2Mi'))], securityContext: { fsGroup: 77 } };
    await make(podOn({ medium: 'HugePages-2Mi' }, spec), files);
    assert.deepEqual(files.entry(directory), { kind: 'directory', mode: 0o2775, owner: 0, group: 77 });
  });

  it('a huge page emptyDir is rejected before anything is created when the page sizes do not match', async () => {
    const none = 'hugePages storage requested, but there is no resource request for huge pages';
    const noQuantity =
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    const several = "medium: HugePages can't be used if container requests multiple huge page sizes";
    const cases: readonly (readonly [Pod, string])[] = [
      [withPages('HugePages', '2Mi', '1Gi'), several],
      [podOn({ medium: 'HugePages' }), `medium HugePages: ${none}`],
      [withPages('HugePages-1Gi', '2Mi'), `medium HugePages-1Gi: ${none}`],
      [withPages('HugePages-large', '2Mi'), noQuantity],
      [podOn({ medium: 'Disk' }), 'unknown storage medium "Disk"'],
      [podOn({ medium: 'HugePages2Mi' }), 'unknown storage medium "HugePages2Mi"'],
    ];
    for (const [pod, message] of cases) {
      const files = new MemoryVolumeFiles();
      await assert.rejects(make(pod, files), { code: 'VOLUME_UNUSABLE', message });
      assert.deepEqual(files.paths(), []);
    }
  });

  it('a huge page emptyDir is rejected when pages of another size are mounted at its path', async () => {
    const files = new MemoryVolumeFiles();
    await make(withPages('HugePages', '2Mi'), files);
    const message = `pod ${worldUid}: mounted dir ${directory} pagesize '2Mi' and requested medium size '1Gi' differ`;
    await assert.rejects(make(withPages('HugePages-1Gi', '1Gi'), files), { message });
    assert.equal(files.mounts().length, 1);
  });
});

describe('removal of memory-backed emptyDir volumes', () => {
  const pod = podOn({ medium: 'Memory' });

  it("removal needs only the pod's UID and keeps disk-backed directories", async () => {
    const files = new MemoryVolumeFiles();
    await make(pod, files);
    const disk = directory.replace(/v$/, 'disk');
    await files.writeFile(`${disk}/content`, Buffer.from('x'), { mode: 0o600 });
    await emptyDirs(files).remove(worldUid, signal);
    await emptyDirs(files).remove(worldUid, signal);
    assert.deepEqual(files.mounts(), []);
    assert.equal(files.entry(directory), undefined);
    assert.equal(files.entry(marker), undefined);
    assert.equal(files.entry(`${disk}/content`)?.kind, 'file');
  });

  it('removal unmounts huge pages and stacked mounts', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory(directory, 0o777);
    await files.mountHugePages(directory, parseQuantity('2Mi'));
    await files.mountMemory(directory, undefined);
    await emptyDirs(files).remove(worldUid, signal);
    assert.deepEqual(files.mounts(), []);
    assert.equal(files.entry(directory), undefined);
  });

  it('removal reports a mount in use and succeeds once the mount is released', async () => {
    const files = new MemoryVolumeFiles();
    const clock = new VirtualClock();
    await make(pod, files);
    files.busy.add(directory);
    const failed = emptyDirs(files, clock)
      .remove(worldUid, signal)
      .catch((error) => error.message);
    await clock.advance(10_000);
    assert.equal(await failed, `${directory} is still in use`);
    assert.equal(files.mounts().length, 1);
    files.busy.clear();
    await emptyDirs(files).remove(worldUid, signal);
    assert.deepEqual(files.mounts(), []);
  });

  it('removal follows no symbolic link', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory('/elsewhere/v', 0o777);
    await files.mountMemory('/elsewhere/v', undefined);
    await files.makeDirectory(`/pods/${worldUid}/volumes`, 0o750);
    await files.link('/elsewhere', `/pods/${worldUid}/volumes/kubernetes.io~empty-dir`);
    await emptyDirs(files).remove(worldUid, signal);
    assert.equal(files.mounts().length, 1);
  });
});

/**
 * Wraps the file operations so that all calls after the given number of steps throw, as if the
 * process had been killed.
 */
function endingAfter(files: VolumeFiles, steps: number): VolumeFiles {
  let left = steps;
  return new Proxy(files, {
    get: (target, name) => {
      if (left-- <= 0) throw new Error('killed');
      return Reflect.get(target, name).bind(target);
    },
  });
}
