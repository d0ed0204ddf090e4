import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { describe, it } from 'node:test';
import { watchProcess } from './process-events.ts';

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

describe('the process', () => {
  for (const name of ['SIGINT', 'SIGTERM']) {
    it(`aborts with a reason on the first ${name} and exits with 1 on the second signal`, () => {
      const { emitter, exits, root } = watched();
      emitter.emit(name);
      assert.equal(root.signal.reason.code, 'CANCELLED');
      assert.equal(root.signal.reason.message, `${name} received`);
      assert.deepEqual(exits, []);
      emitter.emit('SIGTERM');
      assert.deepEqual(exits, [1]);
    });
  }

  it('reports a rejection nobody handled and lives on', () => {
    const { emitter, exits, written, root } = watched();
    emitter.emit('unhandledRejection', new Error('lost'));
    emitter.emit('unhandledRejection', 'text');
    assert.match(written.join(''), /bug in kubeling: nobody handled a rejection: Error: lost\n/);
    assert.deepEqual(exits, []);
    assert.equal(root.signal.aborted, false);
  });

  it('reports an exception nobody caught and exits with 1', () => {
    const { emitter, exits, written } = watched();
    emitter.emit('uncaughtException', new Error('gone'));
    assert.match(written.join(''), /nobody caught an exception: Error: gone/);
    assert.deepEqual(exits, [1]);
  });
});
