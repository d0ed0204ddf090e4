import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { DiskWalker, parseMountinfo, realClock } from '../../src/lib/index.ts';
import { HostDirectoryQuotas } from '../../src/volumes/index.ts';
import { quotaTools } from '../disks/quota-tools.ts';

const { signal } = new AbortController();
const notRoot = process.getuid?.() === 0 ? false : 'only root mounts';
const mebibyte = 2n ** 20n;

/**
 * Returns directory quotas that use fake quota programs, because few kernels support project
 * quotas.
 */
function scripted(folder: string, options = 'rw,prjquota', scripts?: Parameters<typeof quotaTools>[1]) {
  const path = quotaTools(join(folder, 'tools'), scripts);
  const line = `1 0 8:1 / ${folder} rw - ext4 /dev/vda ${options}`;
  const root = '2 0 8:0 / / rw - ext4 /dev/vdb rw';
  const mounts = async () =>
    parseMountinfo(`${root}\n${line}\n3 1 8:1 /pods ${folder}/pods rw - ext4 /dev/vda ${options}`);
  const quotas = () => new HostDirectoryQuotas({ clock: realClock(), path, mounts, registryDir: folder });
  const kept = (what: string) =>
    Object.fromEntries(
      readdirSync(join(folder, 'tools', what)).map((name) => [
        name.replaceAll('%', '/'),
        readFileSync(join(folder, 'tools', what, name), 'utf8').trim(),
      ]),
    );
  return { quotas, limits: () => kept('limits'), projects: () => kept('projects') };
}

function volumeIn(folder: string, name: string): string {
  const directory = join(folder, 'pods', name);
  mkdirSync(directory, { recursive: true });
  return directory;
}

describe('directory quotas with external quota programs', () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'klg-quota-'));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const environment = (name: string) => {
    const own = join(folder, name);
    mkdirSync(own);
    return own;
  };

  it('quotas use one project per directory with its limit and release it at the end', async () => {
    const own = environment('plain');
    const { quotas, limits, projects } = scripted(own);
    const [a, b] = [volumeIn(own, 'a'), volumeIn(own, 'b c')];
    assert.equal(await quotas().problemIn(own, signal), undefined);
    const responses = await Promise.all([
      quotas().limit(a, 10n * mebibyte, signal),
      quotas().limit(b, 1n, signal),
    ]);
    assert.deepEqual(responses, [undefined, undefined]);
    const given = projects();
    assert.deepEqual(Object.keys(given), [a, b]);
    assert.notEqual(given[a], given[b]);
    assert.deepEqual(limits(), { [given[a] ?? '']: `10240 ${own}`, [given[b] ?? '']: `1 ${own}` });
    assert.equal(await quotas().release([a, b, join(own, 'pods/gone')], signal), undefined);
    assert.deepEqual(limits(), {});
  });

  it('quotas allocate no project ID that is in use', async () => {
    const first = environment('first');
    const wished = scripted(first);
    const volume = volumeIn(first, 'v');
    await wished.quotas().limit(volume, mebibyte, signal);
    const id = Number(wished.projects()[volume]);
    rmSync(join(first, 'tools'), { recursive: true });
    writeFileSync(join(first, 'projects'), `${id}:/srv/other\n`);
    writeFileSync(join(first, 'projid'), `mine:${id + 1}\n`);
    const again = scripted(first);
    mkdirSync(join(first, 'tools/limits'), { recursive: true });
    writeFileSync(join(first, 'tools/limits', String(id + 2)), '4');
    await again.quotas().limit(volume, mebibyte, signal);
    assert.equal(Number(again.projects()[volume]), id + 3);
  });

  it('quotas reuse the project of a process that was killed before it set the limit', async () => {
    const own = environment('killed');
    const failing = scripted(own, undefined, { setquota: 'exit 9' });
    const volume = volumeIn(own, 'v');
    assert.match(
      (await failing.quotas().limit(volume, mebibyte, signal)) ?? '',
      /setquota .* failed: it ended with exit code 9/,
    );
    const { quotas, projects, limits } = scripted(own);
    const before = projects();
    assert.equal(await quotas().limit(volume, mebibyte, signal), undefined);
    assert.deepEqual(projects(), before);
    assert.deepEqual(Object.values(limits()), [`1024 ${own}`]);
  });

  it('quotas do not change projects and limits of other programs', async () => {
    const own = environment('others');
    const { quotas, limits, projects } = scripted(own);
    const volume = volumeIn(own, 'v');
    const asProject = (directory: string, id: string) =>
      writeFileSync(join(own, 'tools/projects', directory.replaceAll('/', '%')), id);
    asProject(join(own, 'pods'), '77');
    assert.match(
      (await quotas().limit(volume, mebibyte, signal)) ?? '',
      /pods belongs to the project 77 of somebody else$/,
    );
    assert.deepEqual(Object.keys(projects()), [join(own, 'pods')]);
    asProject(volume, '1048577');
    writeFileSync(join(own, 'tools/limits/1048577'), '4');
    assert.equal(await quotas().release([volume], signal), undefined);
    assert.deepEqual(limits(), { 1048577: '4' });
  });

  it('unavailable quotas report the reason and change nothing', async () => {
    const own = environment('none');
    const volume = volumeIn(own, 'v');
    const without = scripted(own, 'rw');
    const expected = `the file system at ${own} (ext4) is not mounted with prjquota`;
    assert.equal(await without.quotas().problemIn(own, signal), expected);
    assert.match(
      (await without.quotas().limit(volume, mebibyte, signal)) ?? '',
      /is not mounted with prjquota$/,
    );
    assert.equal(await without.quotas().release([volume], signal), undefined);
    assert.deepEqual(without.projects(), {});
    const path = join(own, 'no-programs');
    const mounts = async () => parseMountinfo(`1 0 8:1 / ${own} rw - ext4 /dev/vda rw,prjquota`);
    const bare = new HostDirectoryQuotas({ clock: realClock(), path, mounts });
    assert.match(
      (await bare.problemIn(own, signal)) ?? '',
      /^Cannot run repquota as there is no such program/,
    );
  });
});

