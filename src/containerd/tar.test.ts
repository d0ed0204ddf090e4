import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type TarEntry, tarArchive } from './tar.ts';

interface Seen {
  readonly name: string;
  readonly mode: number;
  readonly type: string;
  readonly target: string;
  readonly data: string;
}

/** Reads an archive back and verifies its checksums. */
function readTar(archive: Uint8Array): Seen[] {
  const bytes = Buffer.from(archive);
  const observed: Seen[] = [];
  let at = 0;
  while (bytes[at] !== 0) {
    const header = bytes.subarray(at, at + 512);
    const text = (from: number, length: number) =>
      header.toString('latin1', from, from + length).replace(/\0.*$/s, '');
    const sum = header.reduce((total, byte, index) => total + (index >= 148 && index < 156 ? 32 : byte), 0);
    assert.equal(Number.parseInt(text(148, 8), 8), sum);
    assert.equal(header.toString('latin1', 257, 265), 'ustar\u000000');
    const size = Number.parseInt(text(124, 12), 8);
    const data = bytes.toString('utf8', at + 512, at + 512 + size);
    observed.push({
      name: text(0, 100),
      mode: Number.parseInt(text(100, 8), 8),
      type: text(156, 1),
      target: text(157, 100),
      data,
    });
    at += 512 + Math.ceil(size / 512) * 512;
  }
  assert.equal(bytes.length, at + 1024);
  assert(bytes.subarray(at).every((byte) => byte === 0));
  return observed;
}

const file = (path: string, text = ''): TarEntry => ({
  path,
  kind: 'file',
  mode: 0o644,
  data: Buffer.from(text),
});

describe('tarArchive', () => {
  it('tarArchive writes files, directories and links sorted by path', () => {
    const archive = tarArchive([
      { path: 'bin/sh', kind: 'link', target: 'busybox' },
      { path: 'tmp', kind: 'directory', mode: 0o1777 },
      { path: 'bin/busybox', kind: 'file', mode: 0o755, data: Buffer.from('x'.repeat(513)) },
    ]);
    assert.deepEqual(readTar(archive), [
      { name: 'bin/busybox', mode: 0o755, type: '0', target: '', data: 'x'.repeat(513) },
      { name: 'bin/sh', mode: 0o777, type: '2', target: 'busybox', data: '' },
      { name: 'tmp/', mode: 0o1777, type: '5', target: '', data: '' },
    ]);
  });

  it('the archive does not depend on the order of the entries', () => {
    const entries = [file('a', '1'), file('b', '2'), file('c', '3')];
    assert.deepEqual(tarArchive(entries), tarArchive(entries.toReversed()));
  });

  it('writes long names in a pax record before the file', () => {
    const long = `${'d'.repeat(60)}/${'e'.repeat(60)}`;
    const [record, entry] = readTar(tarArchive([file(long, 'x')]));
    assert.equal(record?.type, 'x');
    assert.equal(record?.data, `131 path=${long}\n`);
    assert.equal(Buffer.byteLength(String(record?.data)), 131);
    assert.equal(entry?.data, 'x');
  });

  it('the length of a pax record includes the digits of the length itself', () => {
    // A pax record consists of its own length, a space, "path=", the name and a newline. With a
    // name of 91 bytes, everything except the length is 98 bytes; two digits for the length would
    // make 100 bytes, which needs a third digit.
    for (const length of [91, 92, 93]) {
      const name = `ä${'x'.repeat(length - 2)}`;
      const [record] = readTar(tarArchive([file(name)]));
      const data = String(record?.data);
      assert.equal(Number.parseInt(data, 10), Buffer.byteLength(data));
      assert(data.endsWith(` path=${name}\n`));
    }
  });

  it('rejects paths outside the archive and duplicate paths', () => {
    for (const path of ['/abs', '../up', 'a/../b', 'a//b', '', 'a/', './a', 'a\0b']) {
      assert.throws(() => tarArchive([file(path)]), { code: 'CONTAINERD_IMAGE' });
    }
    assert.throws(() => tarArchive([file('a'), file('a')]), {
      code: 'CONTAINERD_IMAGE',
      message: /named once/,
    });
  });
});
