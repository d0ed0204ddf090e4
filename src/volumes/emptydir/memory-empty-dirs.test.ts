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

/** As a kubelet has them that has just begun. */
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
  for (const volume of pod.spec.volumes ?? []) await emptyDirs(files).make(pod, volume, signal);
}

function asking(resources: Container['resources'], name = 'main'): Container {
  const volumeMounts = [{ name: 'v', mountPath: '/v' }];
  return { name, image: 'i', volumeMounts, ...(resources && { resources }) };
}

describe('how large an empty directory in memory may become', () => {
  const held = { limits: { memory: '8Mi', cpu: '1' }, requests: { memory: '8Mi', cpu: '1' } };
  const cases: readonly (readonly [string, string | undefined, Container['resources'], bigint])[] = [
    ['as the node has to give', undefined, undefined, 64n],
    ['as its limit says', '4Mi', undefined, 4n],
    ['no more than the node has to give', '1Gi', undefined, 64n],
    ['as the node has to give when its limit is none', '0', undefined, 64n],
    ['as the pod may have', undefined, held, 8n],
    ['as its limit says when the pod may have more', '4Mi', held, 4n],
    ['no more than the pod may have', '16Mi', held, 8n],
  ];
  for (const [what, sizeLimit, resources, expected] of cases)
    it(`is ${what}`, async () => {
      const files = new MemoryVolumeFiles();
      const emptyDir = { medium: 'Memory', ...(sizeLimit !== undefined && { sizeLimit }) };
      await make(podOn(emptyDir, { containers: [asking(resources)] }), files);
      assert.deepEqual(files.mounts(), [{ directory, kind: 'memory', sizeBytes: expected * mebibyte }]);
    });

  it('is up to the kernel when nobody knows', async () => {
    const files = new MemoryVolumeFiles();
    const dirs = emptyDirs(files, new VirtualClock(), new Map());
    await dirs.make(podOn({}), { name: 'v', emptyDir: { medium: 'Memory' } }, signal);
    assert.equal(files.mounts()[0]?.sizeBytes, undefined);
  });
});

