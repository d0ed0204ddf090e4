import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type RuntimeFiles, realRuntimeFiles } from '../../src/runtime/index.ts';
import { memoryRuntimeFiles } from '../fakes/memory-runtime-files.ts';

const kinds: readonly (readonly [string, RuntimeFiles])[] = [
  ['real', realRuntimeFiles()],
  ['in memory', memoryRuntimeFiles()],
];

for (const [kind, files] of kinds) {
  describe(`runtime files, ${kind}`, () => {
    it('files are written, listed, read from their end, linked and removed', async () => {
      const root = await mkdtemp(join(tmpdir(), 'kubeling-files-'));
      try {
        const log = join(root, 'pod/c/0.log');
        await files.makeDirectory(join(root, 'pod/c'), 0o755);
        assert.deepEqual(await files.names(join(root, 'pod')), ['c']);
        await files.write(log, 'hello', 0o666);
        await files.write(join(root, 'pod/c/1.log'), '', 0o644);
        assert.deepEqual(await files.names(join(root, 'pod/c')), ['0.log', '1.log']);
        assert.equal((await files.readEnd(log, 3))?.toString(), 'llo');
        const link = join(root, 'links/x.log');
        await files.link('/nowhere', link);
        assert.equal(await files.exists(link), false);
        await files.link(log, link);
        assert.deepEqual([await files.exists(link), await files.readLink(link)], [true, log]);
        await assert.rejects(files.readEnd(link, 9), { code: 'FILE_READ' });
        assert.equal((await files.readLogEnd(root, log, 3))?.toString(), 'llo');
        assert.equal(await files.readLogEnd(root, join(root, 'pod/c/2.log'), 3), undefined);
        await assert.rejects(files.readLogEnd(root, link, 9), { code: 'LOG_REFUSED' });
        await assert.rejects(files.readLogEnd(join(root, 'links'), log, 9), { code: 'LOG_REFUSED' });
        assert.deepEqual([await files.kindAt(link), await files.kindBehind(link)], ['link', 'file']);
        assert.deepEqual(
          [await files.kindAt(log), await files.kindAt(join(root, 'no'))],
          ['file', undefined],
        );
        assert.equal(await files.kindAt(join(root, 'pod')), 'directory');
        await files.makeFile(log, 0o644);
        assert.equal((await files.readEnd(log, 9))?.toString(), 'hello');
        const notes = join(root, 'notes/a.json');
        await files.replace(notes, 'old', { mode: 0o600 });
        await files.replace(notes, 'new', { mode: 0o600, survives: 'crash' });
        assert.equal((await files.readEnd(notes, 9))?.toString(), 'new');
        assert.deepEqual(await files.names(join(root, 'notes')), ['a.json']);
        await files.remove(join(root, 'pod'));
        assert.equal(await files.exists(link), false);
        await files.remove(link);
        await files.remove(link);
        assert.deepEqual(await files.names(join(root, 'links')), []);
        assert.deepEqual(await files.names(join(root, 'pod')), []);
        assert.equal(await files.readEnd(log, 3), undefined);
        assert.equal(await files.readLink(link), undefined);
      } finally {
        await rm(root, { recursive: true, force: true });
      }
    });
  });
}

it('runtime files are read only if they are regular, and logs are read without following links', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kubeling-files-'));
  try {
    const files = realRuntimeFiles();
    await files.write(join(root, 'secrets/c/0.log'), 'secret', 0o600);
    await files.makeDirectory(join(root, 'logs'), 0o755);
    await files.link(join(root, 'secrets'), join(root, 'logs/pod'));
    const log = join(root, 'logs/pod/c/0.log');
    await assert.rejects(files.readLogEnd(join(root, 'logs'), log, 9), { code: 'LOG_REFUSED' });
    await assert.rejects(files.readEnd(join(root, 'logs'), 9), { code: 'FILE_READ' });
    await assert.rejects(files.readEnd('/dev/zero', 9), { code: 'FILE_READ' });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

it('runtime files have exactly the requested mode', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kubeling-files-'));
  try {
    const path = join(root, 'a/b');
    await realRuntimeFiles().write(path, 'x', 0o666);
    assert.equal((await stat(path)).mode & 0o777, 0o666);
    await assert.rejects(realRuntimeFiles().write(root, 'x', 0o666), { code: 'FILE_WRITE' });
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

it('runtime files are distinguished from sockets and devices', async () => {
  const root = await mkdtemp(join(tmpdir(), 'kubeling-files-'));
  const server = createServer();
  try {
    const path = join(root, 'socket');
    server.listen(path);
    await once(server, 'listening');
    const files = realRuntimeFiles();
    assert.deepEqual(
      [await files.kindBehind(path), await files.kindAt('/dev/null'), await files.kindBehind(root)],
      ['socket', 'character-device', 'directory'],
    );
    await assert.rejects(files.makeFile(join(root, 'no/file'), 0o644), { code: 'FILE_WRITE' });
    await files.makeFile(join(root, 'file'), 0o644);
    assert.equal(await files.kindAt(join(root, 'file')), 'file');
  } finally {
    server.close();
    await rm(root, { recursive: true, force: true });
  }
});
