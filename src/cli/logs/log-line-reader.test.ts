import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { LogLineReader } from './log-line-reader.ts';

test('removes or keeps timestamps and passes the rest of each line on', () => {
  const log = Buffer.from('t1 one\nt2 \nt2 three words here\nt3 half');
  assert.equal(String(new LogLineReader('hidden').read(log)), 'one\n\nthree words here\nhalf');
  assert.equal(String(new LogLineReader('shown').read(log)), String(log));
});

test('prints nothing if the position to resume from is no longer in the log', () => {
  const reader = new LogLineReader('hidden', { stamp: 't0', ordinal: 1, bytes: 3, line: 'ended' });
  assert.deepEqual([String(reader.read(Buffer.from('t1 one\n'))), reader.hasCaughtUp], ['', false]);
});

test('resumes at the last position after any interruption', () => {
  const line = fc
    .tuple(fc.nat(3), fc.string({ maxLength: 6 }))
    .map(([at, text]) => [at, text.replaceAll('\n', '')] as const);
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 8 }),
      fc.constantFrom('shown' as const, 'hidden' as const),
      fc.nat(200),
      fc.nat(7),
      (lines, timestamps, cut, step) => {
        let clock = 0;
        const rows = lines.map(([later, text]) => {
          clock += later;
          return `t${clock} ${text}\n`;
        });
        const log = Buffer.from(rows.join(''));
        const at = Math.min(cut, log.length);
        const first = new LogLineReader(timestamps);
        let out = String(first.read(log.subarray(0, at)));
        const second = new LogLineReader(timestamps, first.position);
        for (let from = 0; from < log.length; from += step + 1)
          out += String(second.read(log.subarray(from, from + step + 1)));
        assert.equal(out, String(new LogLineReader(timestamps).read(log)));
        assert.ok(second.hasCaughtUp);
      },
    ),
    { numRuns: 1_000 },
  );
});