describe('an empty directory in memory', () => {
  const pod = podOn({ medium: 'Memory' }, { securityContext: { fsGroup: 77 } });

  it("may be written by everybody, each only what is their own, and is the group's of the pod", async () => {
    const files = new MemoryVolumeFiles();
    await make(podOn({ medium: 'Memory' }), files);
    assert.deepEqual(files.entry(directory), { kind: 'directory', mode: 0o1777, owner: 0, group: 0 });
    const grouped = new MemoryVolumeFiles();
    await make(pod, grouped);
    assert.deepEqual(grouped.entry(directory), { kind: 'directory', mode: 0o3777, owner: 0, group: 77 });
    assert.equal(grouped.entry(`${marker}/ready`)?.kind, 'file');
  });

  it('tells how long it took to give it to the group of the pod', async () => {
    const told: string[] = [];
    const [files, clock] = [new MemoryVolumeFiles(), new VirtualClock()];
    const observe: StorageObserver = (operation, plugin) => void told.push(`${operation} ${plugin.name}`);
    const dirs = new MemoryEmptyDirs({
      podsDir: '/pods',
      files,
      clock,
      allocatable: () => new Map(),
      observe,
    });
    await dirs.make(pod, { name: 'v', emptyDir: { medium: 'Memory' } }, signal);
    assert.deepEqual(told, ['volume_apply_access_control kubernetes.io/empty-dir']);
  });

  it('is known by its mount to the next process, which leaves it as it is', async () => {
    const files = new MemoryVolumeFiles();
    await make(pod, files);
    await files.writeFile(`${directory}/kept`, Buffer.from('x'), { mode: 0o600 });
    await make(pod, files);
    assert.equal(files.mounts().length, 1);
    const kept = files.entry(`${directory}/kept`);
    assert.deepEqual(kept?.kind === 'file' ? [kept.mode, kept.group] : undefined, [0o600, 0]);
  });

  it('is made anew after the machine has started again, whatever the marker says', async () => {
    const files = new MemoryVolumeFiles();
    await make(pod, files);
    await files.unmount(directory);
    await make(pod, files);
    assert.equal(files.mounts().length, 1);
    assert.equal(files.entry(directory)?.group, 77);
  });

  it('is whole after a kubelet that was killed at any step', async () => {
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

  it('is not made when no container uses it', async () => {
    const files = new MemoryVolumeFiles();
    await make(podOn({ medium: 'Memory' }, { containers: [{ name: 'main', image: 'i' }] }), files);
    assert.deepEqual(files.paths(), []);
  });

  it('is refused where something else is mounted, or is no directory', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory(directory, 0o777);
    files.mountForeign(directory);
    const message = `${directory} is a mount point of something else`;
    await assert.rejects(make(pod, files), { code: 'VOLUME_UNUSABLE', message });
    const linked = new MemoryVolumeFiles();
    await linked.makeDirectory(`/pods/${worldUid}`, 0o750);
    await linked.link('/elsewhere', `/pods/${worldUid}/volumes`);
    await assert.rejects(make(pod, linked), { message: `/pods/${worldUid}/volumes is no directory` });
  });
});

describe('an empty directory on huge pages', () => {
  const pages = (size: string) => ({ requests: { [`hugepages-${size}`]: '4Mi' } });
  const withPages = (medium: string, ...sizes: readonly string[]) =>
    podOn({ medium }, { containers: sizes.map((size, index) => asking(pages(size), `c${index}`)) });

  it('has pages of the size that the pod asks for', async () => {
    const files = new MemoryVolumeFiles();
    await make(withPages('HugePages', '2Mi', '2048Ki'), files);
    await make(withPages('HugePages', '2Mi'), files);
    assert.deepEqual(files.mounts(), [{ directory, kind: 'huge-pages', sizeBytes: undefined }]);
    assert.equal(await files.pageBytesAt(directory), 2n * mebibyte);
  });

  it('has pages of the size it names, if an init container or the pod as a whole asks for them', async () => {
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

  it("is the group's of the pod, which may write", async () => {
    const files = new MemoryVolumeFiles();
    const spec = { containers: [asking(pages('2Mi'))], securityContext: { fsGroup: 77 } };
    await make(podOn({ medium: 'HugePages-2Mi' }, spec), files);
    assert.deepEqual(files.entry(directory), { kind: 'directory', mode: 0o2775, owner: 0, group: 77 });
  });

  it('is refused, and nothing made, when the sizes do not fit', async () => {
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

  it('is refused when pages of another size are mounted there', async () => {
    const files = new MemoryVolumeFiles();
    await make(withPages('HugePages', '2Mi'), files);
    const message = `pod ${worldUid}: mounted dir ${directory} pagesize '2Mi' and requested medium size '1Gi' differ`;
    await assert.rejects(make(withPages('HugePages-1Gi', '1Gi'), files), { message });
    assert.equal(files.mounts().length, 1);
  });
});

describe('removing empty directories in memory', () => {
  const pod = podOn({ medium: 'Memory' });

  it('needs nothing but the UID, and leaves those on the disk', async () => {
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

  it('undoes mounts of huge pages, and mounts on top of each other', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory(directory, 0o777);
    await files.mountHugePages(directory, parseQuantity('2Mi'));
    await files.mountMemory(directory, undefined);
    await emptyDirs(files).remove(worldUid, signal);
    assert.deepEqual(files.mounts(), []);
    assert.equal(files.entry(directory), undefined);
  });

  it('says what is still in use, and is done when that is over', async () => {
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

  it('follows no link', async () => {
    const files = new MemoryVolumeFiles();
    await files.makeDirectory('/elsewhere/v', 0o777);
    await files.mountMemory('/elsewhere/v', undefined);
    await files.makeDirectory(`/pods/${worldUid}/volumes`, 0o750);
    await files.link('/elsewhere', `/pods/${worldUid}/volumes/kubernetes.io~empty-dir`);
    await emptyDirs(files).remove(worldUid, signal);
    assert.equal(files.mounts().length, 1);
  });
});

/** Files of a process that is killed after so many steps. */
function endingAfter(files: VolumeFiles, steps: number): VolumeFiles {
  let left = steps;
  return new Proxy(files, {
    get: (target, name) => {
      if (left-- <= 0) throw new Error('killed');
      return Reflect.get(target, name).bind(target);
    },
  });
}
