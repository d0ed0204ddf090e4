import assert from 'node:assert/strict';
import { appendFile, mkdtemp, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import { logSize, rotateLog, tailLog } from './log-file.ts';

const made: string[] = [];
let log = '';
beforeEach(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'log-'));
  made.push(dir);
  log = join(dir, 'containerd.log');
});
after(async () => {
  for (const path of made) await rm(path, { recursive: true });
});

describe('rotateLog', () => {
  it('leaves a log within its limit, and one that is not there', async () => {
    await rotateLog(log, 'none', 10);
    await writeFile(log, '0123456789');
    await rotateLog(log, 'none', 10);
    assert.equal(await readFile(log, 'utf8'), '0123456789');
  });

  it('keeps exactly one old log', async () => {
    for (const text of ['first, too long', 'second, too long']) {
      await writeFile(log, text);
      await rotateLog(log, 'none', 10);
    }
    assert.deepEqual(await readdir(join(log, '..')), ['containerd.log.1']);
    assert.equal(await readFile(`${log}.1`, 'utf8'), 'second, too long');
  });

  it('does not lose the writer of a log that is in use', async () => {
    await using writer = await open(log, 'a');
    await writer.write('before, too long');
    await rotateLog(log, 'running', 10);
    await writer.write('after');
    assert.equal(await readFile(log, 'utf8'), 'after');
    assert.equal(await readFile(`${log}.1`, 'utf8'), 'before, too long');
  });
});

describe('tailLog', () => {
  it('gives the last lines after the offset', async () => {
    await writeFile(log, 'old 1\nold 2\n');
    const start = await logSize(log);
    assert.equal(await tailLog(log, start, 5), '');
    await appendFile(log, 'new 1\nnew 2\nnew 3\n');
    assert.equal(await tailLog(log, start, 2), 'new 2\nnew 3');
    assert.equal(await tailLog(log, start, 9), 'new 1\nnew 2\nnew 3');
  });

  it('reads only the end of a long log, and nothing of one that is not there', async () => {
    assert.equal(await tailLog(log, 0, 5), '');
    await writeFile(log, `${'x'.repeat(100_000)}\nlast\n`);
    assert.equal(await tailLog(log, 0, 1), 'last');
    assert((await tailLog(log, 0, 2)).length < 20_000);
  });
});
