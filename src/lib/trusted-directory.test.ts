import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { readTrustedFile, untrustedDirectory } from './trusted-directory.ts';

const isRoot = process.getuid?.() === 0;
const base = realpathSync(mkdtempSync(join(tmpdir(), 'kubeling-trusted-')));
after(() => rmSync(base, { recursive: true, force: true }));

function directory(name: string, { mode = 0o755, uid }: { mode?: number; uid?: number } = {}): string {
  const path = join(base, name);
  mkdirSync(path);
  chmodSync(path, mode);
  if (uid !== undefined) chownSync(path, uid, uid);
  return path;
}

describe('untrustedDirectory', () => {
  it('accepts a private directory in a sticky directory such as /tmp', async () => {
    assert.equal(await untrustedDirectory(directory('private')), undefined);
  });

  it('accepts a missing directory in a trusted one', async () => {
    assert.equal(await untrustedDirectory(join(base, 'missing', 'below')), undefined);
  });

  it('rejects a directory that other users may write to, sticky or not', async () => {
    assert.match(
      (await untrustedDirectory(directory('open', { mode: 0o777 }))) ?? '',
      /writable by other users \(mode 777\)/,
    );
    assert.match((await untrustedDirectory(directory('sticky', { mode: 0o1777 }))) ?? '', /mode 1777/);
  });

  it('rejects a directory whose ancestor other users may write to without a sticky bit', async () => {
    directory('shared', { mode: 0o777 });
    const why = await untrustedDirectory(directory('shared/own'));
    assert.equal(why, `${join(base, 'shared')} is writable by other users (mode 777)`);
  });

  it('rejects a directory of another user, and a directory of root inside such a directory', {
    skip: !isRoot && 'needs root',
  }, async () => {
    directory('foreign', { uid: 12_345 });
    assert.equal(
      await untrustedDirectory(join(base, 'foreign')),
      `${join(base, 'foreign')} belongs to the user 12345`,
    );
    assert.equal(
      await untrustedDirectory(directory('foreign/root')),
      `${join(base, 'foreign')} belongs to the user 12345`,
    );
  });
});

describe('readTrustedFile', () => {
  const path = (name: string) => join(base, name);
  const write = (name: string, text: string, mode = 0o644) => {
    writeFileSync(path(name), text);
    chmodSync(path(name), mode);
    return path(name);
  };

  it('reads a file of root or of the own user, and returns undefined for a missing one', async () => {
    assert.equal(await readTrustedFile(write('good', 'text'), 4), 'text');
    assert.equal(await readTrustedFile(path('missing'), 4), undefined);
    assert.equal(await readTrustedFile(join(path('good'), 'below'), 4), undefined);
  });

  it('rejects a pipe, a link, a directory and a device without blocking', async () => {
    execFileSync('mkfifo', [path('pipe')]);
    await assert.rejects(readTrustedFile(path('pipe'), 4), {
      code: 'UNTRUSTED_FILE',
      message: /no regular file/,
    });
    symlinkSync(write('target', 'text'), path('link'));
    await assert.rejects(readTrustedFile(path('link'), 4), { code: 'ELOOP' });
    await assert.rejects(readTrustedFile(directory('folder'), 4), { code: 'UNTRUSTED_FILE' });
    await assert.rejects(readTrustedFile('/dev/zero', 4), { code: 'UNTRUSTED_FILE' });
  });

  it('rejects a file that is too large, or that another user owns or may write to', async () => {
    await assert.rejects(readTrustedFile(write('large', '12345'), 4), { message: /larger than 4 bytes/ });
    await assert.rejects(readTrustedFile(write('writable', 'text', 0o666), 4), {
      message: /writable by other users/,
    });
    const foreign = write('foreign-file', 'text');
    if (isRoot) chownSync(foreign, 12_345, 12_345);
    await assert.rejects(readTrustedFile(foreign, 4, 54_321), { message: /belongs to the user/ });
  });
});
