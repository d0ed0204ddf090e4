import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { MemoryLogFiles } from '../../../test/fakes/memory-log-files.ts';
import { naiveLog } from '../../../test/fakes/naive-log.ts';
import { VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { parseLogTime } from './log-line.ts';
import { LogReader, type LogReadRequest } from './log-reader.ts';
import { LogFileSequence } from './log-trail.ts';

const path = '/logs/ns_pod_uid/main/0.log';
const never = new AbortController().signal;
const stampOf = (at: number) =>
  `2026-01-01T00:00:${String(at % 60).padStart(2, '0')}.${String(at).padStart(9, '0')}Z`;
const lineOf = (at: number, text = `line ${at}`) => `${stampOf(at)} stdout F ${text}\n`;
const linesOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => lineOf(from + index)).join('');
const textOf = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('');

async function read(files: MemoryLogFiles, reading: Partial<LogReadRequest> = {}): Promise<Buffer> {
  const deps = { files, clock: new VirtualClock() };
  await using trail = await LogFileSequence.open(deps, path);
  const whole: LogReadRequest = { path, view: {}, ...reading };
  const chunks: Uint8Array[] = [];
  for await (const chunk of new LogReader(deps, whole, trail).chunks(never)) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

function fileWith(content: string | Uint8Array): MemoryLogFiles {
  const files = new MemoryLogFiles();
  files.append(path, content);
  return files;
}

test('shows log lines without timestamp and stream', async () => {
  assert.equal(String(await read(fileWith(linesOf(0, 3)))), textOf(0, 3));
});

test('joins partial log lines with one timestamp', async () => {
  const log = `${stampOf(1)} stdout P one \n${stampOf(2)} stdout P:x \n${stampOf(3)} stdout F:a:b two\n${lineOf(4)}`;
  assert.equal(String(await read(fileWith(log))), 'one two\nline 4\n');
  const stamped = await read(fileWith(log), { view: { timestamps: 'shown' } });
  assert.equal(String(stamped), `${stampOf(1)} one two\n${stampOf(4)} line 4\n`);
});

test('shows timestamps with nine digits in the time zone of the log', async () => {
  const log =
    '2026-01-01T00:00:00Z stdout F a\n2026-01-01T00:00:00.5+02:00 stdout F b\n2026-01-01T00:00:00.12345678901+00:00 stdout F c\n';
  assert.equal(
    String(await read(fileWith(log), { view: { timestamps: 'shown' } })),
    '2026-01-01T00:00:00.000000000Z a\n2026-01-01T00:00:00.500000000+02:00 b\n2026-01-01T00:00:00.123456789Z c\n',
  );
});

test('skips invalid log lines', async () => {
  const bad = [
    'nonsense',
    '',
    '2026-13-01T00:00:00Z stdout F no such month',
    '2026-02-30T00:00:00Z stdout F no such day',
    '2026-01-01T00:00:00Z stdin F no such stream',
    '2026-01-01T00:00:00Z stdout F',
    '{"log":"unfinished',
    '{"log":"no time\\n","stream":"stdout"}',
    'x'.repeat(1_000),
  ];
  assert.equal(String(await read(fileWith(`${bad.join('\n')}\n${lineOf(7)}`))), 'line 7\n');
  assert.equal(String(await read(fileWith(`${lineOf(7)}${bad.join('\n')}\n`), { tailLines: 1 })), 'line 7\n');
});

test("reads logs in Docker's format, and joins texts without a newline", async () => {
  const time = '"time":"2026-01-01T00:00:00.5Z"';
  const log = `{"log":"one ","stream":"stdout",${time}}\n{"log":"two\\n","stream":"stdout",${time}}\n{"log":"three\\n","stream":"stderr",${time}}\n`;
  assert.equal(String(await read(fileWith(log))), 'one two\nthree\n');
  assert.equal(String(await read(fileWith(log), { tailLines: 2 })), 'one two\nthree\n');
  assert.equal(String(await read(fileWith(log), { tailLines: 1 })), 'three\n');
});

test('preserves binary data in logs', async () => {
  const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index)).filter((byte) => byte !== 10);
  const log = Buffer.concat([Buffer.from(`${stampOf(1)} stdout F `), bytes, Buffer.from('\n')]);
  assert.deepEqual(await read(fileWith(log)), Buffer.concat([bytes, Buffer.from('\n')]));
});

test('returns a log line of many megabytes in pieces and counts it once', async () => {
  const long = 'x'.repeat(5 << 20);
  const log = `${lineOf(1)}${lineOf(2, long)}${lineOf(3)}`;
  assert.equal(String(await read(fileWith(log), { tailLines: 2 })), `${long}\nline 3\n`);
  assert.equal((await read(fileWith(log), { view: { limitBytes: 3 << 20 } })).length, 3 << 20);
});

