import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageQueue } from './message-queue.ts';

class Tap {
  paused = 0;
  resumed = 0;
  pause(): void {
    this.paused++;
  }
  resume(): void {
    this.resumed++;
  }
}

test('delivers messages in order, then the end, also to repeated reads', async () => {
  const inbox = new MessageQueue();
  inbox.put(Buffer.from('a'), new Tap());
  inbox.put(Buffer.from('b'), new Tap());
  inbox.end(undefined);
  assert.equal(String(await inbox.take()), 'a');
  assert.equal(String(await inbox.take()), 'b');
  assert.equal(await inbox.take(), undefined);
  assert.equal(await inbox.take(), undefined);
});

test('delivers a failure after the messages that arrived before it', async () => {
  const inbox = new MessageQueue();
  inbox.put(Buffer.from('a'), new Tap());
  inbox.end(new Error('broke'));
  assert.equal(String(await inbox.take()), 'a');
  await assert.rejects(inbox.take(), /broke/);
});

test('wakes a waiting reader for a message, the end or a failure', async () => {
  for (const [act, result] of [
    [(inbox: MessageQueue) => inbox.put(Buffer.from('a'), new Tap()), 'a'],
    [(inbox: MessageQueue) => inbox.end(undefined), 'undefined'],
    [(inbox: MessageQueue) => inbox.end('broke'), 'broke'],
  ] as const) {
    const inbox = new MessageQueue();
    const taken = inbox.take().then(String, String);
    act(inbox);
    assert.equal(await taken, result);
  }
});

test('pauses the source once at the high-water mark, and resumes it below the mark', async () => {
  const [inbox, tap] = [new MessageQueue(), new Tap()];
  for (let index = 0; index < 70; index++) inbox.put(Buffer.from('x'), tap);
  assert.deepEqual([tap.paused, tap.resumed], [1, 0]);
  for (let index = 0; index < 70; index++) await inbox.take();
  assert.deepEqual([tap.paused, tap.resumed], [1, 1]);
});

test('pauses the source after one large message until it is read', async () => {
  const [inbox, tap] = [new MessageQueue(), new Tap()];
  inbox.put(Buffer.alloc(16 << 20), tap);
  assert.deepEqual([tap.paused, tap.resumed], [1, 0]);
  await inbox.take();
  assert.deepEqual([tap.paused, tap.resumed], [1, 1]);
});