/** Mounts a separate file system for the test, or returns the reason why it cannot. */
function mounted(folder: string, format: readonly string[], options: string): string | undefined {
  const disk = join(folder, 'disk');
  const point = join(folder, 'point');
  try {
    execFileSync('truncate', ['-s', '320M', disk], { stdio: 'pipe' });
    const [file = '', ...args] = format;
    execFileSync(file, [...args, disk], { stdio: 'pipe' });
    mkdirSync(point);
    execFileSync('mount', ['-o', options, disk, point], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `this machine cannot mount it: ${(error as Error).message.split('\n')[0]}`;
  }
}

describe('XFS directory projects with the real chattr and lsattr', { skip: notRoot }, () => {
  let folder: string;
  let missing: string | undefined;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'klg-quota-xfs-'));
    missing = mounted(folder, ['mkfs.xfs', '-q'], 'loop');
  });
  after(() => {
    if (missing === undefined) execFileSync('umount', [join(folder, 'point')]);
    rmSync(folder, { recursive: true, force: true });
  });

  it('XFS projects are inherited by new files and directories', (context) => {
    if (missing !== undefined) return context.skip(missing);
    const point = join(folder, 'point');
    const volume = volumeIn(point, 'v');
    const path = `${quotaTools(join(folder, 'tools'), { chattr: undefined, lsattr: undefined })}:${process.env['PATH']}`;
    const mounts = async () => parseMountinfo(`1 0 8:1 / ${point} rw - xfs /dev/vda rw,prjquota`);
    const quotas = new HostDirectoryQuotas({ clock: realClock(), path, mounts });
    const projectOf = (directory: string) =>
      Number(execFileSync('lsattr', ['-pd', directory], { encoding: 'utf8' }).trim().split(' ')[0]);
    return quotas.limit(volume, mebibyte, signal).then(async (problem) => {
      assert.equal(problem, undefined);
      const id = projectOf(volume);
      assert.ok(id > 0x3fff_ffff, String(id));
      assert.deepEqual(readdirSync(join(folder, 'tools/limits')), [String(id)]);
      mkdirSync(join(volume, 'inner'));
      assert.equal(projectOf(join(volume, 'inner')), id);
      assert.equal(await quotas.release([volume], signal), undefined);
      assert.deepEqual(readdirSync(join(folder, 'tools/limits')), []);
      rmdirSync(join(volume, 'inner'));
    });
  });
});

describe('directory quotas on a kernel that supports them', { skip: notRoot }, () => {
  let folder: string;
  let missing: string | undefined;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'klg-quota-ext4-'));
    missing = mounted(
      folder,
      ['mkfs.ext4', '-q', '-F', '-O', 'project,quota', '-E', 'quotatype=prjquota'],
      'loop,prjquota',
    );
  });
  after(() => {
    if (missing === undefined) execFileSync('umount', [join(folder, 'point')]);
    rmSync(folder, { recursive: true, force: true });
  });

  it('quotas reject writes beyond the limit, and none after their release', async (context) => {
    if (missing !== undefined) return context.skip(missing);
    const volume = volumeIn(join(folder, 'point'), 'v');
    const quotas = new HostDirectoryQuotas({ clock: realClock() });
    assert.equal(await quotas.limit(volume, 4n * mebibyte, signal), undefined);
    writeFileSync(join(volume, 'fits'), Buffer.alloc(3 * 2 ** 20));
    using walker = new DiskWalker({ clock: realClock(), check: async () => {} });
    const [counted] = await walker.usagesOf([{ path: volume }], 10_000, signal);
    assert.ok(counted?.kind === 'counted' && (counted.quotaBytes ?? 0) >= 3 * 2 ** 20);
    assert.ok((counted.space?.capacityBytes ?? 0) > 8 * 2 ** 20, 'of the whole file system');
    assert.throws(() => writeFileSync(join(volume, 'more'), Buffer.alloc(2 * 2 ** 20)), /EDQUOT|ENOSPC/);
    assert.equal(await quotas.release([volume], signal), undefined);
    writeFileSync(join(volume, 'more'), Buffer.alloc(2 * 2 ** 20));
  });
});
