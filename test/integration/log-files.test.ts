import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { type LogFiles, type LogHint, realLogFiles } from '../../src/runtime/index.ts';
import { eventually } from '../kubeling-node.ts';

let root = '';
let logs = '';
let directory = '';
let path = '';
let files: LogFiles;

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'klg-logs-'));
});

beforeEach(async () => {
  await rm(root, { recursive: true });
  logs = join(root, 'pods');
  directory = join(logs, 'ns_p_u', 'c');
  path = join(directory, '0.log');
  await mkdir(directory, { recursive: true });
  await writeFile(join(root, 'secret'), 'secret');
  files = realLogFiles(logs);
});

after(async () => {
  await rm(root, { recursive: true, force: true });
});

const opened = async () => (await readdir('/proc/self/fd')).length;

test('reads a log from any offset, also through another name and after the file was renamed', async () => {
  await writeFile(path, '0123456789');
  const handle = await files.open(path);
  assert.ok(handle);
  await using log = handle;
  assert.equal(await files.identityAt(path), log.identity);
  await rename(path, `${path}.1`);
  await appendFile(`${path}.1`, 'abc');
  await rm(`${path}.1`);
  const bytes = new Uint8Array(4);
  assert.deepEqual(
    [await log.size(), await log.read(bytes, 11), String(Buffer.from(bytes.subarray(0, 2)))],
    [13, 2, 'bc'],
  );
  assert.equal(await log.read(bytes, 13), 0);
  assert.equal(await files.identityAt(path), undefined);
});

test('returns undefined for a log that does not exist', async () => {
  assert.equal(await files.open(path), undefined);
  assert.equal(await files.open(join(logs, 'none', 'c', '0.log')), undefined);
  assert.deepEqual(await files.names(join(logs, 'none')), []);
  files.watch(join(logs, 'none'), () => {})[Symbol.dispose]();
});

const traps: Readonly<Record<string, () => Promise<unknown>>> = {
  'a link': () => symlink(join(root, 'secret'), path),
  'a link to another log': async () => {
    await writeFile(join(logs, 'other'), '');
    await symlink(join(logs, 'other'), path);
  },
  'a file behind a directory that is a link': async () => {
    await mkdir(join(root, 'elsewhere'));
    await writeFile(join(root, 'elsewhere', '0.log'), 'secret');
    await rm(directory, { recursive: true });
    await symlink(join(root, 'elsewhere'), directory);
  },
  'a directory': () => mkdir(path),
  'a pipe without a writer': async () => execFileSync('mkfifo', [path]),
};
for (const [what, lay] of Object.entries(traps)) {
  test(`does not open ${what} as a log and leaves no descriptor open`, async () => {
    await lay();
    const open = await opened();
    await assert.rejects(files.open(path), { code: 'LOG_REFUSED' });
    assert.equal(await opened(), open);
  });
}

test('does not read log files outside of the log directory', async () => {
  await assert.rejects(files.open(join(root, 'secret')), { code: 'LOG_REFUSED' });
  await assert.rejects(files.open(join(logs, '..', 'secret')), { code: 'LOG_REFUSED' });
});

test('follows a symbolic link at the log root directory itself', async () => {
  await writeFile(path, 'x');
  await symlink(logs, join(root, 'link'));
  const handle = await realLogFiles(join(root, 'link')).open(join(root, 'link', 'ns_p_u', 'c', '0.log'));
  assert.equal(await handle?.size(), 1);
  await handle?.[Symbol.asyncDispose]();
});

test('reports writes to and renames of log files as hints', async () => {
  const hints = new Set<LogHint>();
  await writeFile(path, '');
  using _watch = files.watch(directory, (hint) => hints.add(hint));
  await appendFile(path, 'x');
  await rename(path, `${path}.1`);
  await eventually('both hints', async () => (hints.size === 2 ? true : undefined));
});
