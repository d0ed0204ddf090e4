import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readdir, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { removeTree, type TreeCalls } from '../../src/lib/remove-tree.ts';

const notRoot = process.getuid?.() === 0 ? false : 'needs root';
const source = fileURLToPath(new URL('../../src/lib/remove-tree.ts', import.meta.url));
const fewHandles = 200;
/** The number of components that makes a path exceed the kernel's length limit. */
const goingDown = (steps: number) => `
  const { mkdirSync, writeFileSync } = require('node:fs');
  for (let left = ${steps}; left > 0; left--) {
    mkdirSync('step');
    process.chdir('step');
    writeFileSync('file', '');
  }`;

describe('removal of a directory tree', () => {
  let root: string;
  let volume: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'klg-remove-'));
    volume = join(root, 'volume');
    await mkdir(volume);
  });
  afterEach(async () => {
    execFileSync('rm', ['-rf', root]);
  });

  const run = (script: string) => execFileSync(process.execPath, ['-e', script], { cwd: volume });
  const shell = (script: string) => execFileSync('sh', ['-c', script], { cwd: volume });
  const isGone = async () => assert.deepEqual(await readdir(root), []);

  it('removes names that are not valid UTF-8', async () => {
    shell(`mkdir "$(printf 'd\\376')" && touch "$(printf 'd\\376/f\\200')" "$(printf 'bad\\377name')"`);
    assert.equal((await readdir(volume)).length, 2);
    await removeTree(volume);
    await isGone();
  });

  it('removes a directory tree deeper than the number of descriptors the process may open', async () => {
    run(goingDown(3_000));
    const script = `import(${JSON.stringify(source)}).then(({ removeTree }) => removeTree(process.argv[1]))`;
    const limited = 'ulimit -n "$1"; shift; exec "$@"';
    const command = [process.execPath, '-e', script, volume];
    execFileSync('sh', ['-c', limited, 'sh', `${fewHandles}`, ...command], { stdio: 'inherit' });
    await isGone();
  });

  it('removes immutable and append-only files and directories, and changes nothing behind links', {
    skip: notRoot,
  }, async () => {
    const outside = join(root, 'outside');
    await writeFile(outside, '');
    run(goingDown(70));
    shell(`
      touch immutable append; mkdir -p dir/below; touch dir/below/file; ln -s ../../outside dir/link; mkfifo dir/pipe
      chattr +i immutable ../outside; chattr +a append dir/below; chattr +i dir
      (cd ${'step/'.repeat(66)} && chattr +i file step/file && chattr +a step && chattr +i .); chattr +i .`);
    try {
      await removeTree(volume);
      assert.deepEqual(await readdir(root), ['outside']);
      assert.match(execFileSync('lsattr', [outside], { encoding: 'utf8' }), /^-*i/);
    } finally {
      execFileSync('chattr', ['-R', '-f', '-ia', root]);
    }
  });

  it("entries that have the names of the removal's own temporary entries are removed", async () => {
    shell('touch .removing-0; mkdir .removing-1; touch .removing-1/file');
    run(goingDown(300));
    await removeTree(volume);
    await isGone();
  });

  it('reports the reason and the remedy when an entry cannot be removed', async () => {
    const file = join(volume, 'kept/file');
    await mkdir(join(volume, 'kept'));
    await writeFile(file, '');
    const unlink = () => {
      throw Object.assign(new Error('no'), { code: 'EPERM' });
    };
    const calls: TreeCalls = { readMode: () => 'later', mutations: () => ({ rename, unlink, rmdir }) };
    const remedy = 'if it is immutable or append-only, run "chattr -R -ia" on the directory';
    await assert.rejects(removeTree(volume, calls), { message: `cannot delete ${file}: EPERM; ${remedy}` });
    await removeTree(volume);
    await isGone();
  });

  it('stops at a mount deep inside the tree and deletes nothing in it', { skip: notRoot }, async () => {
    const [depth, other] = [100, join(root, 'other')];
    await mkdir(other);
    await writeFile(join(other, 'canary'), 'alive');
    run(goingDown(depth));
    const point = join(volume, ...Array.from({ length: depth }, () => 'step'), 'point');
    await mkdir(point);
    execFileSync('mount', ['--bind', other, point]);
    await assert.rejects(removeTree(volume), /cannot delete directory .*\/point: it is a mount point/);
    assert.ok((await lstat(join(other, 'canary'))).isFile());
    const [mounted] = execFileSync('findmnt', ['-rno', 'TARGET'], { encoding: 'utf8' })
      .split('\n')
      .filter((point) => point.startsWith(volume));
    execFileSync('umount', [mounted ?? '']);
    await removeTree(volume);
    assert.deepEqual(await readdir(root), ['other']);
    await rm(other, { recursive: true });
  });
});
