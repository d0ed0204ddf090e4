import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { settle, VirtualClock } from '../../../test/fakes/virtual-clock.ts';
import { BufferedLogSink } from './buffered-sink.ts';
import { openLog } from './rotating-log.ts';
import { Verbosity } from './verbosity.ts';

/** A fake output that accepts no lines while it is blocked. */
function gatedOutput() {
  const written: string[] = [];
  const waiting: (() => void)[] = [];
  const state = { blocked: false, broken: false };
  const output = {
    async write(text: string) {
      if (state.blocked) await new Promise<void>((resolve) => waiting.push(resolve));
      if (state.broken) throw new Error('EPIPE');
      written.push(text);
    },
    writeSync: (text: string) => void written.push(text),
  };
  const unblock = () => {
    state.blocked = false;
    for (const resolve of waiting.splice(0)) resolve();
  };
  return { output, written, state, unblock };
}

const open = () => new AbortController().signal;

test('lines are written in order, and lines of one event loop iteration in one write', async () => {
  const { output, written } = gatedOutput();
  const sink = new BufferedLogSink({ clock: new VirtualClock(), output });
  sink.write('a');
  sink.write('b');
  await sink.flush(open());
  sink.write('c');
  await sink.flush(open());
  assert.deepEqual(written, ['a\nb\n', 'c\n']);
});

test('a blocked output drops lines beyond the limit and reports the gap where they are missing', async () => {
  const { output, written, state, unblock } = gatedOutput();
  const sink = new BufferedLogSink({
    clock: new VirtualClock(),
    output,
    maxBuffered: 20,
    gapLine: (dropped) => `lost ${dropped}`,
  });
  state.blocked = true;
  sink.write('first');
  await settle();
  for (let i = 0; i < 10; i++) sink.write(`line ${i}`);
  assert.equal(sink.dropped, 8);
  unblock();
  await sink.flush(open());
  sink.write('after');
  await sink.flush(open());
  assert.equal(written.join(''), 'first\nline 0\nline 1\nlost 8\nafter\n');
});

test('the time of the last flush is the current time while no lines wait, and does not advance while the output is blocked', async () => {
  const clock = new VirtualClock();
  const { output, state, unblock } = gatedOutput();
  const sink = new BufferedLogSink({ clock, output });
  await clock.advance(1000);
  assert.equal(sink.lastFlushMs, 1000);
  state.blocked = true;
  sink.write('x');
  await clock.advance(120_000);
  assert.equal(sink.lastFlushMs, 1000);
  unblock();
  await sink.flush(open());
  assert.equal(sink.lastFlushMs, 121_000);
});

test('a failing output loses lines and counts them, and later lines are still written', async () => {
  const { output, written, state } = gatedOutput();
  const sink = new BufferedLogSink({ clock: new VirtualClock(), output });
  state.broken = true;
  sink.write('a');
  sink.write('b');
  await sink.flush(open());
  assert.equal(sink.dropped, 2);
  state.broken = false;
  sink.write('c');
  await sink.flush(open());
  assert.deepEqual(written, ['c\n']);
});

test('a flush of a blocked output ends when its signal is aborted', async () => {
  const { output, state } = gatedOutput();
  const sink = new BufferedLogSink({ clock: new VirtualClock(), output });
  state.blocked = true;
  sink.write('a');
  const controller = new AbortController();
  const flushing = sink.flush(controller.signal);
  controller.abort(new Error('enough'));
  await assert.rejects(flushing, /enough/);
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
});

test('the last log lines are written before the process exits', () => {
  const { output, written } = gatedOutput();
  const sink = new BufferedLogSink({ clock: new VirtualClock(), output });
  sink.write('a');
  sink.write('b');
  sink.flushSync();
  assert.deepEqual(written, ['a\nb\n']);
});

test('an output that cannot be written does not prevent the exit of the process', () => {
  const output = {
    write: async () => {},
    writeSync: () => {
      throw new Error('EAGAIN');
    },
  };
  const sink = new BufferedLogSink({ clock: new VirtualClock(), output });
  sink.write('a');
  sink.flushSync();
});

test('the logger of a process reports lost lines as a log line of its format', async () => {
  const { output, written, state, unblock } = gatedOutput();
  const verbosity = new Verbosity(0);
  const { logger, sink } = openLog({
    clock: new VirtualClock(),
    output,
    format: 'json',
    verbosity,
    maxBuffered: 150,
  });
  state.blocked = true;
  for (let i = 0; i < 5; i++) logger.info('x');
  unblock();
  await sink.flush(open());
  logger.info('after');
  await sink.flush(open());
  const lines = written
    .join('')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines.at(-2)?.lines, sink.dropped);
  assert.equal(lines.at(-1)?.msg, 'after');
});
