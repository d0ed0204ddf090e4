import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { KubelingError } from '../../lib/index.ts';
import { parseEvent } from './watch-stream.ts';
import { WatchLineSplitter } from './watch-stream-lines.ts';

function split(chunks: readonly Buffer[], limit = 1_000_000): string[] {
  const lines = new WatchLineSplitter(limit);
  return chunks.flatMap((chunk) => [...lines.push(chunk)]);
}

test('splits lines correctly for any division into chunks', () => {
  const line = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\n', ''));
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat(40)), (lines, sizes) => {
      const bytes = Buffer.from(lines.map((each) => `${each}\n`).join(''));
      const chunks: Buffer[] = [];
      let from = 0;
      for (const size of sizes) {
        chunks.push(bytes.subarray(from, from + size));
        from += size;
      }
      chunks.push(bytes.subarray(from));
      assert.deepEqual(
        split(chunks),
        lines.filter((each) => each !== '').map((each) => Buffer.from(each).toString()),
      );
    }),
  );
});

test('rejects a line above the limit before it is complete', () => {
  const lines = new WatchLineSplitter(10);
  assert.deepEqual([...lines.push(Buffer.from('0123456789\n01234'))], ['0123456789']);
  assert(lines.isMidLine);
  assert.throws(() => [...lines.push(Buffer.from('567890'))], /at most 10 bytes/);
  assert.throws(() => split([Buffer.from('01234567890\n')], 10), /at most 10 bytes/);
});

test('decodes events and throws for ERROR events', () => {
  const what = 'watch pods';
  assert.deepEqual(parseEvent('{"type":"ADDED","object":{"kind":"Pod"}}', what), {
    type: 'ADDED',
    object: { kind: 'Pod' },
  });
  const code = (line: string) => {
    try {
      parseEvent(line, what);
    } catch (error) {
      return (error as KubelingError).code;
    }
    return assert.fail('the call succeeded');
  };
  assert.equal(code('{"type":"ERROR","object":{"code":410,"message":"old"}}'), 'API_GONE');
  assert.equal(
    code('{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":2}}}'),
    'API_TOO_MANY',
  );
  assert.equal(code('{"type":"ERROR","object":{}}'), 'API_FAILED');
  for (const line of ['', 'x', '1', 'null', '{}', '{"type":"ADDED"}', '{"type":"ODD","object":{}}']) {
    assert.equal(code(line), 'API_BAD_ANSWER');
  }
});

test('does not quote unreadable events in errors, because they may contain secrets', () => {
  assert.throws(
    () => parseEvent('{"type":"ADDED","object":{"data":{"password":hunter2', 'watch secrets'),
    (error) =>
      error instanceof KubelingError &&
      !JSON.stringify([error.message, String(error.cause)]).includes('hunter2'),
  );
});
