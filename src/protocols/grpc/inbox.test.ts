import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Inbox } from './inbox.ts';

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

test('messages come in their order, then the end, again and again', async () => {
  const inbox = new Inbox();
  inbox.put(Buffer.from('a'), new Tap());
  inbox.put(Buffer.from('b'), new Tap());
  inbox.end(undefined);
  assert.equal(String(await inbox.take()), 'a');
  assert.equal(String(await inbox.take()), 'b');
  assert.equal(await inbox.take(), undefined);
  assert.equal(await inbox.take(), undefined);
});

test('a failure comes after the messages before it', async () => {
  const inbox = new Inbox();
  inbox.put(Buffer.from('a'), new Tap());
  inbox.end(new Error('broke'));
  assert.equal(String(await inbox.take()), 'a');
  await assert.rejects(inbox.take(), /broke/);
});

test('a reader that waits is woken by a message, by the end and by a failure', async () => {
  for (const [act, result] of [
    [(inbox: Inbox) => inbox.put(Buffer.from('a'), new Tap()), 'a'],
    [(inbox: Inbox) => inbox.end(undefined), 'undefined'],
    [(inbox: Inbox) => inbox.end('broke'), 'broke'],
  ] as const) {
    const inbox = new Inbox();
    const taken = inbox.take().then(String, String);
    act(inbox);
    assert.equal(await taken, result);
  }
});

test('the source is paused once when there are many messages, and resumed when there is room', async () => {
  const [inbox, tap] = [new Inbox(), new Tap()];
  for (let index = 0; index < 70; index++) inbox.put(Buffer.from('x'), tap);
  assert.deepEqual([tap.paused, tap.resumed], [1, 0]);
  for (let index = 0; index < 70; index++) await inbox.take();
  assert.deepEqual([tap.paused, tap.resumed], [1, 1]);
});

test('one large message pauses the source until it is taken', async () => {
  const [inbox, tap] = [new Inbox(), new Tap()];
  inbox.put(Buffer.alloc(16 << 20), tap);
  assert.deepEqual([tap.paused, tap.resumed], [1, 0]);
  await inbox.take();
  assert.deepEqual([tap.paused, tap.resumed], [1, 1]);
});
