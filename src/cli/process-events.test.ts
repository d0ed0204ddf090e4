import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { describe, it, test } from 'node:test';
import { cancelledError } from '../lib/index.ts';
import { DelayedSigterm, flushOutput, watchProcess } from './process-events.ts';

function watched() {
  const emitter = new EventEmitter();
  const exits: number[] = [];
  const written: string[] = [];
  const root = new AbortController();
  watchProcess(
    {
      on: (event, listener) => emitter.on(event, listener),
      exit: (code) => exits.push(code),
      stderr: { write: (text) => written.push(text) },
    },
    root,
  );
  return { emitter, exits, written, root };
}

describe('process event handling', () => {
  for (const name of ['SIGINT', 'SIGTERM']) {
    it(`aborts with a reason on the first ${name}, and exits with 1 on the second signal`, () => {
      const { emitter, exits, root } = watched();
      emitter.emit(name);
      assert.equal(root.signal.reason.code, 'CANCELLED');
      assert.equal(root.signal.reason.message, `${name} received`);
      assert.deepEqual(exits, []);
      emitter.emit('SIGTERM');
      assert.deepEqual(exits, [1]);
    });
  }

  it('reports an unhandled rejection and continues', () => {
    const { emitter, exits, written, root } = watched();
    emitter.emit('unhandledRejection', new Error('lost'));
    emitter.emit('unhandledRejection', 'text');
    assert.match(written.join(''), /bug in kubeling: unhandled rejection: Error: lost\n/);
    assert.deepEqual(exits, []);
    assert.equal(root.signal.aborted, false);
  });

  it('reports an uncaught exception and exits with 1', () => {
    const { emitter, exits, written } = watched();
    emitter.emit('uncaughtException', new Error('gone'));
    assert.match(written.join(''), /uncaught exception: Error: gone/);
    assert.deepEqual(exits, [1]);
  });
});

function begun() {
  const parent = new AbortController();
  let done = () => {};
  const ended = new Promise<void>((resolve) => {
    done = resolve;
  });
  let isAsked = false;
  const first = new DelayedSigterm(parent.signal, () => {
    isAsked = true;
    return ended;
  });
  return { parent, done, first, isAsked: () => isAsked };
}

test('stops the pods on SIGTERM before anything else ends', async () => {
  const { parent, done, first, isAsked } = begun();
  parent.abort(cancelledError('SIGTERM received'));
  assert.deepEqual([isAsked(), first.signal.aborted], [true, false]);
  done();
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal((first.signal.reason as Error).message, 'SIGTERM received');
});

test('leaves the pods running on Ctrl-C and any other abort', () => {
  for (const why of ['SIGINT received', 'another reason']) {
    const { parent, first, isAsked } = begun();
    parent.abort(cancelledError(why));
    assert.deepEqual([isAsked(), first.signal.aborted], [false, true]);
  }
});

/** A stream that accepts no data until it is released. */
function stuck() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  const observed: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      opened.then(() => {
        observed.push(String(chunk));
        done();
      });
    },
  });
  return { stream, seen: observed, open };
}

describe('flushOutput', () => {
  it('flushOutput waits for a slow reader of the output', async () => {
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

  it('flushOutput does not wait for a reader that has closed the stream', async () => {
    const { stream } = stuck();
    stream.on('error', () => {});
    stream.destroy(new Error('EPIPE'));
    await flushOutput([stream], new AbortController().signal);
  });

  it('flushOutput does not wait once the signal is aborted', async () => {
    const { stream } = stuck();
    stream.write('one');
    await flushOutput([stream], AbortSignal.abort());
  });
});
