import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type NamedLog, nextStamp, oldestFirst, planLogCleanup, readLogName } from './log-cleanup.ts';

const policy = { maxBytes: 10, maxFiles: 3 };
const stamp = (at: number) => `20260101-${String(at).padStart(6, '0')}`;
const logsOf = (files: Readonly<Record<string, number>>): readonly NamedLog[] =>
  Object.entries(files).flatMap(([name, bytes]) => readLogName({ name, bytes }) ?? []);
const running = { running: 0, known: new Set([0]) };

test('keeps the newest rotated log uncompressed, compresses older ones, and removes the oldest logs above the limit', () => {
  const files = {
    '0.log': 1,
    [`0.log.${stamp(4)}`]: 9,
    [`0.log.${stamp(3)}`]: 9,
    [`0.log.${stamp(2)}.gz`]: 1,
    [`0.log.${stamp(1)}.gz`]: 1,
  };
  assert.deepEqual(planLogCleanup(logsOf(files), running, policy), {
    remove: [`0.log.${stamp(1)}.gz`, `0.log.${stamp(2)}.gz`],
    compress: [`0.log.${stamp(3)}`],
  });
});

test('removes unfinished compressions, and the originals of finished ones', () => {
  const files = {
    '0.log': 1,
    [`0.log.${stamp(1)}`]: 5,
    [`0.log.${stamp(1)}.gz`]: 1,
    [`0.log.${stamp(2)}.tmp`]: 3,
  };
  assert.deepEqual(planLogCleanup(logsOf(files), running, policy), {
    remove: [`0.log.${stamp(1)}`, `0.log.${stamp(2)}.tmp`],
    compress: [],
  });
});

test('the instances of a restarting container share one limit of log files', () => {
  const files = {
    '0.log': 9,
    '1.log': 9,
    [`2.log.${stamp(1)}`]: 9,
    '2.log': 4,
    [`3.log.${stamp(2)}`]: 8,
    '3.log': 2,
  };
  const owner = { running: 3, known: new Set([2, 3]) };
  assert.deepEqual(planLogCleanup(logsOf(files), owner, policy), {
    remove: ['0.log', '1.log', `2.log.${stamp(1)}`],
    compress: [],
  });
});

test('compresses all rotated logs of an exited container and keeps its last log', () => {
  const files = { '4.log': 9, [`4.log.${stamp(1)}`]: 9 };
  const plan = planLogCleanup(logsOf(files), { running: undefined, known: new Set() }, policy);
  assert.deepEqual(plan, { remove: [], compress: [`4.log.${stamp(1)}`] });
});

const anyFile = fc.tuple(
  fc.nat(3),
  fc.option(fc.nat(5), { nil: undefined }),
  fc.constantFrom('', '.gz', '.tmp'),
  fc.nat(12),
);

test('log cleanup respects the limits and keeps required files, for any directory', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(anyFile, {
        selector: ([instance, at, form]) => `${instance} ${at} ${at === undefined ? '' : form}`,
      }),
      fc.option(fc.nat(3), { nil: undefined }),
      fc.uniqueArray(fc.nat(3)),
      (files, runs, known) => {
        const logs = files.flatMap(([instance, at, form, bytes]) => {
          const name = at === undefined ? `${instance}.log` : `${instance}.log.${stamp(at)}${form}`;
          return readLogName({ name, bytes }) ?? [];
        });
        const { remove, compress } = planLogCleanup(logs, { running: runs, known: new Set(known) }, policy);
        const left = logs.filter(({ name }) => !remove.includes(name));
        const isNeeded = ({ instance, stamp: at }: NamedLog) =>
          at === '' && (instance === runs || known.includes(instance));
        const newest = left.findLast(({ instance, stamp: at }) => instance === runs && at !== '');
        const rest = left.filter((log) => !isNeeded(log) && log !== newest);
        assert.ok(logs.filter(isNeeded).every((log) => left.includes(log)));
        assert.ok(rest.length <= policy.maxFiles || rest.every(({ stamp: at }) => at === ''));
        assert.ok(left.every(({ form }) => form !== 'unfinished'));
        assert.ok(compress.every((name) => left.some((log) => log.name === name && log.form === 'plain')));
      },
    ),
  );
});

const named = (name: string) => readLogName({ name, bytes: 1 });

test('parses instance, rotation time and format from log file names', () => {
  assert.deepEqual(named('3.log'), { name: '3.log', bytes: 1, instance: 3, stamp: '', form: 'plain' });
  const rotated = named('0.log.20260102-030405.gz');
  assert.deepEqual([rotated?.stamp, rotated?.form], ['20260102-030405', 'gzip']);
  assert.equal(named('0.log.20260102-030405.tmp')?.form, 'unfinished');
  for (const other of ['x.log', '0.log.gz', '0.log.tmp', '0.log.old', '0.log.20260102-030405.gz.bak', 'log'])
    assert.equal(named(other), undefined, other);
});

test('sorts log files in the order of writing', () => {
  const names = [
    '1.log',
    '0.log',
    '1.log.20260101-000002',
    '0.log.20260101-000009.gz',
    '1.log.20260101-000001',
  ];
  const sorted = names.flatMap((name) => named(name) ?? []).sort(oldestFirst);
  assert.deepEqual(
    sorted.map(({ name }) => name),
    ['0.log.20260101-000009.gz', '0.log', '1.log.20260101-000001', '1.log.20260101-000002', '1.log'],
  );
});

test('each new log name is later than the previous one, also within a second or when the clock is set back', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 4e12 }),
      fc.array(fc.integer({ min: -5_000, max: 5_000 })),
      (start, steps) => {
        let now = start;
        let newest: string | undefined;
        for (const step of steps) {
          now = Math.max(0, now + step);
          const stamp = nextStamp(now, newest);
          assert.match(stamp, /^\d{8}-\d{6}$/);
          assert.ok(newest === undefined || stamp > newest);
          newest = stamp;
        }
      },
    ),
  );
});

test('names of rotated logs contain the local time', () => {
  const now = new Date(2026, 1, 3, 4, 5, 6).getTime();
  assert.equal(nextStamp(now, undefined), '20260203-040506');
  assert.equal(nextStamp(now, '20261231-235959'), '20270101-000000');
});
