import assert from 'node:assert/strict';
import { appendFile, mkdir, mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it, test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { logSize, RotatingLog, rotateLog, tailLog } from './rotating-log.ts';

const clock = new VirtualClock();

async function folder() {
  const path = await mkdtemp(join(tmpdir(), 'rotating-'));
  return {
    log: join(path, 'kubeling.log'),
    names: () => readdir(path),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

test('a rotating log stays within its size limit and loses none of the newest lines', async () => {
  await using place = await folder();
  await using log = await RotatingLog.open(place.log, { clock, maxBytes: 100 });
  for (let line = 0; line < 200; line++) await log.write(`line ${line}\n`);
  log.writeSync('last words\n');
  assert.deepEqual(await place.names(), ['kubeling.log', 'kubeling.log.1']);
  const text = (await readFile(`${place.log}.1`, 'utf8')) + (await readFile(place.log, 'utf8'));
  assert.ok(text.length < 240, `${text.length} bytes`);
  const lines = text.trimEnd().split('\n');
  assert.equal(lines.at(-1), 'last words');
  const first = Number(lines[0]?.split(' ')[1]);
  const expected = Array.from({ length: 200 - first }, (_, index) => `line ${first + index}`);
  assert.deepEqual(lines.slice(0, -1), expected);
});

test('the size of an existing log counts, and a log above the limit is rotated first', async () => {
  await using place = await folder();
  await writeFile(place.log, 'x'.repeat(90));
  {
    await using log = await RotatingLog.open(place.log, { clock, maxBytes: 100 });
    await log.write('and some more\n');
  }
  await using log = await RotatingLog.open(place.log, { clock, maxBytes: 100 });
  await log.write('anew\n');
  assert.equal(await readFile(place.log, 'utf8'), 'anew\n');
  assert.equal((await stat(`${place.log}.1`)).size, 104);
  assert.equal((await stat(place.log)).mode & 0o777, 0o640);
});

test('a log that cannot be rotated is still written', async () => {
  await using place = await folder();
  await mkdir(join(`${place.log}.1`, 'in the way'), { recursive: true });
  await using log = await RotatingLog.open(place.log, { clock, maxBytes: 10 });
  for (const line of ['a long first line\n', 'second\n', 'third\n']) await log.write(line);
  assert.equal(await readFile(place.log, 'utf8'), 'a long first line\nsecond\nthird\n');
});

const created: string[] = [];
let log = '';
beforeEach(async () => {
  const dir = await mkdtemp(join(tmpdir(), 'log-'));
  created.push(dir);
  log = join(dir, 'containerd.log');
});
after(async () => {
  for (const path of created) await rm(path, { recursive: true });
});

describe('rotateLog', () => {
  it('does not change a log within its limit, and ignores a missing one', async () => {
    await rotateLog(log, 'none', 10);
    await writeFile(log, '0123456789');
    await rotateLog(log, 'none', 10);
    assert.equal(await readFile(log, 'utf8'), '0123456789');
  });

  it('keeps exactly one rotated log', async () => {
    for (const text of ['first, too long', 'second, too long']) {
      await writeFile(log, text);
      await rotateLog(log, 'none', 10);
    }
    assert.deepEqual(await readdir(join(log, '..')), ['containerd.log.1']);
    assert.equal(await readFile(`${log}.1`, 'utf8'), 'second, too long');
  });

  it('truncates a log that is in use, so that its writer keeps appending', async () => {
    await using writer = await open(log, 'a');
    await writer.write('before, too long');
    await rotateLog(log, 'running', 10);
    await writer.write('after');
    assert.equal(await readFile(log, 'utf8'), 'after');
    assert.equal(await readFile(`${log}.1`, 'utf8'), 'before, too long');
  });
});

describe('tailLog', () => {
  it('returns the last lines after the offset', async () => {
    await writeFile(log, 'old 1\nold 2\n');
    const start = await logSize(log);
    assert.equal(await tailLog(log, start, 5), '');
    await appendFile(log, 'new 1\nnew 2\nnew 3\n');
    assert.equal(await tailLog(log, start, 2), 'new 2\nnew 3');
    assert.equal(await tailLog(log, start, 9), 'new 1\nnew 2\nnew 3');
  });

  it('reads only the end of a long log, and returns nothing for a missing one', async () => {
    assert.equal(await tailLog(log, 0, 5), '');
    await writeFile(log, `${'x'.repeat(100_000)}\nlast\n`);
    assert.equal(await tailLog(log, 0, 1), 'last');
    assert((await tailLog(log, 0, 2)).length < 20_000);
  });
});
