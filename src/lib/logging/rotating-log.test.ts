import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { RotatingLog } from './rotating-log.ts';

const clock = new VirtualClock();

async function folder() {
  const path = await mkdtemp(join(tmpdir(), 'rotating-'));
  return {
    log: join(path, 'kubeling.log'),
    names: () => readdir(path),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true }),
  };
}

test('a log that is written to stays within its limit and loses nothing of the newest lines', async () => {
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

test('what an earlier process has left counts, and one that left too much begins a new log', async () => {
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

test('a log that cannot be moved aside goes on', async () => {
  await using place = await folder();
  await mkdir(join(`${place.log}.1`, 'in the way'), { recursive: true });
  await using log = await RotatingLog.open(place.log, { clock, maxBytes: 10 });
  for (const line of ['a long first line\n', 'second\n', 'third\n']) await log.write(line);
  assert.equal(await readFile(place.log, 'utf8'), 'a long first line\nsecond\nthird\n');
});