test('shows only the requested stream of a log', async () => {
  const log = `${stampOf(1)} stdout P a\n${stampOf(2)} stderr F b\n${stampOf(3)} stdout F c\n`;
  assert.equal(String(await read(fileWith(log), { view: { stream: 'stdout' } })), 'ac\n');
  assert.equal(String(await read(fileWith(log), { view: { stream: 'stderr' } })), 'b\n');
});

test('reads rotated and compressed log files first, and joins lines across files', async () => {
  const files = new MemoryLogFiles();
  files.append(`${path}.20260101-000000.gz`, gzipSync(`${linesOf(0, 10)}${stampOf(10)} stdout P be`));
  files.append(`${path}.20260101-000010`, `\n${stampOf(11)} stdout F gun\n${linesOf(12, 20)}`);
  files.append(`${path}.20260101-000020.tmp`, lineOf(99));
  files.append(path, linesOf(20, 30));
  const all = `${textOf(0, 10)}begun\n${textOf(12, 30)}`;
  assert.equal(String(await read(files)), all);
  for (const count of [0, 1, 10, 11, 18, 19, 20, 29, 100]) {
    const expected = count === 0 ? '' : all.trimEnd().split('\n').slice(-count).join('\n').concat('\n');
    assert.equal(String(await read(files, { tailLines: count })), expected, `the last ${count}`);
  }
  assert.equal(files.handles, 0);
});

test('reads a log that was rotated and not reopened yet by the runtime', async () => {
  const files = new MemoryLogFiles();
  files.append(`${path}.20260101-000000`, linesOf(0, 3));
  assert.equal(String(await read(files)), textOf(0, 3));
});

test('shows a damaged compressed log file up to the damage, and the rest of the log', async () => {
  const files = new MemoryLogFiles();
  const packed = gzipSync(linesOf(0, 5));
  files.append(`${path}.20260101-000000.gz`, packed.subarray(0, packed.length - 9));
  files.append(path, linesOf(5, 6));
  assert.match(String(await read(files)), /line 5\n$/);
});

const row = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(
        fc.constantFrom('stdout', 'stderr'),
        fc.constantFrom('F', 'F', 'P', 'F:t'),
        fc.string({ maxLength: 300 }),
      )
      .map(([stream, tag, text]) => `${stream} ${tag} ${text.replaceAll('\n', '')}`),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 400 }).map((text) => `bad${text.replaceAll('\n', '')}`) },
  { weight: 1, arbitrary: fc.string({ maxLength: 40 }).map((text) => `json${text}`) },
);

function written(rows: readonly string[], from: number, end: 'whole' | 'cut'): Buffer {
  const text = rows
    .map((each, index) => {
      if (each.startsWith('bad')) return each;
      if (!each.startsWith('json')) return `${stampOf(from + index)} ${each}`;
      return JSON.stringify({ log: each.slice(4), stream: 'stdout', time: stampOf(from + index) });
    })
    .join('\n');
  return Buffer.from(rows.length > 0 && end === 'whole' ? `${text}\n` : text);
}

test('reads any log with the same result as a line-by-line reader', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.array(row, { maxLength: 12 }), fc.boolean()), { minLength: 1, maxLength: 4 }),
      fc.record({
        tailLines: fc.option(fc.nat(20), { nil: undefined }),
        since: fc.option(fc.nat(50), { nil: undefined }),
        timestamps: fc.boolean(),
        limitBytes: fc.option(fc.integer({ min: 1, max: 2_000 }), { nil: undefined }),
        stream: fc.constantFrom(undefined, undefined, 'stdout' as const, 'stderr' as const),
      }),
      async (parts, { since, ...options }) => {
        const files = new MemoryLogFiles();
        const contents = parts.map(([rows], index) =>
          written(rows, index * 12, index < parts.length - 1 ? 'whole' : 'cut'),
        );
        for (const [index, content] of contents.entries()) {
          const stem = `${path}.20260101-00000${index}`;
          if (index === contents.length - 1) files.append(path, content);
          else if (parts[index]?.[1] === true) files.append(`${stem}.gz`, gzipSync(content));
          else files.append(stem, content);
        }
        const sinceText = since === undefined ? undefined : stampOf(since);
        const sinceNs = sinceText === undefined ? undefined : nanosOf(sinceText);
        const tailLines = options.stream === undefined ? options.tailLines : undefined;
        const observed = await read(files, {
          tailLines,
          view: {
            since: sinceText === undefined ? undefined : parseLogTime(sinceText),
            timestamps: options.timestamps ? 'shown' : 'hidden',
            limitBytes: options.limitBytes,
            stream: options.stream ?? 'all',
          },
        });
        assert.deepEqual(
          observed.toString('latin1'),
          naiveLog(contents, { ...options, tailLines, sinceNs }).toString('latin1'),
        );
      },
    ),
    { numRuns: 300 },
  );
});

function nanosOf(stamp: string): bigint {
  return BigInt(Date.parse(`${stamp.slice(0, 19)}Z`)) * 1_000_000n + BigInt(stamp.slice(20, 29));
}
