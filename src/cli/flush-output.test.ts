import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, it } from 'node:test';
import { flushOutput } from './flush-output.ts';

/** Takes nothing until it is told to. */
function stuck() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const seen: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      opened.then(() => {
        seen.push(String(chunk));
        done();
      });
    },
  });
  return { stream, seen, open };
}

describe('flushing what was written', () => {
  it('waits for a slow reader', async () => {
    const { stream, seen, open } = stuck();
    stream.write('one');
    stream.write('two');
    const flushed = flushOutput([stream], new AbortController().signal);
    assert.equal(
      await Promise.race([flushed.then(() => 'flushed'), new Promise((resolve) => setImmediate(resolve))]),
      undefined,
    );
    open();
    await flushed;
    assert.deepEqual(seen.slice(0, 2), ['one', 'two']);
  });

  it('does not wait for a reader that is gone', async () => {
    const { stream } = stuck();
    stream.on('error', () => {});
    stream.destroy(new Error('EPIPE'));
    await flushOutput([stream], new AbortController().signal);
  });

  it('does not wait once it is asked to end', async () => {
    const { stream } = stuck();
    stream.write('one');
    await flushOutput([stream], AbortSignal.abort());
  });
});
