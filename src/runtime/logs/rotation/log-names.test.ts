import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nextStamp, oldestFirst, readLogName } from './log-names.ts';

const named = (name: string) => readLogName({ name, bytes: 1 });

test('names say of which instance a file is, when it was rotated and in which form it is', () => {
  assert.deepEqual(named('3.log'), { name: '3.log', bytes: 1, instance: 3, stamp: '', form: 'plain' });
  const rotated = named('0.log.20260102-030405.gz');
  assert.deepEqual([rotated?.stamp, rotated?.form], ['20260102-030405', 'gzip']);
  assert.equal(named('0.log.20260102-030405.tmp')?.form, 'unfinished');
  for (const other of ['x.log', '0.log.gz', '0.log.tmp', '0.log.old', '0.log.20260102-030405.gz.bak', 'log'])
    assert.equal(named(other), undefined, other);
});

test('files are in the order they were written', () => {
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

test('every name is later than the one before, also within a second and when the clock goes back', () => {
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

test('the name has the time of the machine', () => {
  const now = new Date(2026, 1, 3, 4, 5, 6).getTime();
  assert.equal(nextStamp(now, undefined), '20260203-040506');
  assert.equal(nextStamp(now, '20261231-235959'), '20270101-000000');
});
