import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { realClock } from '../../src/lib/index.ts';
import { createLogTree, systemJournal } from '../../src/server/remote/index.ts';

let directory: string;
let root: string;
const { signal } = new AbortController();

before(() => {
  directory = mkdtempSync(join(tmpdir(), 'kubeling-logs-'));
  root = join(directory, 'log');
  mkdirSync(join(root, 'pods', 'web'), { recursive: true });
  mkdirSync(join(root, 'containers'));
  writeFileSync(join(directory, 'secret'), 'secret');
  writeFileSync(join(root, 'pods', 'web', '0.log'), 'said\n');
  symlinkSync('../pods/web/0.log', join(root, 'containers', 'relative.log'));
  symlinkSync(join(root, 'pods', 'web', '0.log'), join(root, 'containers', 'absolute.log'));
  symlinkSync('containers', join(root, 'by-link'));
  symlinkSync('../../secret', join(root, 'containers', 'out-relative'));
  symlinkSync(join(directory, 'secret'), join(root, 'out-absolute'));
  symlinkSync(directory, join(root, 'out-directory'));
  symlinkSync('/proc/self/root', join(root, 'magic'));
  symlinkSync('round', join(root, 'round'));
  execFileSync('mkfifo', [join(root, 'pipe')]);
});

after(() => rmSync(directory, { recursive: true, force: true }));

async function read(path: string): Promise<string> {
  const node = await createLogTree(root).inspect(path);
  return node.kind === 'file' ? await text(node.chunks) : node.kind;
}

test('follows absolute and relative links that stay inside the log directory', async () => {
  for (const path of [
    'pods/web/0.log',
    '/containers/relative.log',
    'containers/absolute.log',
    'by-link/relative.log',
  ]) {
    assert.equal(await read(path), 'said\n', path);
  }
  assert.equal(await read('containers/../pods/./web//0.log'), 'said\n');
});

test('follows no link out of the log directory and opens no special file', async () => {
  for (const path of [
    '../secret',
    'pods/../../secret',
    'containers/out-relative',
    'out-absolute',
    'out-directory/secret',
    'magic/etc/passwd',
    'round',
    'pipe',
    'a\0b',
  ]) {
    await assert.rejects(read(path), { code: 'LOG_REFUSED' }, path);
  }
  assert.equal(await read('none'), 'absent');
  assert.equal(await read('pods/web/0.log/x'), 'absent');
});

test('lists the log directory', async () => {
  const node = await createLogTree(root).inspect('');
  assert(node.kind === 'directory');
  assert.deepEqual(
    node.names.filter((name) => name.endsWith('/')),
    ['containers/', 'pods/'],
  );
});

test('does not follow a log file that is replaced by a link to the outside after it was found', async () => {
  const path = join(root, 'swapped');
  writeFileSync(path, 'mine');
  const node = await createLogTree(root).inspect('swapped');
  assert(node.kind === 'file');
  symlinkSync(join(directory, 'secret'), `${path}.new`);
  renameSync(`${path}.new`, path);
  await assert.rejects(text(node.chunks), { code: 'LOG_REFUSED' });
});

test('returns a growing log only up to its size at the request, and leaves no file descriptor open', async () => {
  const path = join(root, 'busy');
  writeFileSync(path, 'x'.repeat(200_000));
  const open = (await readdir('/proc/self/fd')).length;
  const node = await createLogTree(root).inspect('busy');
  assert(node.kind === 'file');
  let size = 0;
  for await (const chunk of node.chunks) {
    size += chunk.length;
    appendFileSync(path, 'y'.repeat(100_000));
  }
  assert.equal(size, 200_000);
  const other = await createLogTree(root).inspect('busy');
  assert(other.kind === 'file');
  for await (const _chunk of other.chunks) break;
  await createLogTree(root).inspect('busy');
  await assert.rejects(read('out-absolute'));
  assert.equal((await readdir('/proc/self/fd')).length, open);
});

/** A fake journalctl program. */
function journal(script: string) {
  const program = join(directory, `journalctl-${Math.floor(performance.now() * 1_000)}`);
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return systemJournal(realClock(), program);
}

test('reads the journal with the journalctl program, including its error output', async () => {
  const fake = journal(
    'if [ "$1" = --field ]; then echo a.service; echo b.service; else echo "$@"; echo bad >&2; fi',
  );
  assert.deepEqual([...(await fake.units(signal))], ['a.service', 'b.service']);
  const output = await text(fake.read(['a.service'], { pattern: '$(id)' }, signal));
  assert.match(output, /--unit=a\.service --grep=\$\(id\)\n/);
  assert.match(output, /bad\n/);
});

test('lists no units and fails to read the journal on a machine without a journal', async () => {
  const none = systemJournal(realClock(), join(directory, 'nothing'));
  assert.equal((await none.units(signal)).size, 0);
  await assert.rejects(text(none.read(['a.service'], {}, signal)), { code: 'COMMAND_FAILED' });
});

test('stops reading an endless journal when the client disconnects', async () => {
  const controller = new AbortController();
  const endless = journal('echo first; exec sleep 1000');
  let output = '';
  for await (const chunk of endless.read(['a.service'], {}, controller.signal)) {
    output += String(chunk);
    controller.abort();
  }
  assert.equal(output, 'first\n');
});
