import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { podWith, worldUid } from '../../../test/fakes/payload-world.ts';
import type { PodSpec } from '../../kinds/index.ts';
import { realRuntimeFiles } from '../../runtime/index.ts';
import { DiskEmptyDirs } from './disk-empty-dirs.ts';

const { signal } = new AbortController();
const volume = { name: 'v', emptyDir: {} };
const notRoot = process.getuid?.() === 0 ? false : 'only root gives to groups';

describe('a disk-backed emptyDir', () => {
  let podsDir: string;
  let directory: string;
  let marker: string;

  beforeEach(() => {
    podsDir = mkdtempSync(join(tmpdir(), 'klg-pods-'));
    directory = join(podsDir, worldUid, 'volumes/kubernetes.io~empty-dir/v');
    marker = join(podsDir, worldUid, 'plugins/kubernetes.io~empty-dir/v');
  });

  afterEach(() => rmSync(podsDir, { recursive: true }));

  /** Creates DiskEmptyDirs as after a kubelet restart. */
  const make = (spec: Partial<PodSpec> = {}) =>
    new DiskEmptyDirs({ podsDir, files: realRuntimeFiles() }).create(podWith([volume], spec), volume, signal);
  const modeOf = (path: string) => statSync(path).mode & 0o7777;

  it('a disk-backed emptyDir is writable by all users and has the marker file of the Go kubelet', async () => {
    await make();
    assert.equal(modeOf(directory), 0o777);
    assert.equal(modeOf(marker), 0o750);
    assert.equal(modeOf(join(marker, 'ready')), 0o640);
    assert.deepEqual(readdirSync(join(directory, '..')), ['v']);
  });

  it('a disk-backed emptyDir is left unchanged once its marker exists', async () => {
    await make();
    chmodSync(directory, 0o700);
    writeFileSync(join(directory, 'kept'), 'x');
    await make();
    assert.equal(modeOf(directory), 0o700);
    assert.deepEqual(readdirSync(directory), ['kept']);
  });

  it('a disk-backed emptyDir is created again when only its marker is left', async () => {
    await make();
    rmSync(directory, { recursive: true });
    await make();
    assert.equal(modeOf(directory), 0o777);
    assert.equal(modeOf(join(marker, 'ready')), 0o640);
  });

  it('a disk-backed emptyDir without a marker, left by a killed kubelet, keeps its content and gets the marker', async () => {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    mkdirSync(marker, { recursive: true, mode: 0o750 });
    writeFileSync(join(directory, 'kept'), 'x');
    await make();
    assert.equal(modeOf(directory), 0o777);
    assert.deepEqual(readdirSync(directory), ['kept']);
    assert.equal(modeOf(join(marker, 'ready')), 0o640);
  });

  it('a disk-backed emptyDir belongs to the fsGroup of the pod', { skip: notRoot }, async () => {
    mkdirSync(directory, { recursive: true, mode: 0o755 });
    await make({ securityContext: { fsGroup: 77 } });
    assert.deepEqual([modeOf(directory), statSync(directory).gid], [0o2777, 77]);
  });

  it('a disk-backed emptyDir gets its size limit once, before the marker is written', async () => {
    const held: unknown[] = [];
    const limit = async (at: string, bytes: bigint) => {
      held.push([at, bytes, existsSync(marker)]);
    };
    const sized = async (sizeLimit: string | undefined) => {
      const dirs = new DiskEmptyDirs({ podsDir, files: realRuntimeFiles(), limit });
      const requested = { name: 'v', emptyDir: sizeLimit === undefined ? {} : { sizeLimit } };
      await dirs.create(podWith([requested]), requested, signal);
    };
    await sized('1500');
    await sized('1500');
    assert.deepEqual(held.splice(0), [[directory, 1500n, false]]);
    rmSync(podsDir, { recursive: true });
    await sized(undefined);
    rmSync(podsDir, { recursive: true });
    await sized('0');
    assert.deepEqual(held, []);
  });

  it('a disk-backed emptyDir is rejected when its path is not a directory', async () => {
    mkdirSync(join(directory, '..'), { recursive: true });
    symlinkSync('/', directory);
    await assert.rejects(make(), {
      code: 'FILE_WRITE',
      message: `Cannot write ${directory}: the path exists and is not a directory`,
    });
    assert.throws(() => statSync(marker), /ENOENT/);
  });
});
