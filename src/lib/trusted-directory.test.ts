import assert from 'node:assert/strict';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { untrustedDirectory } from './trusted-directory.ts';

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

describe('untrusted directories', () => {
  it('accepts a private directory below a sticky one', async () => {
    assert.equal(await untrustedDirectory(directory('private')), undefined);
  });

  it('accepts a directory that does not exist in a trusted one', async () => {
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

  it('rejects a directory of another user, and what root has below it', {
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
