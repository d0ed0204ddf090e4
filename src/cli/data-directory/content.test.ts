import assert from 'node:assert/strict';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { claimDataDirectory, isDataDirectory, removeDataDirectory } from './content.ts';
import {
  type DataDirectory,
  dataDirectoryAt,
  findDataDirectory,
  openDataDirectory,
} from './data-directory.ts';

describe('data directory', () => {
  let outer: string;
  let directory: DataDirectory;

  beforeEach(async () => {
    outer = await mkdtemp(join(tmpdir(), 'klg-home-'));
    directory = dataDirectoryAt(join(outer, 'data'));
    await mkdir(directory.dataDir);
  });

  afterEach(() => rm(outer, { recursive: true, force: true }));

  async function put(...names: readonly string[]): Promise<void> {
    for (const name of names) await writeFile(join(directory.dataDir, name), name);
  }

  it('claims the data directory at the first start, also if an earlier release used it', async () => {
    await put('notes');
    assert.equal(await isDataDirectory(directory), false);
    await put('up.json');
    assert.equal(await isDataDirectory(directory), true);
    await rm(directory.stateFile);
    await claimDataDirectory(directory);
    assert.equal(await isDataDirectory(directory), true);
  });

  it('removes the data directory completely when it was empty before', async () => {
    await put('up.lock', 'up.lock.a.own');
    await claimDataDirectory(directory);
    await put('kubeling.log', 'up.json');
    await claimDataDirectory(directory);
    assert.deepEqual(await removeDataDirectory(directory), { retained: [], problems: [] });
    assert.deepEqual(await readdir(outer), []);
  });

  it('removes everything in the data directory except the entries that existed before the first start', async () => {
    await put('notes', 'backup');
    await claimDataDirectory(directory);
    await put('up.json', 'kubeling.log');
    await claimDataDirectory(directory);
    await mkdir(directory.rootDir);
    assert.deepEqual([...(await removeDataDirectory(directory)).retained].sort(), ['backup', 'notes']);
    assert.deepEqual((await readdir(directory.dataDir)).sort(), ['backup', 'notes']);
    assert.equal(await isDataDirectory(directory), false);
  });

  for (const name of ['kubelet/pods', 'containerd/io.containerd.metadata.v1.bolt']) {
    it(`rejects a data directory that contains ${name} of another program`, async () => {
      await mkdir(join(directory.dataDir, name), { recursive: true });
      await assert.rejects(claimDataDirectory(directory), {
        code: 'HOME_UNUSABLE',
        message: new RegExp(`\\(.*${name}\\)`),
      });
      assert.equal(await isDataDirectory(directory), false);
    });
  }

  it('accepts a data directory that already contains configuration', async () => {
    await mkdir(join(directory.dataDir, 'containerd', 'certs.d'), { recursive: true });
    await mkdir(directory.rootDir);
    await claimDataDirectory(directory);
    assert.equal(await isDataDirectory(directory), true);
  });

  it('removes the data directory completely if an earlier release, which saved no list of existing entries, used it', async () => {
    await put('up.json', 'kubeling.log');
    await claimDataDirectory(directory);
    assert.deepEqual(await removeDataDirectory(directory), { retained: [], problems: [] });
    assert.deepEqual(await readdir(outer), []);
  });

  it('does not change the data directory while the list of entries that existed before the first start cannot be read', async () => {
    await put('notes', 'home.json');
    await assert.rejects(removeDataDirectory(directory), { code: 'FILE_CORRUPT' });
    assert.deepEqual((await readdir(directory.dataDir)).sort(), ['home.json', 'notes']);
  });
});

describe('data directory that another user can change', () => {
  let outer: string;

  beforeEach(async () => {
    outer = await mkdtemp(join(tmpdir(), 'klg-home-'));
  });
  afterEach(() => rm(outer, { recursive: true, force: true }));

  it('openDataDirectory and findDataDirectory reject a directory that is writable by others', async () => {
    const open = join(outer, 'open');
    await mkdir(open);
    await chmod(open, 0o777);
    for (const use of [openDataDirectory, findDataDirectory])
      await assert.rejects(use(open), {
        code: 'HOME_UNUSABLE',
        message: /writable by other users \(mode 777\)/,
      });
  });

  it('rejects a data directory whose manifest directory is writable by others', async () => {
    const { manifests } = dataDirectoryAt(join(outer, 'data'));
    await mkdir(manifests, { recursive: true });
    await chmod(manifests, 0o777);
    await assert.rejects(openDataDirectory(join(outer, 'data')), {
      code: 'HOME_UNUSABLE',
      message: /manifests is writable/,
    });
  });

  const withoutRoot = process.getuid?.() === 0 ? false : 'only root can change owners';
  it('rejects a data directory that belongs to another user', { skip: withoutRoot }, async () => {
    const foreign = join(outer, 'foreign');
    await mkdir(foreign);
    await chown(foreign, 12_345, 12_345);
    await assert.rejects(openDataDirectory(foreign), {
      code: 'HOME_UNUSABLE',
      message: /belongs to the user 12345/,
    });
  });
});
